"""What goes into a release, streamed from the database, and the releases that there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection, transaction
from django.db.models import OuterRef, QuerySet, Subquery

from benchmark.models import Release
from benchmark.release_files import AnnotationRow, JudgmentRow
from labeling.categories import supercategory_of
from labeling.consensus import Vote, consensus_by_key
from labeling.models import Candidate, Judgment, Query
from labeling.query_csv import QueryRow
from retrieval.selectors.flags import is_withdrawn

# Rows held at a time while streaming.
CHUNK = 2000

Pair = tuple[int, int, str]


def releases() -> QuerySet[Release]:
    """All releases, the newest first, with who made them and their jobs."""
    return Release.objects.select_related("created_by", "job")


def release_file_path(*, release: Release, name: str) -> Path | None:
    """Where a file of a release is; None if the release isn't made, has no such file or lost it.

    Only names that the release lists are looked for, so a name from outside leads nowhere else.
    """
    if not release.files_ready or name not in {entry["name"] for entry in release.file_list}:
        return None
    path = release.directory / name
    return path if path.is_file() else None


@contextmanager
def snapshot() -> Iterator[None]:
    """A transaction that sees one moment of the database, whatever is judged meanwhile.

    Within a caller's transaction it sees what that one sees. OperationalError: a row that the block
    changes or locks was changed by somebody else since.
    """
    nested = connection.in_atomic_block
    with transaction.atomic():
        if not nested:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        yield


def complete_query_count() -> int:
    """How many queries would go into a release made now."""
    return Query.objects.filter(state=Query.State.COMPLETE).count()


def released_queries() -> Iterator[QueryRow]:
    """The completed queries of both splits by query id."""
    queries = Query.objects.filter(state=Query.State.COMPLETE).order_by("query_id")
    for query in queries.iterator(chunk_size=CHUNK):
        yield QueryRow(
            query_id=query.query_id,
            query_text=query.text,
            supercategory=supercategory_of(query.category),
            category=query.category,
            iconic_group=query.iconic_group,
            split=query.split,
        )


def released_annotations() -> Iterator[AnnotationRow]:
    """The pairs whose consensus is relevant, without withdrawn images; by query id and image id."""
    for (query_id, image_id, path), decided in consensus_by_key(_votes()):
        if decided.relevant:
            yield AnnotationRow(query_id=query_id, image_id=image_id, image_path=path)


def released_judgments() -> Iterator[JudgmentRow]:
    """Every judgment of a completed query on an image of the corpus, by query id, image id and
    annotator.

    Annotators are numbered from 1 by user id, among those who have a judgment here. The rank is the
    image's in the query's current list, whatever list it was judged in; None where it isn't there.
    Two SQL queries, however many rows.
    """
    judgments = _judgments()
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
        Subquery(candidate.order_by().values("rank")),
        "seconds",
        "source",
    )
    for query_id, image_id, relevance, user_id, rank, seconds, source in rows.iterator(CHUNK):
        yield JudgmentRow(
            query_id=query_id,
            image_id=image_id,
            relevance=relevance,
            annotator=numbers[user_id],
            rank=rank,
            seconds=seconds,
            source=source,
        )


def _judgments() -> QuerySet[Judgment]:
    """Judgments of completed queries on images that aren't withdrawn now."""
    return Judgment.objects.filter(
        ~is_withdrawn("image"), query__state=Query.State.COMPLETE
    ).order_by("query__query_id", "image_id", "annotator_id")


def _votes() -> Iterator[tuple[Pair, Vote]]:
    rows = _judgments().values_list(
        "query__query_id",
        "image_id",
        "image__file_name",
        "annotator_id",
        "annotator__role",
        "relevance",
        "updated_at",
    )
    for query_id, image_id, path, user_id, role, relevance, at in rows.iterator(CHUNK):
        vote = Vote(annotator=user_id, role=role, relevance=relevance, at=at)
        yield (query_id, image_id, path), vote
