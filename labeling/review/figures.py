"""The figures of the dashboard, cached by the latest event of each annotator on each query.

Every judgment, and every removal of one, is an event with an id, and the events of one annotator
are stored one after another. So as long as nobody has a later event on a query, its judgments are
unchanged, and the dashboard computes only the queries that somebody judged for since.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import get_user_model

from core.cache import LruCache
from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.progress import Activity, Progress, activity_of, minimum_labels, progress_of
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal

#: For 250 queries: the figures of all and of 50 annotators each.
FIGURES_CACHED: Final = 15_000
TALLIES_CACHED: Final = 50_000

#: "annotator role event, …" of everybody who judged, and the withdrawn ranks of the current list.
QueryState = tuple[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Figures:
    """One query's row on the dashboard."""

    progress: Progress
    activity: Activity

    @property
    def last_activity(self) -> datetime | None:
        """When somebody last judged."""
        return self.activity.last_activity


@dataclass(frozen=True, slots=True)
class LatestEvent:
    """The id of an annotator's latest event on a query."""

    query: int
    annotator: int
    event: int


@dataclass(frozen=True, slots=True)
class Tally:
    """One annotator's current judgments for one query, counted."""

    labeled: int
    relevant: int
    seconds: float
    """Sum of the active seconds of the timed judgments."""
    timed: int
    last: datetime | None


_figures: LruCache[Any, Figures] = LruCache(limit=FIGURES_CACHED)
_tallies: LruCache[LatestEvent, Tally] = LruCache(limit=TALLIES_CACHED)

_EVENT = JudgmentEvent._meta.db_table

# Steps from one annotator of a query to the next along the index of events: time by the number of
# annotators, not of events.
_ALL_EVENTS = f"""
WITH RECURSIVE pair (query_id, annotator_id) AS (
    SELECT q.id, (SELECT min(e.annotator_id) FROM {_EVENT} e WHERE e.query_id = q.id)
      FROM {{queries}} q (id)
    UNION ALL
    SELECT p.query_id, (SELECT min(e.annotator_id) FROM {_EVENT} e
                         WHERE e.query_id = p.query_id AND e.annotator_id > p.annotator_id)
      FROM pair p WHERE p.annotator_id IS NOT NULL
), latest AS (
    SELECT p.query_id, p.annotator_id,
           (SELECT max(e.id) FROM {_EVENT} e
             WHERE e.query_id = p.query_id AND e.annotator_id = p.annotator_id) AS event
      FROM pair p WHERE p.annotator_id IS NOT NULL
)
"""
_OWN_EVENTS = f"""
WITH latest AS (
    SELECT q.id AS query_id, %(annotator)s::bigint AS annotator_id,
           (SELECT max(e.id) FROM {_EVENT} e
             WHERE e.query_id = q.id AND e.annotator_id = %(annotator)s) AS event
      FROM unnest(%(queries)s::bigint[]) q (id)
)
"""
# From the few withdrawn images to their ranks; OFFSET 0 keeps that an index lookup for each.
_STATES = f"""
, events AS (
    SELECT latest.query_id,
           string_agg(concat_ws(' ', latest.annotator_id, person.role, latest.event), ','
                      ORDER BY latest.annotator_id) AS ids
      FROM latest JOIN {get_user_model()._meta.db_table} person ON person.id = latest.annotator_id
     GROUP BY latest.query_id
), withdrawn AS (
    SELECT c.list_id, array_agg(c.rank ORDER BY c.rank) AS ranks
      FROM {ImageWithdrawal._meta.db_table} w CROSS JOIN LATERAL
           (SELECT list_id, rank FROM {Candidate._meta.db_table}
             WHERE image_id = w.image_id OFFSET 0) c
     WHERE w.restored_at IS NULL AND c.list_id = ANY(%(lists)s)
     GROUP BY c.list_id
)
SELECT q.query_id, events.ids, withdrawn.ranks
  FROM unnest(%(queries)s::bigint[], %(lists)s::bigint[]) q (query_id, list_id)
  LEFT JOIN events ON events.query_id = q.query_id
  LEFT JOIN withdrawn ON withdrawn.list_id = q.list_id
"""
# Each pair by the index of a query's judgments by annotator.
_TALLIES = f"""
SELECT pair.query_id, pair.annotator_id, pair.event, t.*
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) pair (query_id, annotator_id, event)
 CROSS JOIN LATERAL (
     SELECT count(*), count(*) FILTER (WHERE relevance = 'relevant'),
            coalesce(sum(seconds), 0), count(*) FILTER (WHERE seconds > 0), max(updated_at)
       FROM {Judgment._meta.db_table}
      WHERE query_id = pair.query_id AND annotator_id = pair.annotator_id
 ) t
"""


def figures_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Figures]:
    """The figures of queries by primary key: an annotator's own, or without one the consensus.

    The queries have their current lists selected along. One SQL query; three more, and a fourth
    where votes differ, for queries that somebody judged for since.
    """
    states = _states(queries, annotator)
    keys = {query.pk: _key(query, annotator, states[query.pk]) for query in queries}
    figures = _figures.get_many(keys.values())
    missing = [query for query in queries if keys[query.pk] not in figures]
    if missing:
        progress = progress_of(missing, annotator=annotator)
        activity = activity_of(missing, annotator=annotator)
        new = {keys[query.pk]: Figures(progress[query.pk], activity[query.pk]) for query in missing}
        # Cached only if the state was the same before and after: a withdrawal that is undone in
        # between would give the old key to other figures.
        after = _states(missing, annotator)
        unchanged = (query for query in missing if after[query.pk] == states[query.pk])
        _figures.set_many({keys[query.pk]: new[keys[query.pk]] for query in unchanged})
        figures |= new
    return {pk: figures[key] for pk, key in keys.items()}


def tallies() -> dict[LatestEvent, Tally]:
    """Everybody's tally for each query that they judged for.

    One SQL query, and a second where somebody judged since.
    """
    latest = _ALL_EVENTS.format(queries=f"(SELECT id FROM {Query._meta.db_table})")
    rows = fetch_all(f"{latest} SELECT query_id, annotator_id, event FROM latest")
    pairs = [LatestEvent(*row) for row in rows]
    known = _tallies.get_many(pairs)
    missing = [pair for pair in pairs if pair not in known]
    if missing:
        columns = zip(*((pair.query, pair.annotator, pair.event) for pair in missing), strict=True)
        rows = fetch_all(_TALLIES, [list(column) for column in columns])
        new = {LatestEvent(*row[:3]): Tally(*row[3:]) for row in rows}
        _tallies.set_many(new)
        known |= new
    return known


def _states(queries: Sequence[Query], annotator: Any) -> dict[int, QueryState]:
    """What decides the labels of each query, by primary key; one SQL query."""
    values = {
        "queries": [query.pk for query in queries],
        "lists": [query.current_list_id for query in queries],
        "annotator": None if annotator is None else annotator.pk,
    }
    events = (
        _OWN_EVENTS if annotator else _ALL_EVENTS.format(queries="unnest(%(queries)s::bigint[])")
    )
    rows = fetch_all(events + _STATES, values)
    return {pk: (ids or "", tuple(ranks or ())) for pk, ids, ranks in rows}


def _key(query: Query, annotator: Any, state: QueryState) -> Any:
    """Everything that a query's figures depend on."""
    current = query.current_list
    return (
        query.pk,
        annotator and annotator.pk,
        current and (current.pk, current.size, current.complete),
        settings.STOP_STREAK,
        minimum_labels(query),
        state,
    )
