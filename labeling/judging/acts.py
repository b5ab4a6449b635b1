"""Who acted last on which query: by that, what was computed earlier is known to hold still.

Every judgment, and every taking back of one, is an event with a number of its own, and those of one
annotator are stored one after another. So as long as nobody has a later event on a query, its
judgments are the same. PostgreSQL steps from one annotator to the next along the index of events,
in time by their number and not by that of judgments.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection

from labeling.candidates.models import Candidate
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal

_EVENT = JudgmentEvent._meta.db_table

# The first annotator of each query, then always the next, and none at the end.
_PAIRS = f"""
WITH RECURSIVE pair (query_id, annotator_id) AS (
    SELECT asked.id, (SELECT min(e.annotator_id) FROM {_EVENT} e WHERE e.query_id = asked.id)
      FROM {{asked}} asked (id)
    UNION ALL
    SELECT p.query_id, (SELECT min(e.annotator_id) FROM {_EVENT} e
                         WHERE e.query_id = p.query_id AND e.annotator_id > p.annotator_id)
      FROM pair p WHERE p.annotator_id IS NOT NULL
), act AS (
    SELECT p.query_id, p.annotator_id,
           (SELECT max(e.id) FROM {_EVENT} e
             WHERE e.query_id = p.query_id AND e.annotator_id = p.annotator_id) AS last
      FROM pair p WHERE p.annotator_id IS NOT NULL
)
"""
_OWN = f"""
WITH act AS (
    SELECT asked.id AS query_id, %(annotator)s::bigint AS annotator_id,
           (SELECT max(e.id) FROM {_EVENT} e
             WHERE e.query_id = asked.id AND e.annotator_id = %(annotator)s) AS last
      FROM unnest(%(queries)s::bigint[]) asked (id)
)
"""
# From the few withdrawn images to their places in lists; OFFSET 0 keeps that a look-up of each.
_STATES = f"""
, acts AS (
    SELECT act.query_id, string_agg(concat_ws(' ', act.annotator_id, person.role, act.last), ','
                                    ORDER BY act.annotator_id) AS said
      FROM act JOIN {get_user_model()._meta.db_table} person ON person.id = act.annotator_id
     GROUP BY act.query_id
), gone AS (
    SELECT c.list_id, array_agg(c.rank ORDER BY c.rank) AS ranks
      FROM {ImageWithdrawal._meta.db_table} w CROSS JOIN LATERAL
           (SELECT list_id, rank FROM {Candidate._meta.db_table}
             WHERE image_id = w.image_id OFFSET 0) c
     WHERE w.restored_at IS NULL AND c.list_id = ANY(%(lists)s)
     GROUP BY c.list_id
)
SELECT asked.query_id, acts.said, gone.ranks
  FROM unnest(%(queries)s::bigint[], %(lists)s::bigint[]) asked (query_id, list_id)
  LEFT JOIN acts ON acts.query_id = asked.query_id
  LEFT JOIN gone ON gone.list_id = asked.list_id
"""


@dataclass(frozen=True, slots=True)
class LastAct:
    """The last that somebody did on a query."""

    query: int
    annotator: int
    event: int


def states_of(
    queries: Sequence[Query], *, annotator: Any = None
) -> dict[int, tuple[str, tuple[int, ...]]]:
    """What the labels of each query rest on, by its key: the last event of everybody who judged for
    it (or of one annotator) with their roles, and the withdrawn ranks of its current list. As long
    as it is the same, so are the labels that count. One SQL query.
    """
    values = {
        "queries": [query.pk for query in queries],
        "lists": [query.current_list_id for query in queries],
        "annotator": None if annotator is None else annotator.pk,
    }
    with connection.cursor() as cursor:
        acts = _OWN if annotator else _PAIRS.format(asked="unnest(%(queries)s::bigint[])")
        cursor.execute(acts + _STATES, values)
        return {pk: (said or "", tuple(ranks or ())) for pk, said, ranks in cursor.fetchall()}


def last_acts() -> list[LastAct]:
    """The last act of everybody on each query. One SQL query."""
    with connection.cursor() as cursor:
        cursor.execute(
            _PAIRS.format(asked=f"(SELECT id FROM {Query._meta.db_table})")
            + "SELECT query_id, annotator_id, last FROM act"
        )
        return [LastAct(*row) for row in cursor.fetchall()]
