"""The figures of many queries at once, computed anew only for those on which somebody acted since.

What is computed is remembered by this process together with all that it rests on (`acts`). So after
the first time, the dashboard takes as long for millions of judgments as for none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.conf import settings
from django.db import connection

from core.remembered import Remembered
from labeling.judging.acts import LastAct, last_acts, states_of
from labeling.judging.models import Judgment
from labeling.judging.progress import Activity, Progress, activity_of, minimum_labels, progress_of
from labeling.queries.models import Query

#: Of 250 queries, those of all and of 50 annotators each.
QUERIES_REMEMBERED: Final = 15_000
PAIRS_REMEMBERED: Final = 50_000


@dataclass(frozen=True, slots=True)
class Figures:
    """One query as its line on the dashboard has it."""

    progress: Progress
    activity: Activity


@dataclass(frozen=True, slots=True)
class Tally:
    """What stands of one annotator for one query."""

    labeled: int
    relevant: int
    seconds: float
    """Active seconds of the timed judgments, in all."""
    timed: int
    last: datetime | None


_figures: Remembered[Any, Figures] = Remembered(limit=QUERIES_REMEMBERED)
_tallies: Remembered[LastAct, Tally] = Remembered(limit=PAIRS_REMEMBERED)


def figures_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Figures]:
    """The figures of queries by key, with their current lists selected along: an annotator's own,
    or without one the consensus of all.

    One SQL query; three more, and a fourth where votes differ, where somebody acted since.
    """
    states = states_of(queries, annotator=annotator)
    keys = {query.pk: _key(query, annotator, states[query.pk]) for query in queries}
    known = _figures.known(keys.values())
    missing = [query for query in queries if keys[query.pk] not in known]
    if missing:
        progress = progress_of(missing, annotator=annotator)
        activity = activity_of(missing, annotator=annotator)
        new = {keys[query.pk]: Figures(progress[query.pk], activity[query.pk]) for query in missing}
        # What was read after a withdrawal that is taken back since would be kept as if it had not
        # been: only what nothing came between stands for its key.
        since = states_of(missing, annotator=annotator)
        same = (query for query in missing if since[query.pk] == states[query.pk])
        _figures.keep({keys[query.pk]: new[keys[query.pk]] for query in same})
        known |= new
    return {pk: known[key] for pk, key in keys.items()}


def _key(query: Query, annotator: Any, state: tuple[str, tuple[int, ...]]) -> Any:
    """All that a query's figures depend on."""
    current = query.current_list
    return (
        query.pk,
        annotator and annotator.pk,
        current and (current.pk, current.size, current.complete),
        settings.STOP_STREAK,
        minimum_labels(query),
        state,
    )


# Each pair by the index of a query's judgments by annotator.
_TALLIES = f"""
SELECT asked.query_id, asked.annotator_id, asked.event, t.*
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) asked (query_id, annotator_id, event)
 CROSS JOIN LATERAL (
     SELECT count(*), count(*) FILTER (WHERE relevance = 'relevant'),
            coalesce(sum(seconds), 0), count(*) FILTER (WHERE seconds > 0), max(updated_at)
       FROM {Judgment._meta.db_table}
      WHERE query_id = asked.query_id AND annotator_id = asked.annotator_id
 ) t
"""


def tallies() -> dict[LastAct, Tally]:
    """What stands of everybody for each query on which they acted. One SQL query, and a second
    where somebody acted since.
    """
    acts = last_acts()
    known = _tallies.known(acts)
    missing = [act for act in acts if act not in known]
    if missing:
        with connection.cursor() as cursor:
            columns = zip(*((act.query, act.annotator, act.event) for act in missing), strict=True)
            cursor.execute(_TALLIES, [list(column) for column in columns])
            new = {LastAct(*row[:3]): Tally(*row[3:]) for row in cursor.fetchall()}
        _tallies.keep(new)
        known |= new
    return known
