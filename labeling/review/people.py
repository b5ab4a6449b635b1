"""One person's labeling: pace, checks over time, and pages submitted faster than one can look."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from core.sql import fetch_all
from labeling.judging.agreement import DECIDED
from labeling.judging.blind import SECOND_OPINIONS
from labeling.judging.models import BlindItem, Judgment, JudgmentEvent
from labeling.queries.models import Query

#: A page of the grid takes longer than so many seconds to look at.
LEAST_SECONDS: Final = 1.0
FAST_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Month:
    """What a person did in a month."""

    begins: datetime
    images: int
    """Judged then for the first time, by the judgments that stand."""
    seconds: float | None
    """Median of the active seconds of those that were timed."""
    checks: int
    """That they answered."""
    right: int


@dataclass(frozen=True, slots=True)
class FastPage:
    """Images that a person submitted at once in less than LEAST_SECONDS."""

    query: Query
    at: datetime
    images: int
    seconds: float


_MONTHS: Final = f"""
WITH judged AS (
    SELECT date_trunc('month', created_at) AS month, count(*) AS images,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FILTER (WHERE seconds > 0) AS pace
      FROM {Judgment._meta.db_table}
     WHERE annotator_id = %(person)s AND source <> 'import' GROUP BY 1
), checked AS (
    SELECT date_trunc('month', answer.acted_at) AS month, count(*) AS checks,
           count(*) FILTER (WHERE answer.relevance = o.relevance) AS right_ones
      FROM {BlindItem._meta.db_table} o
      JOIN {Query._meta.db_table} q ON q.id = o.query_id
     CROSS JOIN LATERAL (
           SELECT e.acted_at, e.relevance FROM {JudgmentEvent._meta.db_table} e
            WHERE e.query_id = o.query_id AND e.image_id = o.image_id
              AND e.annotator_id = o.only_for_id AND e.relevance <> ''
            ORDER BY e.id LIMIT 1) answer
     WHERE o.only_for_id = %(person)s AND o.kind = '{SECOND_OPINIONS.name}'
       AND (%(states)s::text[] IS NULL OR q.state = ANY(%(states)s))
     GROUP BY 1
)
SELECT month, coalesce(images, 0), pace, coalesce(checks, 0), coalesce(right_ones, 0)
  FROM judged FULL JOIN checked USING (month) ORDER BY month DESC
"""


def months_of(person: Any, *, decided: bool) -> list[Month]:
    """A person's months, the latest first; with `decided` only the checks of queries that are
    complete or rejected count, so that nobody can tell from it which image was a check. A check
    counts by the first answer, and unsure is none. One SQL query.
    """
    values = {"person": person.pk, "states": list(DECIDED) if decided else None}
    return [Month(*row) for row in fetch_all(_MONTHS, values)]


_PACE: Final = f"""
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY seconds) FROM {Judgment._meta.db_table}
 WHERE annotator_id = %(person)s AND seconds > 0
"""


def pace_of(person: Any, queries: Collection[int] | None = None) -> float | None:
    """Median active seconds of the person's timed judgments, of these queries alone if they are
    given; None without any. One SQL query, none for no queries.
    """
    if queries is not None and not queries:
        return None
    which = "" if queries is None else " AND query_id = ANY(%(queries)s)"
    values = {"person": person.pk, "queries": list(queries or ())}
    [(pace,)] = fetch_all(_PACE + which, values)
    return pace and float(pace)


# What is submitted at once shares its seconds evenly and has one moment, to the millisecond.
_FAST: Final = f"""
SELECT query_id, min(acted_at), count(*), sum(seconds)
  FROM {JudgmentEvent._meta.db_table}
 WHERE annotator_id = %s AND relevance <> '' AND seconds > 0
 GROUP BY query_id, seconds, date_trunc('second', acted_at)
HAVING count(*) > 1 AND sum(seconds) < {LEAST_SECONDS}
 ORDER BY 2 DESC LIMIT {FAST_SHOWN}
"""


def fast_pages_of(person: Any) -> list[FastPage]:
    """The latest pages that the person submitted faster than one can look, at most FAST_SHOWN. Two
    SQL queries.
    """
    rows = fetch_all(_FAST, [person.pk])
    queries = Query.objects.in_bulk([pk for pk, *_ in rows])
    return [FastPage(queries[pk], *rest) for pk, *rest in rows]
