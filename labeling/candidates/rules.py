"""Which rules allow to hand in a query: the streak, a certificate, the exhausted list, or any
combination: "streak and certificate:0.9 or exhausted". "and" binds closer than "or".

A rule is one class, listed in RULES. static/js/studio/rules.js says on the labeling page how those
that it can count itself stand; of others it shows what the server said.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from math import floor
from typing import ClassVar, Final

from labeling.candidates.stopping import StopState

DEFAULT_RULE: Final = "streak or exhausted"
Certified = Callable[[float, float], tuple[bool, float | None]]
"""(recall, confidence) -> whether audits certify it, and the recall that they do certify; None
where nothing is found."""


def not_certified(recall: float, confidence: float) -> tuple[bool, float | None]:
    """Without audits."""
    return False, 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What rules go by."""

    stop: StopState
    """Of the candidate list, by one person's labels or the consensus."""
    certified: Certified = not_certified
    confidence: float = 0.95
    """Of certificates that name none."""


@dataclass(frozen=True, slots=True)
class RuleState:
    """How a rule stands."""

    rule: str
    """As it is written, in full: "certificate:0.9:0.95"."""
    name: str
    title: str
    """For people: "A certificate"."""
    met: bool
    value: float
    of: float
    """A meter from 0 to this holds `value`; a rule may ask for more than a full one."""
    sentence: str
    """How far it is, without capital and period: "26 of 100 negatives in a row"."""


@dataclass(frozen=True)
class Rule(ABC):
    """Something that allows to hand in; made from the numbers behind its name."""

    name: ClassVar[str]
    title: ClassVar[str]
    example: ClassVar[str]

    def __str__(self) -> str:
        return ":".join([self.name, *(str(one) for one in astuple(self) if one is not None)])

    @abstractmethod
    def state(self, evidence: Evidence) -> RuleState:
        """How it stands."""

    def _state(self, met: bool, value: float, of: float, sentence: str) -> RuleState:
        return RuleState(str(self), self.name, self.title, met, value, of, sentence)


@dataclass(frozen=True)
class Streak(Rule):
    """Enough negatives in a row at the end of the labeled prefix, after the minimum of labels."""

    name = "streak"
    title = "Negatives in a row"
    example = "streak"

    def state(self, evidence: Evidence) -> RuleState:
        stop = evidence.stop
        sentence = f"{stop.streak:,} of {stop.required:,} negatives in a row"
        if not stop.minimum_met:
            sentence += f", {stop.judged:,} of {stop.minimum:,} labels"
        met = stop.streak_met and stop.minimum_met
        return self._state(met, stop.streak, stop.required, sentence)


@dataclass(frozen=True)
class Certificate(Rule):
    """The query's audits certify a recall. ValueError: a number that isn't between 0 and 1."""

    name = "certificate"
    title = "A certificate"
    example = "certificate:0.9"

    recall: float
    confidence: float | None = None
    """None: as Evidence has it."""

    def __post_init__(self) -> None:
        if not all(0 < one < 1 for one in astuple(self) if one is not None):
            raise ValueError("recall and confidence must lie between 0 and 1")

    def state(self, evidence: Evidence) -> RuleState:
        confidence = self.confidence or evidence.confidence
        met, recall = evidence.certified(self.recall, confidence)
        if recall is None:
            sentence = "nothing found, " + ("nor missing" if met else "so no recall is certified")
        else:
            shown = floor(100 * recall + 1e-9)
            sentence = f"{shown} % of {100 * self.recall:g} % recall certified"
        full = Certificate(self.recall, confidence)
        return full._state(met, recall or 0, self.recall, sentence)


@dataclass(frozen=True)
class Exhausted(Rule):
    """Every image of the filter is labeled."""

    name = "exhausted"
    title = "The whole list labeled"
    example = "exhausted"

    def state(self, evidence: Evidence) -> RuleState:
        stop = evidence.stop
        sentence = f"{stop.judged:,} of {stop.length:,} images labeled"
        if not (stop.remaining or stop.exhausted):
            sentence += ", which are not all of the filter"
        return self._state(stop.exhausted, stop.judged, stop.length, sentence)


#: By name, from the weakest statement to the strongest.
RULES: Final[Mapping[str, type[Rule]]] = {
    Streak.name: Streak,
    Certificate.name: Certificate,
    Exhausted.name: Exhausted,
}


@dataclass(frozen=True, slots=True)
class Way:
    """Rules that together allow to hand in."""

    rules: list[RuleState]

    @property
    def met(self) -> bool:
        """Whether all are met."""
        return all(one.met for one in self.rules)

    @property
    def strength(self) -> int:
        """Of the strongest of them, by its place in RULES."""
        return max(list(RULES).index(one.name) for one in self.rules)


@dataclass(frozen=True, slots=True)
class HandInState:
    """How the rule of a query stands."""

    rule: str
    """As the query or the setting has it."""
    ways: list[Way]
    """Any that is met allows to hand in."""

    @property
    def met(self) -> bool:
        """Whether the query may be handed in."""
        return any(way.met for way in self.ways)

    @property
    def met_by(self) -> str:
        """The rules of the way that is met, of several the strongest; empty where none is."""
        met = [way for way in self.ways if way.met]
        strongest = max(met, key=lambda way: way.strength, default=Way([]))
        return " and ".join(one.rule for one in strongest.rules)

    @property
    def unmet(self) -> str:
        """The sentence that says what is missing."""
        ways = (" and ".join(one.sentence for one in way.rules if not one.met) for way in self.ways)
        return f"The stop rule “{self.rule}” isn't met: {', or '.join(ways)}."


@dataclass(frozen=True, slots=True)
class HandInRule:
    """A combination of rules."""

    ways: tuple[tuple[Rule, ...], ...]

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, way)) for way in self.ways)

    @property
    def certificate(self) -> Certificate | None:
        """The one to aim at: that of the highest recall; None where no rule is a certificate."""
        found = [rule for way in self.ways for rule in way if isinstance(rule, Certificate)]
        return max(found, key=lambda one: one.recall, default=None)

    def state(self, evidence: Evidence) -> HandInState:
        """How it stands."""
        ways = [Way([rule.state(evidence) for rule in way]) for way in self.ways]
        return HandInState(str(self), ways)


def parse_rule(text: str) -> HandInRule:
    """The rule that a text such as DEFAULT_RULE names. ValueError says what is wrong."""
    return HandInRule(
        tuple(
            tuple(map(_rule, re.split(r"\s+and\s+", way)))
            for way in re.split(r"\s+or\s+", text.strip().lower())
        )
    )


def _rule(text: str) -> Rule:
    name, *numbers = text.split(":")
    try:
        return RULES[name](*map(float, numbers))
    except (KeyError, TypeError, ValueError):
        known = ", ".join(rule.example for rule in RULES.values())
        raise ValueError(
            f"“{text}” is no stop rule. Known are {known}; join several by “and” or “or”."
        ) from None
