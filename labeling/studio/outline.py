"""A whole candidate list in short: what a labeling page must know of every rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import connection

from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.models import ImageFlag


@dataclass(frozen=True, slots=True)
class Outline:
    """The current list for one person; position n (from 0) is rank n + 1.

    All empty while the list isn't ready.
    """

    images: list[int]
    """Ids."""
    scores: list[float]
    """Cosine similarity to the query's text, 4 decimals."""
    relevance: str
    """The person's own judgments, a letter a rank: r(elevant), n(ot relevant), u(nsure), - none."""
    sources: str
    """Where those were made: l(ist), s(earch), m(ore like this), i(mport), - none."""
    withdrawn: list[int]
    """Ranks, ascending."""
    flagged: list[int]
    """Ranks with an open flag, ascending."""
    cursor: int
    """The person's last act of judging that is in here; `changes_since` goes on from it."""


# One statement, hence one snapshot: no act of judging falls between the labels and the cursor.
_OUTLINE = f"""
SELECT (SELECT max(e.id) FROM {JudgmentEvent._meta.db_table} e
         WHERE e.query_id = %(query)s AND e.annotator_id = %(user)s),
       array_agg(c.image_id ORDER BY c.rank),
       array_agg(round(c.score::numeric, 4)::float8 ORDER BY c.rank),
       string_agg(CASE j.relevance WHEN 'relevant' THEN 'r' WHEN 'not_relevant' THEN 'n'
                                   WHEN 'unsure' THEN 'u' ELSE '-' END, '' ORDER BY c.rank),
       string_agg(CASE j.source WHEN 'list' THEN 'l' WHEN 'search' THEN 's'
                                WHEN 'similar' THEN 'm' WHEN 'import' THEN 'i' ELSE '-' END,
                  '' ORDER BY c.rank),
       array_agg(c.rank ORDER BY c.rank) FILTER (WHERE w.image_id IS NOT NULL),
       array_agg(c.rank ORDER BY c.rank) FILTER (WHERE f.image_id IS NOT NULL)
  FROM {Candidate._meta.db_table} c
  LEFT JOIN {Judgment._meta.db_table} j
         ON j.query_id = %(query)s AND j.annotator_id = %(user)s AND j.image_id = c.image_id
  LEFT JOIN {ImageWithdrawal._meta.db_table} w
         ON w.image_id = c.image_id AND w.restored_at IS NULL
  LEFT JOIN (SELECT DISTINCT image_id FROM {ImageFlag._meta.db_table} WHERE state = 'open') f
         ON f.image_id = c.image_id
 WHERE c.list_id = %(list)s AND c.rank <= %(size)s
"""


def outline(*, query: Query, user: Any) -> Outline:
    """The current list in short, with a person's own labels. One SQL query."""
    current = query.current_list
    ready = current is not None and current.ready
    with connection.cursor() as cursor:
        cursor.execute(
            _OUTLINE,
            {
                "query": query.pk,
                "user": user.pk,
                "list": current.pk if current and ready else None,
                "size": current.size if current else 0,
            },
        )
        [(last, images, scores, relevance, sources, withdrawn, flagged)] = cursor.fetchall()
    return Outline(
        images=images or [],
        scores=scores or [],
        relevance=relevance or "",
        sources=sources or "",
        withdrawn=withdrawn or [],
        flagged=flagged or [],
        cursor=last or 0,
    )
