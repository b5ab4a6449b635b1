"""Parts that their hidden checks propose to send back, and the checks that are shown afterwards.

As in ECCV Caption (section 3.2, appendix B), whose authors looked at a batch with wrong answers to
its known pairs themselves: a reviewer decides here, too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils import timezone

from core.access import Role
from core.errors import Conflict
from labeling.candidates.services import lock_query
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.models import BlindItem, JudgmentEvent, Relevance
from labeling.lifecycle.team import part_send_back
from labeling.queries.models import Assignment, Query
from retrieval.flags.selectors import is_withdrawn


@dataclass(frozen=True, slots=True)
class CheckedPart:
    """A part that is handed in, with the answers to its checks."""

    annotator: Any
    checks: int
    """That the person has answered and that aren't used up."""
    right: int


def parts_failing_checks(query: Query) -> list[CheckedPart]:
    """The parts that it is proposed to send back, by name: of CHECKS_NEEDED checks or more less
    than CHECKS_AT_LEAST were answered as known. At most one SQL query.

    As in `review.people` the first answer counts, and unsure is no right one.
    """
    if query.state not in (Query.State.OPEN, Query.State.SUBMITTED):
        return []
    needed = query.benchmark.setting("CHECKS_NEEDED")
    share = query.benchmark.setting("CHECKS_AT_LEAST")
    parts = Assignment.objects.filter(
        query=query, handed_in_at__isnull=False, annotator__role=Role.ANNOTATOR
    )
    answered = _answered(query).filter(only_for__in=parts.values("annotator"), used_up_at=None)
    right: defaultdict[Any, list[bool]] = defaultdict(list)
    for check in answered.select_related("only_for").order_by("only_for__username", "pk"):
        right[check.only_for].append(check.answer == check.relevance)
    return [
        CheckedPart(person, len(answers), sum(answers))
        for person, answers in right.items()
        if len(answers) >= needed and sum(answers) < share * len(answers)
    ]


@transaction.atomic
def part_send_back_for_checks(*, query: Query, person: Any, by: Any) -> None:
    """Send a part back that `parts_failing_checks` has, and show the person the checks that they
    missed: all that they answered are used up then. Does nothing where the part is sent back
    already. Raises Conflict where it isn't proposed, and QueryGone.
    """
    query = lock_query(query)
    if query.assignments.filter(annotator=person, sent_back_at__isnull=False).exists():
        return
    failing = {one.annotator.pk: one for one in parts_failing_checks(query)}
    if person.pk not in failing:
        raise Conflict(f"The checks of {person.get_username()} don't propose to send this back.")
    checks, right = failing[person.pk].checks, failing[person.pk].right
    least = query.benchmark.setting("CHECKS_AT_LEAST")
    shares = f"({100 * right / checks:.0f} %); at least {100 * least:.0f} % are asked for"
    note = (
        f"Of {checks} images whose label is known, which were among those that you judged blindly, "
        f"you gave {right} the known label {shares}. The query’s page shows those that you missed. "
        "Please go through your part again."
    )
    part_send_back(query=query, person=person, note=note, by=by)
    used_up = _answered(query).filter(only_for=person, used_up_at=None)
    BlindItem.objects.filter(pk__in=list(used_up.values_list("pk", flat=True))).update(
        used_up_at=timezone.now()
    )


def missed_checks(query: Query, person: Any) -> list[BlindItem]:
    """The person's used-up checks of a query that they missed, with their first `answer`; none
    before the part was sent back for them. Without withdrawn images. One SQL query.
    """
    missed = _answered(query).filter(only_for=person, used_up_at__isnull=False)
    missed = missed.filter(~is_withdrawn("image")).exclude(answer=F("relevance"))
    return list(missed.select_related("image").order_by("used_up_at", "place", "pk"))


def _answered(query: Query) -> QuerySet[Any]:
    """Everybody's checks of a query that they have answered, with the first `answer`."""
    answers = (
        JudgmentEvent.objects.filter(query=query, image=OuterRef("image"))
        .filter(annotator=OuterRef("only_for"), relevance__in=Relevance.values)
        .order_by("pk")
    )
    checks = BlindItem.objects.filter(query=query, kind=SECOND_OPINIONS.name)
    return (
        checks.exclude(only_for=None)
        .annotate(answer=Subquery(answers.values("relevance")[:1]))
        .exclude(answer=None)
    )
