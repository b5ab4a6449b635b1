"""What waits for an annotator: parts sent back, queries begun, and new ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Exists, OuterRef

from labeling.candidates.rules import Certificate, Evidence, RuleState, Streak
from labeling.judging.access import queries_visible_to
from labeling.judging.models import JudgmentEvent
from labeling.judging.progress import hand_in_rule
from labeling.queries.models import Assignment, Query
from labeling.review.overview import QueryOverview, overview_of_keys
from labeling.review.people import pace_of

#: Why a query waits, in the order in which they are shown.
KINDS: Final = ("sent back", "begun", "assigned", "new")
#: Queries begun and not yet begun that are shown; the dashboard's table has all.
BEGUN_SHOWN: Final = 20
NEW_SHOWN: Final = 5
READ_AT_ONCE: Final = 50


@dataclass(frozen=True, slots=True)
class WaitingQuery:
    """A query that waits for a person."""

    row: QueryOverview
    kind: str
    """Of KINDS."""
    goal: str
    """How far they are: "37 of 100 negatives in a row"; empty for one that isn't begun."""
    seconds: float | None
    """What is left at their own pace, at the least; None where that can't be told."""


def my_queries(user: Any) -> list[WaitingQuery]:
    """The queries that wait for an annotator, by KINDS and query id: the first BEGUN_SHOWN of those
    sent back or begun, and the first NEW_SHOWN of the others.
    """
    by_kind: dict[str, list[QueryOverview]] = {kind: [] for kind in KINDS}
    for row in _rows_waiting(user):
        by_kind[_kind(row)].append(row)
    sent_back, begun, assigned, new = by_kind.values()
    started = [*sent_back, *begun][:BEGUN_SHOWN]
    pace = pace_of(user, [row.query.pk for row in started])
    shown = [*started, *(*assigned, *new)[:NEW_SHOWN]]
    return [WaitingQuery(row, _kind(row), *_goal(row, pace)) for row in shown]


def _rows_waiting(user: Any) -> list[QueryOverview]:
    """The open queries that the user may label, by query id: those that they have judged for or are
    assigned to, and enough of the others.
    """
    opened = queries_visible_to(user).filter(state=Query.State.OPEN).order_by("query_id")
    judged = JudgmentEvent.objects.filter(query=OuterRef("pk"), annotator=user)
    part = Assignment.objects.filter(query=OuterRef("pk"), annotator=user)
    own = list(opened.filter(Exists(judged) | Exists(part)).values_list("pk", flat=True))
    left = [*own, *opened.exclude(pk__in=own).values_list("pk", flat=True)]
    size = len(own) + READ_AT_ONCE
    rows: list[QueryOverview] = []
    while left and sum(row.query.pk not in own for row in rows) < NEW_SHOWN:
        rows += [row for row in overview_of_keys(left[:size], user=user) if row.can_label]
        left = left[size:]
    return rows


def next_query(user: Any) -> Query | None:
    """The query that waits first for an annotator."""
    return next((waiting.row.query for waiting in my_queries(user)), None)


def _kind(row: QueryOverview) -> str:
    state = row.part.state if row.part is not None else "new"
    if state == "sent back":
        return state
    return "begun" if row.progress.stop.judged else "assigned" if state == "assigned" else "new"


def _goal(row: QueryOverview, pace: float | None) -> tuple[str, float | None]:
    """The goal that takes the fewest images, and how many seconds those take at the least."""
    if not row.progress.stop.judged:
        return "", None
    ways = hand_in_rule(row.query).state(Evidence(row.progress.stop)).ways
    left, rules = min(
        ((max(_images_left(rule, row) for rule in way.rules), way.rules) for way in ways),
        key=lambda way: way[0],
    )
    # How far a certificate is takes counting the query's audits.
    audit = Certificate.name
    sentences = ["an audit" if rule.name == audit else rule.sentence for rule in rules]
    return " and ".join(sentences), left * pace if pace else None


def _images_left(rule: RuleState, row: QueryOverview) -> int:
    """How many images meet a rule at the earliest."""
    stop = row.progress.stop
    if rule.met or rule.name == Certificate.name:
        return 0
    if rule.name == Streak.name:
        return max(stop.required - stop.streak, stop.minimum - stop.judged, 1)
    pool = row.query.current_list
    return max((pool.total if pool else 0) - stop.judged, 1)
