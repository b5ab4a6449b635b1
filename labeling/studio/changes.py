"""What is new on a query that somebody is labeling: asked every few seconds by everybody."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.db import connection
from django.utils import timezone

from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.queries.models import Query
from retrieval.corpus.models import ImageWithdrawal
from retrieval.flags.models import ImageFlag

MOST_EVENTS = 1000
RECENT = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class OwnChange:
    """The last thing that a person said of an image."""

    image: int
    rank: int | None
    """In the current list."""
    relevance: str | None
    """None: taken back."""
    source: str


@dataclass(frozen=True, slots=True)
class OtherAnnotator:
    """Somebody else who judged for the query of late; never what they said."""

    annotator: str
    judged: int
    """Images of the query that they have judged, ever."""
    last: datetime


@dataclass(frozen=True, slots=True)
class Changes:
    cursor: int
    """The last act of judging that is in `own`, or the one asked from."""
    own: list[OwnChange]
    """Of the person's own next MOST_EVENTS acts, the last of each image, in their order."""
    withdrawn: list[int]
    """Ranks of the current list, ascending."""
    flagged: list[int]
    """Ranks with an open flag, ascending."""
    others: list[OtherAnnotator]
    """By name."""


def changes_since(*, query: Query, user: Any, cursor: int) -> Changes:
    """What a person judged for a query since an act of theirs (0: since the first), and how its
    list and the others stand.

    The acts of one annotator are stored one after another, so none turns up later behind a cursor.
    Three SQL queries, each by an index.
    """
    events = _own_events(query, user, cursor)
    latest: dict[int, OwnChange] = {}
    for _, image_id, relevance, source, rank in events:
        latest.pop(image_id, None)  # so that it stands where it was said last
        latest[image_id] = OwnChange(image_id, rank, relevance or None, source)
    withdrawn, flagged = _set_aside(query)
    return Changes(
        cursor=events[-1][0] if events else cursor,
        own=list(latest.values()),
        withdrawn=withdrawn,
        flagged=flagged,
        others=_others(query, user),
    )


_OWN = f"""
SELECT e.id, e.image_id, e.relevance, e.source, c.rank
  FROM {JudgmentEvent._meta.db_table} e
  LEFT JOIN {Candidate._meta.db_table} c ON c.list_id = %s AND c.image_id = e.image_id
 WHERE e.query_id = %s AND e.annotator_id = %s AND e.id > %s
 ORDER BY e.id LIMIT {MOST_EVENTS}
"""


def _own_events(
    query: Query, user: Any, cursor: int
) -> list[tuple[int, int, str, str, int | None]]:
    with connection.cursor() as database:
        database.execute(_OWN, [query.current_list_id, query.pk, user.pk, cursor])
        return database.fetchall()


# From the few images that are set aside to their ranks, not through the list.
_SET_ASIDE = f"""
SELECT aside.flagged, c.rank
  FROM (SELECT false AS flagged, image_id FROM {ImageWithdrawal._meta.db_table}
         WHERE restored_at IS NULL
        UNION
        SELECT true, image_id FROM {ImageFlag._meta.db_table} WHERE state = 'open') aside
  JOIN {Candidate._meta.db_table} c ON c.list_id = %s AND c.image_id = aside.image_id
 ORDER BY c.rank
"""


def _set_aside(query: Query) -> tuple[list[int], list[int]]:
    """The withdrawn and the flagged ranks of the current list."""
    with connection.cursor() as database:
        database.execute(_SET_ASIDE, [query.current_list_id])
        rows = database.fetchall()
    return [rank for flagged, rank in rows if not flagged], [
        rank for flagged, rank in rows if flagged
    ]


_OTHERS = f"""
SELECT person.{get_user_model().USERNAME_FIELD}, recent.last,
       (SELECT count(*) FROM {Judgment._meta.db_table} j
         WHERE j.query_id = %(query)s AND j.annotator_id = recent.annotator_id)
  FROM (SELECT annotator_id, max(updated_at) AS last FROM {Judgment._meta.db_table}
         WHERE query_id = %(query)s AND updated_at >= %(since)s AND annotator_id <> %(user)s
         GROUP BY annotator_id) recent
  JOIN {get_user_model()._meta.db_table} person ON person.id = recent.annotator_id
 ORDER BY 1
"""


def _others(query: Query, user: Any) -> list[OtherAnnotator]:
    since = timezone.now() - RECENT
    with connection.cursor() as database:
        database.execute(_OTHERS, {"query": query.pk, "user": user.pk, "since": since})
        rows = database.fetchall()
    return [OtherAnnotator(name, judged, last) for name, last, judged in rows]
