"""What waits for an annotator: parts sent back, queries begun, and new ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from labeling.candidates.rules import Certificate, Evidence, RuleState, Streak
from labeling.judging.progress import hand_in_rule
from labeling.queries.models import Query
from labeling.review.overview import QueryOverview, queries_overview
from labeling.review.people import pace_of

#: Why a query waits, in the order in which they are shown.
KINDS: Final = ("sent back", "begun", "assigned", "new")
#: Queries not yet begun that are shown; the dashboard's table has all.
NEW_SHOWN: Final = 5


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


def my_queries(user: Any, rows: Iterable[QueryOverview]) -> list[WaitingQuery]:
    """The rows of an annotator's dashboard that wait for them, by KINDS and query id, with the
    first NEW_SHOWN of those that aren't begun; one SQL query, none where nothing is begun.
    """
    by_kind: dict[str, list[QueryOverview]] = {kind: [] for kind in KINDS}
    for row in sorted(rows, key=lambda row: row.query.query_id):
        if row.query.state == Query.State.OPEN and row.can_label:
            by_kind[_kind(row)].append(row)
    sent_back, begun, assigned, new = by_kind.values()
    pace = pace_of(user, [row.query.pk for row in (*sent_back, *begun)])
    shown = [*sent_back, *begun, *(*assigned, *new)[:NEW_SHOWN]]
    return [WaitingQuery(row, _kind(row), *_goal(row, pace)) for row in shown]


def next_query(user: Any) -> Query | None:
    """The query that waits first for an annotator. As many SQL queries as the dashboard's rows, and
    one.
    """
    return next(
        (waiting.row.query for waiting in my_queries(user, queries_overview(user=user))), None
    )


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
