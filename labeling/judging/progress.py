"""How far a query is labeled, by one annotator or by the consensus of all."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.db.models import Count, Max, QuerySet

from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.candidates.rules import HandInRule, parse_rule
from labeling.candidates.selectors import has_own_filter
from labeling.candidates.stopping import NOT_RELEVANT, RELEVANT, UNSURE, StopState, stop_state
from labeling.judging.consensus import Consensus, Vote, consensus_by_key
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.sources import OUTSIDE_LIST
from labeling.queries.models import Assignment, Query
from retrieval.corpus.models import ImageWithdrawal


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts over the current list of a query; all zero while there is none or it isn't ready."""

    stop: StopState
    """The stop rules, and the counts that they depend on."""
    unsure: int
    """Overall: images for a reviewer to decide, as `Consensus.unsure` has it."""
    seconds_per_image: float | None
    """Mean active seconds over the timed judgments of the query; None if there is none."""
    active_seconds: float
    """Active seconds spent on the query in all, on judgments taken back too."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Who judged for one query, and when last: of one annotator or of all."""

    annotators: int = 0
    last_activity: datetime | None = None


@dataclass(frozen=True, slots=True)
class AnnotatorProgress:
    """One annotator's own progress on a query."""

    user_id: int
    username: str
    progress: Progress
    assignment: Assignment | None
    """Their part, once it is handed in."""


@dataclass(slots=True)
class _ListLabels:
    """The labels of one query's list, by rank."""

    ranks: dict[str, list[int]] = field(default_factory=dict)
    """The judged ranks by relevance."""
    outside_list: list[int] = field(default_factory=list)
    """Ranks judged only outside the list's order (`OUTSIDE_LIST`)."""
    withdrawn: list[int] = field(default_factory=list)
    unsure: int = 0
    seconds_per_image: float | None = None
    active_seconds: float = 0.0

    def pairs(self) -> Iterator[tuple[int, str]]:
        for relevance, ranks in self.ranks.items():
            yield from ((rank, relevance) for rank in ranks)


def minimum_labels(query: Query) -> int:
    """The number of labels required before the streak rule applies (INQUIRE, appendix H).

    0 for a query with a species filter: its list is short enough to be labeled whole. One of the
    benchmark alone is a corpus of its own.
    """
    current = query.current_list
    filtered = current is not None and has_own_filter(current, query)
    return 0 if filtered else settings.MINIMUM_LABELS


def hand_in_rule(query: Query) -> HandInRule:
    """The rule that allows to hand the query in: its own, or the setting's."""
    return parse_rule(query.hand_in_rule or query.benchmark.setting("HAND_IN_RULE"))


def progress(query: Query, annotator: Any = None) -> Progress:
    """The progress of one query: an annotator's own, or without one the consensus of all."""
    return progress_of([query], annotator=annotator)[query.pk]


def progress_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Progress]:
    """The progress of many queries by primary key, with the current lists selected along.

    One SQL query, and a second where votes differ, however many queries there are.
    """
    labels = _list_labels(queries, annotator)
    return {query.pk: _progress(query, labels[query.pk]) for query in queries}


def activity_of(queries: Sequence[Query], *, annotator: Any = None) -> dict[int, Activity]:
    """The annotators and last activity of each query by primary key, in one SQL query."""
    judgments = Judgment.objects.filter(query__in=[query.pk for query in queries])
    if annotator is not None:
        judgments = judgments.filter(annotator=annotator)
    activities = {
        query_pk: Activity(annotators, last)
        for query_pk, annotators, last in judgments.order_by()
        .values("query")
        .annotate(annotators=Count("annotator", distinct=True), last=Max("updated_at"))
        .values_list("query", "annotators", "last")
    }
    return {query.pk: activities.get(query.pk, Activity()) for query in queries}


def annotators_of(query: Query) -> list[AnnotatorProgress]:
    """Everybody who has judged for the query with their own progress, by name."""
    people = (
        get_user_model()
        .objects.filter(pk__in=JudgmentEvent.objects.filter(query=query).values("annotator"))
        .order_by("username")
    )
    parts = {part.annotator_id: part for part in query.assignments.all()}
    return [
        AnnotatorProgress(
            person.pk,
            person.get_username(),
            progress(query, annotator=person),
            parts.get(person.pk),
        )
        for person in people
    ]


def _progress(query: Query, labels: _ListLabels) -> Progress:
    current = query.current_list
    stop = stop_state(
        labels.pairs(),
        length=current.size if current else 0,
        complete=current is not None and current.complete,
        streak_required=settings.STOP_STREAK,
        minimum=minimum_labels(query),
        withdrawn=labels.withdrawn,
        outside_list=labels.outside_list,
    )
    return Progress(stop, labels.unsure, labels.seconds_per_image, labels.active_seconds)


# The lists and their sizes are those that the caller has read, so that every rank fits its list.
#
# A judgment made in the list knows its rank there; the others (imported, or of an earlier list) are
# looked up. Where all votes of an image agree, that is the consensus; the rest takes another query.
_LABELS = f"""
WITH target AS (
    SELECT * FROM unnest(%(queries)s::bigint[], %(lists)s::bigint[], %(sizes)s::int[])
                  AS target (query_id, list_id, size)
), withdrawn AS (
    SELECT image_id FROM {ImageWithdrawal._meta.db_table} WHERE restored_at IS NULL
), vote AS MATERIALIZED (
    SELECT j.query_id, j.image_id, j.relevance, j.source, j.seconds, target.size,
           j.image_id IN (SELECT image_id FROM withdrawn) AS withdrawn,
           CASE WHEN j.candidate_list_id = target.list_id AND j.rank IS NOT NULL THEN j.rank
                ELSE (SELECT c.rank FROM {Candidate._meta.db_table} c
                       WHERE c.list_id = target.list_id AND c.image_id = j.image_id)
            END AS rank
      FROM target JOIN {Judgment._meta.db_table} j ON j.query_id = target.query_id
     WHERE j.query_id = ANY(%(queries)s) {{own}}
), image AS (
    {{image}}
), label AS (
    SELECT query_id,
           array_agg(rank) FILTER (WHERE relevance = 'relevant') AS relevant,
           array_agg(rank) FILTER (WHERE relevance = 'not_relevant') AS negative,
           array_agg(rank) FILTER (WHERE relevance = 'unsure') AS unsure,
           array_agg(rank) FILTER (WHERE relevance = 'contested') AS contested,
           array_agg(image_id) FILTER (WHERE relevance = 'contested') AS contested_images,
           array_agg(rank) FILTER (WHERE relevance <> '' AND outside_list) AS outside_list,
           sum(seconds) / nullif(sum(timed), 0) AS mean_seconds
      FROM image
     GROUP BY query_id
)
SELECT target.query_id, relevant, negative, unsure, outside_list,
       ARRAY(SELECT c.rank FROM withdrawn JOIN {Candidate._meta.db_table} c USING (image_id)
              WHERE c.list_id = target.list_id AND c.rank <= target.size) AS withdrawn,
       mean_seconds,
       (SELECT sum(j.seconds) FROM {JudgmentEvent._meta.db_table} j
         WHERE j.query_id = target.query_id {{own}}) AS total_seconds,
       contested, contested_images
  FROM target LEFT JOIN label USING (query_id)
"""
_OWN = _LABELS.format(
    own="AND j.annotator_id = %(annotator)s",
    image="""
    SELECT query_id, image_id, rank,
           CASE WHEN withdrawn OR rank IS NULL OR rank > size THEN ''
                ELSE relevance END AS relevance,
           source = ANY(%(elsewhere)s) AS outside_list, seconds, (seconds > 0)::int AS timed
      FROM vote
    """,
)
_CONSENSUS = _LABELS.format(
    own="",
    image="""
    SELECT query_id, image_id, rank,
           CASE WHEN withdrawn OR rank IS NULL OR rank > size THEN ''
                WHEN min(relevance) = max(relevance) THEN min(relevance) ELSE 'contested'
            END AS relevance,
           bool_and(source = ANY(%(elsewhere)s)) AS outside_list,
           sum(seconds) AS seconds, count(*) FILTER (WHERE seconds > 0) AS timed
      FROM vote GROUP BY query_id, image_id, rank, withdrawn, size
    """,
)


def _list_labels(queries: Sequence[Query], annotator: Any) -> dict[int, _ListLabels]:
    """The labels of each query's current list, by the query's primary key."""
    lists = [query.current_list for query in queries]
    values = {
        "queries": [query.pk for query in queries],
        "lists": [current.pk if current else None for current in lists],
        "sizes": [current.size if current else 0 for current in lists],
        "annotator": None if annotator is None else annotator.pk,
        "elsewhere": list(OUTSIDE_LIST),
    }
    rows = fetch_all(_CONSENSUS if annotator is None else _OWN, values)
    by_query: dict[int, _ListLabels] = {}
    contested: dict[tuple[int, int], int] = {}
    for (
        query_pk,
        relevant,
        negative,
        unsure,
        outside_list,
        withdrawn,
        mean_seconds,
        total_seconds,
        ranks,
        images,
    ) in rows:
        by_query[query_pk] = _ListLabels(
            ranks={RELEVANT: relevant or [], NOT_RELEVANT: negative or [], UNSURE: unsure or []},
            outside_list=outside_list or [],
            withdrawn=withdrawn or [],
            unsure=len(unsure or ()),
            seconds_per_image=mean_seconds,
            active_seconds=total_seconds or 0.0,
        )
        contested |= {
            (query_pk, image_id): rank
            for rank, image_id in zip(ranks or (), images or (), strict=True)
        }
    for pair, agreed in consensus_on(contested):
        labels = by_query[pair[0]]
        labels.ranks[RELEVANT if agreed.relevant else NOT_RELEVANT].append(contested[pair])
        labels.unsure += agreed.unsure
    return by_query


def consensus_on(
    contested: Collection[tuple[int, int]],
) -> Iterator[tuple[tuple[int, int], Consensus]]:
    """The consensus on each of these (query, image), in one SQL query; none for none."""
    if not contested:
        return
    query_pks, image_ids = zip(*contested, strict=True)
    judgments = Judgment.objects.filter(query__in=set(query_pks), image__in=set(image_ids))
    yield from consensus_by_key(
        (pair, vote) for pair, vote in votes_of(judgments) if pair in contested
    )


def votes_of(judgments: QuerySet[Judgment]) -> Iterator[tuple[tuple[int, int], Vote]]:
    """Each judgment's (query, image) and vote, those of one pair together; one SQL query."""
    rows = judgments.order_by("query_id", "image_id").values_list(
        *("query_id", "image_id", "annotator_id", "annotator__role", "relevance", "updated_at"),
        "grade",
    )
    for query_pk, image_id, *vote in rows:
        yield (query_pk, image_id), Vote(*vote)


def relevant_images(query: Query, among: Collection[int] | None = None) -> list[int]:
    """The images that people agree to be relevant for a query, of all or of these, by id; one SQL
    query.
    """
    return list(relevant_grades(query, among))


def relevant_grades(query: Query, among: Collection[int] | None = None) -> dict[int, int]:
    """The grade on which people agree of each of `relevant_images`; one SQL query."""
    judgments = Judgment.objects.filter(query=query)
    if among is not None:
        judgments = judgments.filter(image__in=among)
    agreed_on = consensus_by_key(votes_of(judgments))
    return {image_id: agreed.grade for (_, image_id), agreed in agreed_on if agreed.relevant}
