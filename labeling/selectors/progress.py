"""How far a query is labelled, by one annotator or by the consensus of all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Count, Max, Q, Sum

from labeling.consensus import Consensus, Vote, consensus_by_key
from labeling.models import Candidate, Judgment, Query
from labeling.stopping import NOT_RELEVANT, RELEVANT, UNSURE, StopState, stop_state


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts over the current list of a query; all zero while there is none or it isn't ready."""

    candidates: int
    """Candidates in the list."""
    judged: int
    relevant: int
    unsure: int
    """Overall: images for a reviewer to decide, as `Consensus.unsure` has it."""
    streak: int
    """Consecutive negatives at the end of the labelled prefix."""
    prefix: int
    """Ranks 1..prefix are all judged."""
    remaining: int
    next_rank: int | None
    """The first rank without a judgment."""
    seconds_per_image: float | None
    """Mean active seconds over the timed judgments of the query; None if there is none."""
    stop: StopState


@dataclass(frozen=True, slots=True)
class Activity:
    """What was done for one query (by one annotator, or by all)."""

    judgments: int = 0
    annotators: int = 0
    last_activity: datetime | None = None
    seconds_per_image: float | None = None


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """One annotator's own progress on a query."""

    user_id: int
    username: str
    progress: Progress


@dataclass(slots=True)
class _Labels:
    """What counts at the judged ranks of one list."""

    ranks: dict[str, list[int]] = field(default_factory=dict)
    """By relevance."""
    unsure: int = 0

    def pairs(self) -> Iterator[tuple[int, str]]:
        for relevance, ranks in self.ranks.items():
            yield from ((rank, relevance) for rank in ranks)


def progress(query: Query, annotator: Any = None) -> Progress:
    """The progress of one query: an annotator's own, or without one the consensus of all."""
    return progress_of([query], annotator=annotator)[query.pk]


def progress_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Progress]:
    """The progress of many queries by primary key, with the current lists selected along.

    Two SQL queries, and a third where votes differ, however many queries there are.
    """
    labels = _labels(queries, annotator)
    activity = activity_of(queries, annotator=annotator)
    return {query.pk: _progress(query, labels[query.pk], activity[query.pk]) for query in queries}


def activity_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Activity]:
    """Judgments, annotators, last activity and pace of each query by key, in one SQL query."""
    judgments = Judgment.objects.filter(query__in=[query.pk for query in queries])
    if annotator is not None:
        judgments = judgments.filter(annotator=annotator)
    found = {
        row["query"]: Activity(
            judgments=row["judgments"],
            annotators=row["annotators"],
            last_activity=row["last"],
            seconds_per_image=row["active"] / row["timed"] if row["timed"] else None,
        )
        for row in judgments.order_by()
        .values("query")
        .annotate(
            judgments=Count("pk"),
            annotators=Count("annotator", distinct=True),
            last=Max("updated_at"),
            active=Sum("seconds"),
            timed=Count("pk", filter=Q(seconds__gt=0)),
        )
    }
    return {query.pk: found.get(query.pk, Activity()) for query in queries}


def annotators_of(query: Query) -> list[AnnotatorProgress]:
    """Everybody who has judged for the query with their own progress, by name."""
    people = (
        get_user_model()
        .objects.filter(pk__in=Judgment.objects.filter(query=query).values("annotator"))
        .order_by("username")
    )
    return [
        AnnotatorProgress(person.pk, person.get_username(), progress(query, annotator=person))
        for person in people
    ]


def _progress(query: Query, labels: _Labels, activity: Activity) -> Progress:
    current = query.current_list
    stop = stop_state(
        labels.pairs(),
        length=current.size if current else 0,
        complete=current is not None and current.complete,
        streak_required=settings.STOP_STREAK,
    )
    return Progress(
        candidates=stop.length,
        judged=stop.judged,
        relevant=stop.relevant,
        unsure=labels.unsure,
        streak=stop.streak,
        prefix=stop.prefix,
        remaining=stop.remaining,
        next_rank=stop.next_rank,
        seconds_per_image=activity.seconds_per_image,
        stop=stop,
    )


# A judgment made in the current list knows its rank there; the others (imported, or of an earlier
# list) are looked up. Where all votes of an image agree, that is the consensus; the rest is asked
# for apart.
_LABELS = """
WITH vote AS (
    SELECT j.query_id, j.image_id, j.rank, j.relevance
      FROM {judgment} j JOIN {query} q ON q.id = j.query_id
     WHERE j.query_id = ANY(%(queries)s) AND j.candidate_list_id = q.current_list_id
           AND j.rank IS NOT NULL {own}
    UNION ALL
    SELECT j.query_id, j.image_id, c.rank, j.relevance
      FROM {judgment} j JOIN {query} q ON q.id = j.query_id
      JOIN {candidate} c ON c.list_id = q.current_list_id AND c.image_id = j.image_id
     WHERE j.query_id = ANY(%(queries)s)
           AND (j.candidate_list_id IS DISTINCT FROM q.current_list_id OR j.rank IS NULL) {own}
), image AS (
    SELECT query_id, image_id, rank, min(relevance) AS low, max(relevance) AS high
      FROM vote GROUP BY query_id, image_id, rank
)
SELECT query_id,
       array_agg(rank) FILTER (WHERE low = high AND low = 'relevant'),
       array_agg(rank) FILTER (WHERE low = high AND low = 'not_relevant'),
       array_agg(rank) FILTER (WHERE low = high AND low = 'unsure'),
       array_agg(rank) FILTER (WHERE low <> high),
       array_agg(image_id) FILTER (WHERE low <> high)
  FROM image GROUP BY query_id
"""


def _labels(queries: Sequence[Query], annotator: Any) -> dict[int, _Labels]:
    """What counts at each judged rank of each query's current list."""
    sql = _LABELS.format(
        judgment=Judgment._meta.db_table,
        query=Query._meta.db_table,
        candidate=Candidate._meta.db_table,
        own="" if annotator is None else "AND j.annotator_id = %(annotator)s",
    )
    values = {
        "queries": [query.pk for query in queries],
        "annotator": None if annotator is None else annotator.pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows = cursor.fetchall()
    labels = {query.pk: _Labels() for query in queries}
    contested: dict[tuple[int, int], int] = {}
    for query_pk, relevant, negative, unsure, ranks, image_ids in rows:
        found = labels[query_pk]
        found.ranks = {RELEVANT: relevant or [], NOT_RELEVANT: negative or [], UNSURE: unsure or []}
        found.unsure = len(unsure or ())
        contested |= {
            (query_pk, image_id): rank
            for rank, image_id in zip(ranks or (), image_ids or (), strict=True)
        }
    for pair, agreed in _agreements(contested):
        found = labels[pair[0]]
        found.ranks[RELEVANT if agreed.relevant else NOT_RELEVANT].append(contested[pair])
        found.unsure += agreed.unsure
    return labels


def _agreements(
    contested: Mapping[tuple[int, int], int],
) -> Iterator[tuple[tuple[int, int], Consensus]]:
    """The consensus of each (query, image) on which votes differ."""
    if not contested:
        return
    query_pks, image_ids = zip(*contested, strict=True)
    votes = Judgment.objects.filter(query__in=set(query_pks), image__in=set(image_ids))
    rows = votes.order_by("query_id", "image_id").values_list(
        "query_id", "image_id", "annotator_id", "annotator__role", "relevance", "updated_at"
    )
    yield from consensus_by_key(
        ((query_pk, image_id), Vote(annotator, role, relevance, at))
        for query_pk, image_id, annotator, role, relevance, at in rows
        if (query_pk, image_id) in contested
    )
