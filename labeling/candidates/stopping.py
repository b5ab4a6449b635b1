"""When an annotator may stop: INQUIRE's streak rule and the exhausted list.

Source: Vendrow et al. 2024, section 3 (annotators label the ranked candidates until 100 consecutive
ones are not relevant; queries narrowed to a species are labeled whole) and appendix H (at least
500 images were generally labeled for a query that isn't narrowed).

static/js/studio/stopping.js implements the same rules for the labeling page;
tests/labeling/stopping_vectors.json tests both.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

RELEVANT: Final = "relevant"
NOT_RELEVANT: Final = "not_relevant"
UNSURE: Final = "unsure"
RELEVANCES: Final[frozenset[str]] = frozenset({RELEVANT, NOT_RELEVANT, UNSURE})

StopRule = Literal["streak", "exhausted", "none"]

_UNLABELED = 0
_NEGATIVE = 1
_POSITIVE = 2
_WITHDRAWN = 3


@dataclass(frozen=True, slots=True)
class StopState:
    """The stop rules applied to a candidate list; all counts are images of that list."""

    length: int
    """Candidates in the list, without the withdrawn ones."""
    judged: int
    """Candidates with a judgment, gaps or not."""
    relevant: int
    """Candidates judged relevant, gaps or not."""
    prefix: int
    """The last rank of the labeled prefix: ranks 1..prefix are all judged or withdrawn."""
    streak: int
    """Consecutive negatives (not relevant or unsure) at the end of the prefix."""
    required: int
    """The streak at which the rule is met."""
    streak_met: bool
    """The streak is long enough; it allows stopping once the minimum is met too."""
    minimum: int
    """Judgments required before the streak allows stopping; 0 for none."""
    minimum_met: bool
    exhausted: bool
    """Every candidate of a complete, non-empty list is judged."""
    remaining: int
    """Candidates of the list without a judgment."""
    next_rank: int | None
    """The first rank without a judgment; None when there is none."""
    rule: StopRule
    """The rule that allows stopping. "exhausted", the stronger statement, wins."""

    @property
    def met(self) -> bool:
        """Whether either rule allows handing the query in."""
        return self.rule != "none"


def stop_state(
    labels: Iterable[tuple[int, str]],
    *,
    length: int,
    complete: bool,
    streak_required: int = 100,
    minimum: int = 0,
    withdrawn: Iterable[int] = (),
    outside_list: Iterable[int] = (),
) -> StopState:
    """Apply the stop rules to one candidate list.

    `labels` are (rank starting at 1, relevance) of the judged candidates, in any order. `length` is
    the number of ranks in the list; `complete` says that the list holds every image of its filter,
    so that labeling all of it exhausts the filter. The streak follows the list's order, not the
    order of judging: a gap ends the labeled prefix, and an unsure judgment counts as a negative.

    `withdrawn` are the ranks of images withdrawn from the corpus: neither they nor their labels
    count, and they don't end the prefix. `outside_list` are the ranks judged only from a search,
    among similar images or because somebody picked them: the prefix never ends with a run of them
    unless every candidate is judged, so judging there doesn't extend the streak; those without a
    label are ignored.
    A prefix that ends before the last rank ends with a judgment made in the list. Time O(length),
    memory one byte a candidate beside the arguments.

    ValueError: a rank outside 1..length, a rank labeled twice, an unknown relevance, length < 0,
    minimum < 0 or streak_required < 1.
    """
    if length < 0:
        raise ValueError(f"length must not be negative: {length}")
    if minimum < 0:
        raise ValueError(f"minimum must not be negative: {minimum}")
    if streak_required < 1:
        raise ValueError(f"streak_required must be at least 1: {streak_required}")
    marks = bytearray(length)
    for rank in withdrawn:
        if not 1 <= rank <= length:
            raise ValueError(f"rank {rank} is outside 1..{length}")
        marks[rank - 1] = _WITHDRAWN
    visible = length - marks.count(_WITHDRAWN)
    judged = relevant = 0
    for rank, relevance in labels:
        if not 1 <= rank <= length:
            raise ValueError(f"rank {rank} is outside 1..{length}")
        if relevance not in RELEVANCES:
            raise ValueError(f"unknown relevance at rank {rank}: {relevance!r}")
        mark = marks[rank - 1]
        if mark == _WITHDRAWN:
            continue
        if mark != _UNLABELED:
            raise ValueError(f"rank {rank} is labeled twice")
        positive = relevance == RELEVANT
        marks[rank - 1] = _POSITIVE if positive else _NEGATIVE
        judged += 1
        relevant += positive
    elsewhere = frozenset(outside_list)
    gap = marks.find(_UNLABELED)
    prefix = length if gap < 0 else gap
    if gap >= 0:
        while prefix and (marks[prefix - 1] == _WITHDRAWN or prefix in elsewhere):
            prefix -= 1
    last_positive = marks.rfind(_POSITIVE, 0, prefix)
    streak = marks.count(_NEGATIVE, last_positive + 1, prefix)
    streak_met = streak >= streak_required
    minimum_met = judged >= minimum
    exhausted = complete and visible > 0 and gap < 0
    rule: StopRule = (
        "exhausted" if exhausted else "streak" if streak_met and minimum_met else "none"
    )
    return StopState(
        length=visible,
        judged=judged,
        relevant=relevant,
        prefix=prefix,
        streak=streak,
        required=streak_required,
        streak_met=streak_met,
        minimum=minimum,
        minimum_met=minimum_met,
        exhausted=exhausted,
        remaining=visible - judged,
        next_rank=None if gap < 0 else gap + 1,
        rule=rule,
    )
