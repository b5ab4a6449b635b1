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
from io import StringIO

import numpy as np

from labeling.queries.files import QueryRow, write_queries
from releases.formats.base import Files
from releases.formats.writing import images_of
from releases.snapshot.release_files import (
    QUERY_FILES,
    annotation_lines,
    judgment_lines,
)
from releases.snapshot.snapshot import Snapshot, SnapshotQuery


def write(snapshot: Snapshot, files: Files) -> None:
    """Write all files; those without rows hold their header."""
    for split, text in _queries(snapshot).items():
        files.text(QUERY_FILES[split], [text])
    annotations = annotation_lines(_annotations(snapshot))
    files.text(f"inquire_annotations{files.labels}.csv", annotations)
    judgments = judgment_lines(snapshot.judgments(), graded=bool(snapshot.graded_queries))
    files.text(f"judgments{files.labels}.csv", judgments)


def _queries(snapshot: Snapshot) -> dict[str, str]:
    """The file of each split."""
    queries = snapshot.queries.values()
    # The sort is stable: queries whose position isn't known follow by id.
    ordered = sorted(queries, key=lambda query: (query.row < 0, max(query.row, 0)))
    indexes = {
        query.query_id: query.index if query.index >= 0 else position
        for position, query in enumerate(queries)
    }
    files = {split: StringIO() for split in QUERY_FILES}
    write_queries(map(_query_row, ordered), files, indexes=indexes)
    return {split: file.getvalue() for split, file in files.items()}


def _query_row(query: SnapshotQuery) -> QueryRow:
    return QueryRow(
        query_id=query.query_id,
        query_text=query.text,
        supercategory=query.supercategory,
        category=query.category,
        iconic_group=query.iconic_group or "",
        split=query.split,
    )


def _annotations(snapshot: Snapshot) -> Iterator[tuple[int, int, str]]:
    """(query id, image id, path) of each relevant pair."""
    qrels = snapshot.qrels()
    query_ids, image_ids, rows = (
        column[qrels.relevant]
        for column in (qrels.pair_queries, qrels.image_ids, snapshot.imported_rows())
    )
    # Pairs without a row, -1, follow by their ids.
    order = np.lexsort((rows, rows < 0))
    paths = images_of(snapshot, image_ids, ["file_name"])
    for query_id, image_id in zip(
        query_ids[order].tolist(), image_ids[order].tolist(), strict=True
    ):
        yield query_id, image_id, paths[image_id][0]
