"""The dashboard: every query with its progress, and what each annotator did."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Q, QuerySet, Sum

from labeling.access import can_judge, queries_visible_to
from labeling.models import Judgment, Query, Relevance
from labeling.selectors.progress import Progress, activity_of, progress_of
from retrieval.access import Role, at_least


@dataclass(frozen=True, slots=True)
class QueryOverview:
    """One line of the dashboard: to a reviewer the consensus, to an annotator their own figures."""

    query: Query
    progress: Progress
    last_activity: datetime | None
    annotators: int
    """How many people have judged for it (for an annotator: whether they have, 0 or 1)."""
    can_label: bool

    @property
    def labelled(self) -> int:
        return self.progress.judged

    @property
    def candidates(self) -> int:
        return self.progress.candidates

    @property
    def relevant(self) -> int:
        return self.progress.relevant

    @property
    def streak(self) -> int:
        return self.progress.streak

    @property
    def stop_met(self) -> bool:
        return self.progress.stop.met


@dataclass(frozen=True, slots=True)
class AnnotatorActivity:
    """What one person did over all queries."""

    user_id: int
    username: str
    role: str
    queries: int
    labelled: int
    relevant: int
    relevant_share: float
    seconds_per_image: float | None
    last_activity: datetime


_STATES = list(Query.State.values)

#: Sort keys of the dashboard; "-" before one turns it round.
SORT_KEYS: Mapping[str, Callable[[QueryOverview], Any]] = {
    "query_id": lambda row: row.query.query_id,
    "text": lambda row: row.query.text.casefold(),
    "state": lambda row: _STATES.index(row.query.state),
    "split": lambda row: row.query.split,
    "category": lambda row: row.query.category,
    "candidates": lambda row: row.candidates,
    "labelled": lambda row: row.labelled,
    "relevant": lambda row: row.relevant,
    "streak": lambda row: row.streak,
    "annotators": lambda row: row.annotators,
    "last_activity": lambda row: row.last_activity.timestamp() if row.last_activity else 0.0,
}


def queries_filtered(
    queries: QuerySet[Query], filters: Mapping[str, str] | None
) -> QuerySet[Query]:
    """Narrow queries by `search` (a part of the text or category, or the query id), `state`,
    `split`, `category`.

    Blank filters count for nothing; an unknown state, split or category matches nothing.
    """
    filters = {name: value for name, value in (filters or {}).items() if value}
    if search := filters.get("search", "").replace("\0", "").strip():
        matches = Q(text__icontains=search) | Q(category__icontains=search)
        if search.isascii() and search.isdigit() and len(search) < 10:
            matches |= Q(query_id=int(search))
        queries = queries.filter(matches)
    for name in ("state", "split", "category"):
        if name in filters:
            queries = queries.filter(**{name: filters[name].replace("\0", "")})
    return queries


def queries_overview(
    *, user: Any, filters: Mapping[str, str] | None = None, sort: str = "query_id"
) -> list[QueryOverview]:
    """The queries that the user sees, filtered and sorted, with progress; four SQL queries however
    many there are.

    `sort` is one of SORT_KEYS, with "-" before it for descending; an unknown one sorts by query id.
    Equal ones are ordered by query id.
    """
    queries = list(
        queries_filtered(queries_visible_to(user), filters)
        .select_related("current_list__job", "current_list__embedding_model")
        .order_by("query_id")
    )
    rows = overview_of(queries, user=user)
    key = SORT_KEYS.get(sort.removeprefix("-"))
    if key is not None:
        rows.sort(key=key, reverse=sort.startswith("-"))
    return rows


def overview_of(queries: list[Query], *, user: Any) -> list[QueryOverview]:
    """The lines of these queries for the user, in their order."""
    annotator = None if at_least(user, Role.REVIEWER) else user
    progress = progress_of(queries, annotator=annotator)
    activity = activity_of(queries, annotator=annotator)
    return [
        QueryOverview(
            query=query,
            progress=progress[query.pk],
            last_activity=activity[query.pk].last_activity,
            annotators=activity[query.pk].annotators,
            can_label=can_judge(user, query),
        )
        for query in queries
    ]


def annotator_activity() -> list[AnnotatorActivity]:
    """Everybody who has judged, the most recently active first; for reviewers and admins. One SQL
    query.
    """
    rows = (
        Judgment.objects.order_by()
        .values("annotator", "annotator__username", "annotator__role")
        .annotate(
            queries=Count("query", distinct=True),
            labelled=Count("pk"),
            relevant=Count("pk", filter=Q(relevance=Relevance.RELEVANT)),
            active=Sum("seconds"),
            timed=Count("pk", filter=Q(seconds__gt=0)),
            last=Max("updated_at"),
        )
        .order_by("-last", "annotator")
    )
    return [
        AnnotatorActivity(
            user_id=row["annotator"],
            username=row["annotator__username"],
            role=row["annotator__role"],
            queries=row["queries"],
            labelled=row["labelled"],
            relevant=row["relevant"],
            relevant_share=row["relevant"] / row["labelled"],
            seconds_per_image=row["active"] / row["timed"] if row["timed"] else None,
            last_activity=row["last"],
        )
        for row in rows
    ]
