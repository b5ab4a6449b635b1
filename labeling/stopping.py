"""When an annotator may stop: INQUIRE's streak rule and the exhausted list.

Source: Vendrow et al. 2024, section 3 (annotators label the ranked candidates until 100 consecutive
ones are not relevant; queries narrowed to a species are labelled whole).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

RELEVANT: Final = "relevant"
NOT_RELEVANT: Final = "not_relevant"
UNSURE: Final = "unsure"
RELEVANCES: Final[frozenset[str]] = frozenset({RELEVANT, NOT_RELEVANT, UNSURE})

StopRule = Literal["streak", "exhausted", "none"]

_UNLABELLED = 0
_NEGATIVE = 1
_POSITIVE = 2


@dataclass(frozen=True, slots=True)
class StopState:
    """What the stop rules say of a candidate list; all counts are images of that list."""

    length: int
    """Candidates in the list."""
    judged: int
    """Candidates with a judgment, gaps or not."""
    relevant: int
    """Candidates judged relevant, gaps or not."""
    prefix: int
    """Length of the labelled prefix: ranks 1..prefix are all judged."""
    streak: int
    """Consecutive negatives (not relevant or unsure) at the end of the prefix."""
    required: int
    """The streak at which the rule is met."""
    streak_met: bool
    exhausted: bool
    """Every candidate of a complete, non-empty list is judged."""
    remaining: int
    """Candidates of the list without a judgment."""
    next_rank: int | None
    """The first rank without a judgment; None when there is none."""
    rule: StopRule
    """The rule that allows to stop. "exhausted", the stronger statement, wins."""

    @property
    def met(self) -> bool:
        """Whether either rule allows to hand the query in."""
        return self.rule != "none"


def stop_state(
    labels: Iterable[tuple[int, str]],
    *,
    length: int,
    complete: bool,
    streak_required: int = 100,
) -> StopState:
    """Apply the stop rules to one candidate list.

    `labels` are (rank starting at 1, relevance) of the judged candidates, in any order. `length` is
    the number of candidates in the list; `complete` says that the list holds every image of its
    filter, so that labelling all of it exhausts the filter. The streak follows the list's order,
    not the order of judging: a gap ends the labelled prefix, and an unsure judgment counts as a
    negative. Time O(n), memory one byte a candidate.

    ValueError: a rank outside 1..length, a rank twice, an unknown relevance, length < 0 or
    streak_required < 1.
    """
    if length < 0:
        raise ValueError(f"length must not be negative: {length}")
    if streak_required < 1:
        raise ValueError(f"streak_required must be at least 1: {streak_required}")
    marks = bytearray(length)
    judged = relevant = 0
    for rank, relevance in labels:
        if not 1 <= rank <= length:
            raise ValueError(f"rank {rank} is outside 1..{length}")
        if relevance not in RELEVANCES:
            raise ValueError(f"unknown relevance at rank {rank}: {relevance!r}")
        if marks[rank - 1] != _UNLABELLED:
            raise ValueError(f"rank {rank} is labelled twice")
        positive = relevance == RELEVANT
        marks[rank - 1] = _POSITIVE if positive else _NEGATIVE
        judged += 1
        relevant += positive
    gap = marks.find(_UNLABELLED)
    prefix = length if gap < 0 else gap
    streak = prefix - 1 - marks.rfind(_POSITIVE, 0, prefix)
    streak_met = streak >= streak_required
    exhausted = complete and length > 0 and prefix == length
    rule: StopRule = "exhausted" if exhausted else "streak" if streak_met else "none"
    return StopState(
        length=length,
        judged=judged,
        relevant=relevant,
        prefix=prefix,
        streak=streak,
        required=streak_required,
        streak_met=streak_met,
        exhausted=exhausted,
        remaining=length - judged,
        next_rank=None if prefix == length else prefix + 1,
        rule=rule,
    )
