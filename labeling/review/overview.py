"""The dashboard: every query with its progress, and what each annotator did."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import Q, QuerySet

from core.ids import id_of
from labeling.candidates.rules import Evidence
from labeling.judging.access import counted_for, queries_visible_to, why_not
from labeling.judging.parts import closed_to
from labeling.judging.progress import Progress, hand_in_rule
from labeling.queries.models import Assignment, Query
from labeling.review.figures import Tally, figures_of, tallies


@dataclass(frozen=True, slots=True)
class QueryOverview:
    """One row of the dashboard: the consensus for reviewers, annotators' own figures."""

    query: Query
    progress: Progress
    last_activity: datetime | None
    annotators: int
    """How many people have judged for it (for an annotator: whether they have, 0 or 1)."""
    can_label: bool
    part: Assignment | None
    """The user's, as an annotator, where there is a row for it."""

    def __getattr__(self, name: str) -> Any:
        """A field of the query."""
        return getattr(self.query, name)

    @property
    def handed_in(self) -> bool:
        """Whether the user, as an annotator, has handed in their part."""
        return self.part is not None and self.part.handed_in

    @property
    def stop_met(self) -> bool:
        """Whether the query's rule for handing in is met without its certificates, which would take
        counting the audits of every query.
        """
        return hand_in_rule(self.query).state(Evidence(self.progress.stop)).met


@dataclass(frozen=True, slots=True)
class AnnotatorActivity:
    """One person's judgments over all queries."""

    user_id: int
    username: str
    queries: int
    labeled: int
    relevant: int
    seconds_per_image: float | None
    last_activity: datetime


_STATES = list(Query.State.values)
#: What the figures of a query are computed from.
_COUNTED = (
    *("benchmark__species_count", "current_list__size", "current_list__total"),
    *("current_list__unembedded", "current_list__frozen_at", "current_list__species_ids"),
)

#: Sort keys of the dashboard that are fields of a query.
_QUERY_KEYS: Mapping[str, Callable[[Any], Any]] = {
    "query_id": lambda query: query.query_id,
    "text": lambda query: query.text.casefold(),
    "state": lambda query: _STATES.index(query.state),
    "split": lambda query: query.split,
}
#: Sort keys of the dashboard; "-" before one reverses it. Those that are no fields of a query are
#: of its `Figures` as well.
SORT_KEYS: Mapping[str, Callable[[Any], Any]] = {
    **_QUERY_KEYS,
    "labeled": lambda row: row.progress.stop.judged,
    "relevant": lambda row: row.progress.stop.relevant,
    "streak": lambda row: row.progress.stop.streak,
    "last_activity": lambda row: row.last_activity.timestamp() if row.last_activity else 0.0,
}


def queries_filtered(queries: QuerySet[Query], filters: Mapping[str, str]) -> QuerySet[Query]:
    """Narrow queries by `search` (a part of the text or category, or the query id), `state`,
    `split`, `category`, `benchmark` (its id).

    Blank filters are ignored; an unknown state, split, category or benchmark matches nothing.
    """
    filters = {name: value for name, value in filters.items() if value}
    if search := filters.get("search", "").replace("\0", "").strip():
        matches = Q(text__icontains=search) | Q(category__icontains=search)
        if search.isascii() and search.isdigit() and len(search) < 10:
            matches |= Q(query_id=int(search))
        queries = queries.filter(matches)
    for name in ("state", "split", "category"):
        if name in filters:
            queries = queries.filter(**{name: filters[name].replace("\0", "")})
    if "benchmark" in filters:
        number = id_of(str(filters["benchmark"]))
        queries = queries.filter(benchmark=number) if number is not None else queries.none()
    return queries


def query_keys_sorted(
    *,
    user: Any,
    filters: Mapping[str, str] = MappingProxyType({}),
    sort: str = "query_id",
    without: Collection[int] = (),
) -> list[int]:
    """The primary keys of the queries that the user sees, filtered and sorted, but for those
    `without`; one SQL query, and those of `figures_of` where no field of a query sorts them.

    `sort` is one of SORT_KEYS, with "-" before it for descending. Equal ones are ordered by query
    id.
    """
    key, reverse = sort.removeprefix("-"), sort.startswith("-")
    queries = queries_filtered(queries_visible_to(user), filters).order_by("query_id")
    if key in _QUERY_KEYS:
        found = list(queries.values_list("pk", *_QUERY_KEYS, named=True))
        found.sort(key=_QUERY_KEYS[key], reverse=reverse)
        return [query.pk for query in found if query.pk not in without]
    figures = figures_of(
        list(queries.select_related("benchmark", "current_list").only(*_COUNTED)),
        annotator=counted_for(user),
    )
    keys = sorted(figures, key=lambda pk: SORT_KEYS[key](figures[pk]), reverse=reverse)
    return [pk for pk in keys if pk not in without]


def overview_of_keys(keys: Iterable[int], *, user: Any) -> list[QueryOverview]:
    """The rows of the queries with these primary keys, in their order."""
    keys = list(keys)
    queries = _with_lists(Query.objects.all()).in_bulk(keys)
    return overview_of([queries[key] for key in keys if key in queries], user=user)


def _with_lists(queries: QuerySet[Query]) -> QuerySet[Query]:
    """The queries with what their rows show; without the texts' vectors, which are slow to read."""
    return queries.select_related(
        "benchmark", "current_list__job", "current_list__embedding_model"
    ).defer("current_list__text_vector")


def overview_of(queries: list[Query], *, user: Any) -> list[QueryOverview]:
    """The rows of these queries for the user, in their order."""
    annotator = counted_for(user)
    figures = figures_of(queries, annotator=annotator)
    parts: dict[int, Assignment] = {}
    closed: set[int] = set()
    if annotator is not None:
        own = Assignment.objects.filter(
            annotator=annotator, query__in=[query.pk for query in queries]
        )
        parts = {part.query_id: part for part in own}
        opened = (
            query for query in queries if query.state == Query.State.OPEN and query.pk not in parts
        )
        closed = closed_to(annotator, list(opened))
    return [
        QueryOverview(
            query=query,
            progress=figures[query.pk].progress,
            last_activity=figures[query.pk].activity.last_activity,
            annotators=figures[query.pk].activity.annotators,
            can_label=not why_not(user, query, part=parts.get(query.pk), closed=query.pk in closed),
            part=parts.get(query.pk),
        )
        for query in queries
    ]


def annotator_activity() -> list[AnnotatorActivity]:
    """Everybody with current judgments, the most recently active first; for reviewers and admins.

    Two SQL queries, and a third where somebody judged since.
    """
    by_annotator: defaultdict[int, list[Tally]] = defaultdict(list)
    for pair, tally in tallies().items():
        if tally.labeled:
            by_annotator[pair.annotator].append(tally)
    people = get_user_model().objects.in_bulk(list(by_annotator))
    activities = [_activity(people[pk], of_queries) for pk, of_queries in by_annotator.items()]
    activities.sort(key=lambda activity: (-activity.last_activity.timestamp(), activity.user_id))
    return activities


def _activity(person: Any, of_queries: list[Tally]) -> AnnotatorActivity:
    timed = sum(tally.timed for tally in of_queries)
    return AnnotatorActivity(
        user_id=person.pk,
        username=person.get_username(),
        queries=len(of_queries),
        labeled=sum(tally.labeled for tally in of_queries),
        relevant=sum(tally.relevant for tally in of_queries),
        seconds_per_image=math.fsum(tally.seconds for tally in of_queries) / timed
        if timed
        else None,
        last_activity=max(tally.last for tally in of_queries if tally.last is not None),
    )
