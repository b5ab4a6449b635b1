"""INQUIRE's own files: the queries of each split, the relevant pairs, and the judgments.

Queries come out as INQUIRE's files went in, byte for byte: texts verbatim with their trailing
blanks, quotes doubled within quoted fields, no iconic group as a blank, the unnamed first column as
the query's position among all queries of both splits by id. The authors' validation file isn't
sorted, nor are their annotations; their order is kept where the snapshot knows it
(`SnapshotQuery.row`, `Pair.row`), else rows go by id.

A text that begins with "=" stays as it is: a spreadsheet takes it for a formula, so import the
files as text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from labeling.queries.files import QueryRow, write_queries
from releases.formats.base import Access, Format, ImageFiles, WrittenFile
from releases.formats.writing import images_of, pair_columns, text_file
from releases.snapshot.release_files import (
    ANNOTATIONS_FILE,
    JUDGMENTS_FILE,
    QUERY_FILES,
    AnnotationRow,
    write_annotations,
    write_judgments,
)
from releases.snapshot.snapshot import Snapshot, SnapshotQuery

VAL_ANNOTATIONS_FILE = "inquire_annotations_val.csv"
VAL_JUDGMENTS_FILE = "judgments_val.csv"


def write(snapshot: Snapshot, directory: Path, image_files: ImageFiles) -> list[WrittenFile]:
    """Write all six files; those without rows hold their header."""
    _write_queries(snapshot, directory)
    annotations = list(_annotations(snapshot))
    val, graded = snapshot.queries_of("val"), bool(snapshot.graded_queries)
    with text_file(directory, ANNOTATIONS_FILE) as file:
        write_annotations(annotations, file)
    with text_file(directory, VAL_ANNOTATIONS_FILE) as file:
        write_annotations((row for row in annotations if row.query_id in val), file)
    with text_file(directory, JUDGMENTS_FILE) as file:
        write_judgments(snapshot.judgments(), file, graded=graded)
    with text_file(directory, VAL_JUDGMENTS_FILE) as file:
        rows = (row for row in snapshot.judgments() if row.query_id in val)
        write_judgments(rows, file, graded=graded)
    return [
        *(WrittenFile(name, Access.OPEN) for name in QUERY_FILES.values()),
        WrittenFile(ANNOTATIONS_FILE, Access.LABELS),
        WrittenFile(VAL_ANNOTATIONS_FILE, Access.OPEN),
        WrittenFile(JUDGMENTS_FILE, Access.LABELS),
        WrittenFile(VAL_JUDGMENTS_FILE, Access.OPEN),
    ]


def _write_queries(snapshot: Snapshot, directory: Path) -> None:
    queries = snapshot.queries.values()
    # Stable: those whose place isn't known follow by id.
    ordered = sorted(queries, key=lambda query: (query.row < 0, max(query.row, 0)))
    indexes = {
        query.query_id: query.index if query.index >= 0 else position
        for position, query in enumerate(queries)
    }
    with ExitStack() as stack:
        files = {
            split: stack.enter_context(text_file(directory, name))
            for split, name in QUERY_FILES.items()
        }
        write_queries(map(_query_row, ordered), files, indexes=indexes)


def _query_row(query: SnapshotQuery) -> QueryRow:
    return QueryRow(
        query_id=query.query_id,
        query_text=query.text,
        supercategory=query.supercategory,
        category=query.category,
        iconic_group=query.iconic_group or "",
        split=query.split,
    )


def _annotations(snapshot: Snapshot) -> Iterator[AnnotationRow]:
    pairs = pair_columns(snapshot)
    relevant = pairs.only(pairs.relevant).in_order(snapshot.imported_rows()[pairs.relevant])
    paths = images_of(snapshot, relevant.image_ids, ["file_name"])
    for query_id, image_id in zip(
        relevant.query_ids.tolist(), relevant.image_ids.tolist(), strict=True
    ):
        yield AnnotationRow(query_id=query_id, image_id=image_id, image_path=paths[image_id][0])


FORMAT = Format(
    key="inquire-csv",
    title="INQUIRE CSV",
    about=(
        "The queries of each split, the relevant pairs and every single judgment, in the columns "
        "that INQUIRE's authors released."
    ),
    write=write,
)
