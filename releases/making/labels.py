"""Queries, judgments and ranks of a release, streamed from the database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.db.models import Count, F, OuterRef, Q, QuerySet, Subquery

from labeling.candidates.models import Candidate
from labeling.candidates.pools import model_ranks
from labeling.judging.blind import RELEASE_AUDIT, waiting_for_anybody
from labeling.judging.consensus import Vote
from labeling.judging.models import Judgment
from labeling.queries.categories import supercategory_of
from labeling.queries.models import Assignment, Benchmark, Query
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import ModelRank, SnapshotQuery
from retrieval.flags.selectors import is_withdrawn

# Rows held at a time while streaming.
CHUNK = 5000


@dataclass(slots=True)
class Effort:
    """The work on the labels of one query."""

    annotators: int = 0
    seconds: float = 0.0


def complete_queries(benchmark: Benchmark | None = None) -> QuerySet[Query]:
    """The queries that would go into releases made now, of a benchmark or of all, by query id."""
    complete = Query.objects.filter(state=Query.State.COMPLETE, benchmark__screening=False)
    queries = complete.order_by("query_id")
    return queries.filter(benchmark=benchmark) if benchmark else queries


def images_to_audit(benchmark: Benchmark | None = None) -> int:
    """How many images that were drawn from `complete_queries` for a release's certificate wait for
    a judgment: a release made now would say that it isn't audited yet, and state no recall."""
    waiting = waiting_for_anybody().filter(kind=RELEASE_AUDIT.name)
    return waiting.filter(query__in=complete_queries(benchmark).order_by().values("pk")).count()


def to_audit_by_benchmark() -> list[tuple[Benchmark, int]]:
    """The benchmarks in which any of `images_to_audit` wait, with how many, by name."""
    counts = [
        (benchmark, images_to_audit(benchmark))
        for benchmark in Benchmark.objects.filter(screening=False).order_by("name")
    ]
    return [(benchmark, count) for benchmark, count in counts if count]


def graded_query_ids(benchmark: Benchmark | None = None) -> set[int]:
    """The completed queries that ask for grades, by query id."""
    graded = complete_queries(benchmark).exclude(grades="")
    return set(graded.values_list("query_id", flat=True))


def released_queries(
    benchmark: Benchmark, efforts: Mapping[int, Effort] | None = None
) -> Iterator[SnapshotQuery]:
    """The completed queries of both splits by query id, with the effort that each one's labels
    took. Two SQL queries a few thousand queries, and one for the benchmark's filter.
    """
    common = dict(benchmark.species.values_list("pk", "scientific_name"))
    parts = Assignment.objects.filter(query=OuterRef("pk"), handed_in_at__isnull=False)
    parts = parts.order_by("-handed_in_at", "-pk")
    present = Q(
        draw_rounds__candidate_list=F("current_list"), draw_rounds__size=F("current_list__size")
    )
    queries = (
        complete_queries(benchmark)
        .annotate(
            rule=Subquery(parts.values("rule")[:1]),
            rounds=Count("draw_rounds", filter=present, distinct=True),
            audits=Count("release_audits", distinct=True),
        )
        .select_related("benchmark", "current_list")
        .defer("current_list__text_vector")
        .prefetch_related("species")
    )
    for query in queries.iterator(chunk_size=CHUNK):
        frozen = query.current_list
        if frozen is not None and not frozen.ready:
            frozen = None
        own = {species.pk: species.scientific_name for species in query.species.all()} or common
        effort = (efforts or {}).get(query.query_id, Effort())
        yield SnapshotQuery(
            query_id=query.query_id,
            text=query.text,
            supercategory=supercategory_of(query.category),
            category=query.category,
            iconic_group=query.iconic_group,
            split=query.split,
            species=sorted(name for pk, name in own.items() if not common or pk in common),
            guidelines=query.all_guidelines,
            scientific_terms=query.scientific_terms,
            model=frozen.model_name if frozen else "",
            list_depth=frozen.depth if frozen else 0,
            list_size=frozen.size if frozen else 0,
            list_total=frozen.total if frozen else 0,
            list_checksum=frozen.checksum if frozen else "",
            annotators=effort.annotators,
            seconds=effort.seconds,
            left_open=query.left_open,
            completion_reason=query.completion_reason,
            rule=query.rule or "",
            grades=query.grades,
            pool=frozen.pool_models if frozen else [],
            rounds=query.rounds,
            release_audits=query.audits,
        )


def released_judgments(
    benchmark: Benchmark | None = None,
) -> Iterator[tuple[JudgmentRow, Vote]]:
    """Every judgment of a completed query on an image of the corpus, by query id, image id and
    annotator, with its vote in the consensus.

    Annotators are numbered from 1 by user id, among those who have a judgment here. The rank is the
    image's in the query's current list, whatever list it was judged in; None where it isn't there.
    Two SQL queries, however many rows.
    """
    judgments = _judgments(benchmark)
    people = judgments.order_by("annotator_id").values_list("annotator_id", flat=True).distinct()
    numbers = {user_id: number for number, user_id in enumerate(people, start=1)}
    # The rank that a judgment carries is of the list in which it was made, if any: an import before
    # the first list has none, and a new text makes a new list.
    candidate = Candidate.objects.filter(
        list=OuterRef("query__current_list"), image=OuterRef("image")
    )
    rows = judgments.values_list(
        "query__query_id",
        "image_id",
        "relevance",
        "annotator_id",
        "annotator__role",
        "updated_at",
        Subquery(candidate.order_by().values("rank")),
        "seconds",
        "source",
        "grade",
        "reason",
    )
    for row in rows.iterator(CHUNK):
        query_id, image_id, relevance, user_id, role, at, rank, seconds, source, grade, reason = row
        judgment = JudgmentRow(
            query_id=query_id,
            image_id=image_id,
            relevance=relevance,
            annotator=numbers[user_id],
            rank=rank,
            seconds=seconds,
            source=source,
            grade=grade,
            reason=reason,
        )
        yield judgment, Vote(user_id, role, relevance, at, grade)


def released_model_ranks(benchmark: Benchmark | None = None) -> Iterator[ModelRank]:
    """The ranks of the judged images by each model of their query's list, by query id, image id and
    the list's models; without withdrawn images. Two SQL queries a completed query.
    """
    queries = (
        complete_queries(benchmark)
        .filter(current_list__frozen_at__isnull=False)
        .select_related("current_list")
        .defer("current_list__text_vector")
    )
    for query in queries:
        if query.current_list is None:
            continue
        judged = query.judgments.filter(~is_withdrawn("image")).order_by("image_id")
        image_ids = judged.values_list("image_id", flat=True).distinct()
        for rank in model_ranks(query.current_list, image_ids):
            yield ModelRank(query.query_id, rank.image_id, rank.model, rank.rank, rank.score)


def released_judgment_count(benchmark: Benchmark | None = None) -> int:
    """How many judgments `released_judgments` gives."""
    return _judgments(benchmark).order_by().count()


def _judgments(benchmark: Benchmark | None) -> QuerySet[Judgment]:
    """Judgments of completed queries on images that aren't withdrawn now."""
    return Judgment.objects.filter(
        ~is_withdrawn("image"), query__in=complete_queries(benchmark).order_by().values("pk")
    ).order_by("query__query_id", "image_id", "annotator_id")
