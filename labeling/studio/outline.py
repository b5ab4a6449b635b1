"""What the labeling page knows of a candidate list: all of it in short, then what changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.utils import timezone

from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.comments.selectors import comment_counts
from labeling.judging.access import counted_for
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.sources import JudgmentSource
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.models import ImageFlag


@dataclass(frozen=True, slots=True)
class Outline:
    """A person's summary of the current list; position n (from 0) is rank n + 1.

    All empty while the list isn't ready.
    """

    images: list[int]
    """Image ids."""
    scores: list[float]
    """Cosine similarity to the query's text, 4 decimals."""
    relevance: str
    """The person's own judgments, a letter a rank: r(elevant), n(ot relevant), u(nsure), - none."""
    sources: str
    """Where they were made: l(ist), s(earch), m(ore like this), a(udit), i(mport), o(rder that
    learns), b(lindly, a second opinion), - none."""
    grades: str
    """The person's own grades, a digit a rank, - none; empty where the query asks for none."""
    withdrawn: list[int]
    """Ranks, ascending."""
    flagged: list[int]
    """Ranks with an open flag, ascending."""
    cursor: int
    """The id of the person's latest event; `changes_since` continues from it."""


_LETTERS: Final = " ".join(f"WHEN '{source}' THEN '{source.letter}'" for source in JudgmentSource)
# One statement, hence one snapshot: no event falls between the labels and the cursor.
_OUTLINE = f"""
SELECT (SELECT max(e.id) FROM {JudgmentEvent._meta.db_table} e
         WHERE e.query_id = %(query)s AND e.annotator_id = %(user)s),
       array_agg(c.image_id ORDER BY c.rank),
       array_agg(round(c.score::numeric, 4)::float8 ORDER BY c.rank),
       string_agg(CASE j.relevance WHEN 'relevant' THEN 'r' WHEN 'not_relevant' THEN 'n'
                                   WHEN 'unsure' THEN 'u' ELSE '-' END, '' ORDER BY c.rank),
       string_agg(CASE j.source {_LETTERS} ELSE '-' END, '' ORDER BY c.rank),
       string_agg(coalesce(j.grade::text, '-'), '' ORDER BY c.rank) FILTER (WHERE %(graded)s),
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
    values = {
        "query": query.pk,
        "user": user.pk,
        "list": query.current_list_id,
        "size": current.size if current else 0,
        "graded": bool(query.grades),
    }
    [row] = fetch_all(_OUTLINE, values)
    last, images, scores, relevance, sources, grades, withdrawn, flagged = row
    return Outline(
        images=images or [],
        scores=scores or [],
        relevance=relevance or "",
        sources=sources or "",
        grades=grades or "",
        withdrawn=withdrawn or [],
        flagged=flagged or [],
        cursor=last or 0,
    )


MOST_EVENTS = 1000
RECENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class OwnChange:
    """The latest change of a person's judgment of an image."""

    image: int
    rank: int | None
    """In the current list."""
    relevance: str | None
    """None: taken back."""
    source: str
    grade: int | None


@dataclass(frozen=True, slots=True)
class OtherAnnotator:
    """Somebody else who judged for the query recently, without their judgments."""

    annotator: str
    judged: int
    """Images of the query that they have judged, ever."""
    last: datetime


@dataclass(frozen=True, slots=True)
class Changes:
    """What changed on a query for one person since a cursor."""

    cursor: int
    """The id of the latest event in `own`, or the cursor that was sent."""
    own: list[OwnChange]
    """Of the person's own next MOST_EVENTS events, the last of each image, in order."""
    withdrawn: list[int]
    """Ranks of the current list, ascending."""
    flagged: list[int]
    """Ranks with an open flag, ascending."""
    others: list[OtherAnnotator]
    """By name; nobody for an annotator, who labels without knowing what others do."""
    comments: list[dict[str, int]]
    """How many comments each image has, of those that the person may read."""


def changes_since(*, query: Query, user: Any, cursor: int) -> Changes:
    """What a person judged for a query since `cursor` (an event id; 0 for all), and the state
    of its list and, for reviewers, of other annotators.

    One annotator's events are stored one after another, so none appears later before a cursor.
    At most four SQL queries, each by an index.
    """
    events = fetch_all(_OWN, [query.current_list_id, query.pk, user.pk, cursor])
    latest: dict[int, OwnChange] = {}
    for _, image_id, relevance, source, grade, rank in events:
        latest.pop(image_id, None)  # ordered by the last event
        latest[image_id] = OwnChange(image_id, rank, relevance or None, source, grade)
    marked = fetch_all(_WITHDRAWN_AND_FLAGGED, [query.current_list_id])
    values = {"query": query.pk, "user": user.pk, "since": timezone.now() - RECENT}
    return Changes(
        cursor=events[-1][0] if events else cursor,
        own=list(latest.values()),
        withdrawn=[rank for flagged, rank in marked if not flagged],
        flagged=[rank for flagged, rank in marked if flagged],
        others=[OtherAnnotator(*row) for row in fetch_all(_OTHERS, values)]
        if counted_for(user) is None
        else [],
        comments=comment_counts(user, query),
    )


_OWN = f"""
SELECT e.id, e.image_id, e.relevance, e.source, e.grade, c.rank
  FROM {JudgmentEvent._meta.db_table} e
  LEFT JOIN {Candidate._meta.db_table} c ON c.list_id = %s AND c.image_id = e.image_id
 WHERE e.query_id = %s AND e.annotator_id = %s AND e.id > %s
 ORDER BY e.id LIMIT {MOST_EVENTS}
"""


# From the few withdrawn or flagged images to their ranks, not through the list.
_WITHDRAWN_AND_FLAGGED = f"""
SELECT marked.flagged, c.rank
  FROM (SELECT false AS flagged, image_id FROM {ImageWithdrawal._meta.db_table}
         WHERE restored_at IS NULL
        UNION
        SELECT true, image_id FROM {ImageFlag._meta.db_table} WHERE state = 'open') marked
  JOIN {Candidate._meta.db_table} c ON c.list_id = %s AND c.image_id = marked.image_id
 ORDER BY c.rank
"""


_OTHERS = f"""
SELECT person.{get_user_model().USERNAME_FIELD},
       (SELECT count(*) FROM {Judgment._meta.db_table} j
         WHERE j.query_id = %(query)s AND j.annotator_id = recent.annotator_id),
       recent.last
  FROM (SELECT annotator_id, max(updated_at) AS last FROM {Judgment._meta.db_table}
         WHERE query_id = %(query)s AND updated_at >= %(since)s AND annotator_id <> %(user)s
         GROUP BY annotator_id) recent
  JOIN {get_user_model()._meta.db_table} person ON person.id = recent.annotator_id
 ORDER BY 1
"""
