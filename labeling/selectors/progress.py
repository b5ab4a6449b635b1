"""How far a query is labelled, by one annotator or by the consensus of all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Count, Max, Q, Sum

from labeling.consensus import Vote, consensus
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


@dataclass(frozen=True, slots=True)
class _Label:
    rank: int
    relevance: str
    unsure: bool


def progress(query: Query, annotator: Any = None) -> Progress:
    """The progress of one query: an annotator's own, or without one the consensus of all."""
    return progress_of([query], annotator=annotator)[query.pk]


def progress_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Progress]:
    """The progress of many queries by primary key, in two SQL queries (the current lists selected
    along).
    """
    labels = _labels(queries, annotator)
    activity = activity_of(queries, annotator=annotator)
    return {
        query.pk: _progress(query, labels.get(query.pk, ()), activity[query.pk])
        for query in queries
    }


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


def _progress(query: Query, labels: Iterable[_Label], activity: Activity) -> Progress:
    current = query.current_list
    labels = list(labels)
    stop = stop_state(
        ((label.rank, label.relevance) for label in labels),
        length=current.size if current else 0,
        complete=current is not None and current.complete,
        streak_required=settings.STOP_STREAK,
    )
    return Progress(
        candidates=stop.length,
        judged=stop.judged,
        relevant=stop.relevant,
        unsure=sum(label.unsure for label in labels),
        streak=stop.streak,
        prefix=stop.prefix,
        remaining=stop.remaining,
        next_rank=stop.next_rank,
        seconds_per_image=activity.seconds_per_image,
        stop=stop,
    )


# Most images have one judgment, which is then what counts; only where people share one are the
# votes sent along.
_LABELS = """
SELECT j.query_id, c.rank,
       CASE WHEN count(*) = 1 THEN min(j.relevance) END,
       CASE WHEN count(*) > 1 THEN json_agg(json_build_array(
           j.annotator_id, u.role, j.relevance, extract(epoch FROM j.updated_at))) END
  FROM {judgment} j
  JOIN {query} q ON q.id = j.query_id
  JOIN {candidate} c ON c.list_id = q.current_list_id AND c.image_id = j.image_id
  JOIN {user} u ON u.id = j.annotator_id
 WHERE j.query_id = ANY(%s) {own}
 GROUP BY j.query_id, c.rank
"""


def _labels(queries: Sequence[Query], annotator: Any) -> dict[int, list[_Label]]:
    """What counts at each judged rank of each query's current list."""
    sql = _LABELS.format(
        judgment=Judgment._meta.db_table,
        query=Query._meta.db_table,
        candidate=Candidate._meta.db_table,
        user=get_user_model()._meta.db_table,
        own="" if annotator is None else "AND j.annotator_id = %s",
    )
    values: list[Any] = [[query.pk for query in queries]]
    if annotator is not None:
        values.append(annotator.pk)
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows = cursor.fetchall()
    labels: defaultdict[int, list[_Label]] = defaultdict(list)
    for query_pk, rank, relevance, votes in rows:
        labels[query_pk].append(
            _Label(rank, relevance, relevance == UNSURE) if votes is None else _agreed(rank, votes)
        )
    return labels


def _agreed(rank: int, votes: list[list[Any]]) -> _Label:
    agreed = consensus(Vote(*vote) for vote in votes)
    return _Label(rank, RELEVANT if agreed.relevant else NOT_RELEVANT, agreed.unsure)
