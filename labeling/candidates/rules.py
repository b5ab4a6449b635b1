"""The rules for handing in a query: the streak, a certificate, the exhausted list, or any
combination: "streak and certificate:0.9 or exhausted". "and" binds closer than "or".

Each rule is a class, listed in RULES. On the labeling page, static/js/studio/rules.js updates the
state of the rules that it can count itself; for others it shows what the server said.
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
where no relevant image was found."""


def not_certified(recall: float, confidence: float) -> tuple[bool, float | None]:
    """What `Certified` answers without audits."""
    return False, 0.0


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the rules are checked against."""

    stop: StopState
    """The candidate list's, by one person's labels or the consensus."""
    certified: Certified = not_certified
    confidence: float = 0.95
    """The confidence of certificates that name none."""


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
    """The end of a meter from 0 that shows `value`; a full meter may not suffice for a rule."""
    sentence: str
    """How far it is, without capital and period: "26 of 100 negatives in a row"."""


@dataclass(frozen=True)
class Rule(ABC):
    """A condition for handing in; made from the numbers behind its name."""

    name: ClassVar[str]
    title: ClassVar[str]
    example: ClassVar[str]

    def __str__(self) -> str:
        return ":".join([self.name, *(str(value) for value in astuple(self) if value is not None)])

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
    """None: that of Evidence."""

    def __post_init__(self) -> None:
        if not all(0 < value < 1 for value in astuple(self) if value is not None):
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
    """Rules that together allow handing in."""

    rules: list[RuleState]

    @property
    def met(self) -> bool:
        """Whether all are met."""
        return all(rule.met for rule in self.rules)

    @property
    def strength(self) -> int:
        """The strength of the strongest rule: its index in RULES."""
        return max(list(RULES).index(rule.name) for rule in self.rules)


@dataclass(frozen=True, slots=True)
class HandInState:
    """How the rule of a query stands."""

    rule: str
    """As the query or the setting has it."""
    ways: list[Way]
    """One that is met suffices."""

    @property
    def met(self) -> bool:
        """Whether the query may be handed in."""
        return any(way.met for way in self.ways)

    @property
    def met_by(self) -> str:
        """The rules of the strongest way that is met; empty if none is."""
        met = [way for way in self.ways if way.met]
        strongest = max(met, key=lambda way: way.strength, default=Way([]))
        return " and ".join(rule.rule for rule in strongest.rules)

    @property
    def unmet(self) -> str:
        """The sentence that says what is missing."""
        ways = (
            " and ".join(rule.sentence for rule in way.rules if not rule.met) for way in self.ways
        )
        return f"The stop rule “{self.rule}” isn't met: {', or '.join(ways)}."


@dataclass(frozen=True, slots=True)
class HandInRule:
    """A combination of rules."""

    ways: tuple[tuple[Rule, ...], ...]

    def __str__(self) -> str:
        return " or ".join(" and ".join(map(str, way)) for way in self.ways)

    @property
    def certificate(self) -> Certificate | None:
        """The certificate of the highest recall, to aim at; None where no rule is a certificate."""
        certificates = [rule for way in self.ways for rule in way if isinstance(rule, Certificate)]
        return max(certificates, key=lambda certificate: certificate.recall, default=None)

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
        examples = ", ".join(rule.example for rule in RULES.values())
        raise ValueError(
            f"“{text}” is not a stop rule. The rules are {examples}; "
            "join several with “and” or “or”."
        ) from None
