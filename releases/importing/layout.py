"""A benchmark that was read, as Arrow tables: what its files say of each pair must agree.

SQL checks it and puts it together. `place` is a row's place in its table, from 0; `named` are the
pairs of the annotations, each once; `voted` those that have judgments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa

from core.csv_rows import MAX_ERRORS, RowError
from core.table_queries import query_tables
from labeling.queries.files import QueryRow
from releases.snapshot.release_files import JudgmentRow
from releases.snapshot.snapshot import (
    FixedImage,
    Header,
    Pair,
    Snapshot,
    SnapshotQuery,
    gains_of,
    schema_of,
)

_ROWS_AT_A_TIME: Final = 5000
_PAIR: Final = ["query_id", "image_id"]
#: The columns that say where a row was read: file and line.
_ORIGIN: Final = [pa.field("file", pa.string()), pa.field("line", pa.int64())]


def _nullable(row_type: type) -> list[pa.Field]:
    """The columns of a snapshot's table, as joins make them."""
    return [column.with_nullable(True) for column in schema_of(row_type)]


#: What a fixed list says of an image besides its path, by the names of `SnapshotImage`.
DETAILS: Final = {
    "scientific_name": pa.string(),
    "latitude": pa.float64(),
    "longitude": pa.float64(),
    "location_uncertainty": pa.float64(),
    "observed_at": pa.string(),
    "license": pa.string(),
    "rights_holder": pa.string(),
}
ANNOTATIONS: Final = pa.schema(
    [
        *((name, pa.int64()) for name in _PAIR),
        ("path", pa.string()),
        *_ORIGIN,
        ("grade", pa.int64()),
    ]
)
JUDGMENTS: Final = pa.schema([*_nullable(JudgmentRow), *_ORIGIN])
LISTED: Final = pa.schema(
    [*_nullable(FixedImage), ("relevant", pa.bool_()), ("judged", pa.bool_()),
     ("path", pa.string()), *DETAILS.items(), *_ORIGIN]
)  # fmt: skip

#: Each check selects file, line and column of what is wrong, a message, and the values in it.
_REPEATED_JUDGMENTS: Final = """
SELECT file, line, 'annotator', 'annotator_{} judged this pair on a line before', annotator
  FROM judgments
QUALIFY row_number() OVER (PARTITION BY query_id, image_id, annotator ORDER BY place) > 1
 ORDER BY place
"""
_REPEATED_NEGATIVES: Final = """
WITH pairs AS (
    SELECT *, false AS negative FROM annotations UNION ALL SELECT *, true FROM negatives
)
SELECT file, line, 'corpus-id', 'image {} is listed twice for query {}', image_id, query_id
  FROM pairs
QUALIFY row_number() OVER (PARTITION BY query_id, image_id ORDER BY negative, place) > 1
    AND negative
 ORDER BY place
"""
_REPEATED_RANKS: Final = """
SELECT file, line, 'rank', 'this rank, or image {}, is on a line before', image_id FROM fixed
QUALIFY row_number() OVER (PARTITION BY query_id, rank ORDER BY place) > 1
     OR row_number() OVER (PARTITION BY query_id, image_id ORDER BY place) > 1
 ORDER BY place
"""
_GAPS: Final = """
SELECT file, min(line), 'rank', 'the ranks of query {} are not 1, 2, 3 and so on', query_id
  FROM fixed GROUP BY query_id, file HAVING min(rank) <> 1 OR max(rank) <> count(*)
 ORDER BY min(place)
"""
_PATHS: Final = """
WITH paths AS (
    SELECT image_id, path, file, line, place, 'image_path' AS "column", 1 AS part FROM annotations
     UNION ALL
    SELECT image_id, path, file, line, place, 'image_path', 2 FROM negatives
     UNION ALL
    SELECT image_id, path, file, line, place, 'inat24_file_name', 3 FROM fixed
)
"""
_OTHER_PATHS: Final = f"""
{_PATHS}
SELECT file, line, "column", 'image {{}} has the path {{!r}} in {{}}, line {{}}', image_id,
       left(first_value(path) OVER image, 80), first_value(file) OVER image,
       first_value(line) OVER image
  FROM paths WHERE path <> ''
WINDOW image AS (PARTITION BY image_id ORDER BY part, place)
QUALIFY path <> first_value(path) OVER image
 ORDER BY part, place
"""
_PAIRS: Final = """
WITH named AS (
    SELECT *, row_number() OVER (ORDER BY place) - 1 AS row FROM (
        FROM annotations
        QUALIFY row_number() OVER (PARTITION BY query_id, image_id ORDER BY place) = 1
    )
), voted AS (
    SELECT query_id, image_id, count(*) AS votes, count(*) FILTER (relevance = 'relevant') AS yes,
           arg_min(rank, annotator) AS rank, arg_min(file, annotator) AS file,
           arg_min(line, annotator) AS line
      FROM judgments GROUP BY query_id, image_id
), judged AS (
    SELECT voted.*, named.query_id IS NOT NULL AS named, coalesce(row, -1) AS row
      FROM voted LEFT JOIN named USING (query_id, image_id)
), listed AS (
    SELECT fixed.*, named.query_id IS NOT NULL AS named, voted.query_id IS NOT NULL AS voted,
           list_contains($known, query_id) AS known
      FROM fixed LEFT JOIN named USING (query_id, image_id)
      LEFT JOIN voted USING (query_id, image_id)
)
"""
#: The annotations are a consensus of the judgments. The files don't say who is a reviewer, whose
#: judgment alone decides: so one judgment that agrees is enough.
_DISAGREEING_JUDGMENTS: Final = f"""
{_PAIRS}
SELECT file, line, 'relevance',
       'image {{}} of query {{}} is {{}} by its judgments, but {{}} in the annotations',
       image_id, query_id, if(named, 'not relevant', 'relevant'), if(named, 'is', 'isn''t')
  FROM judged WHERE if(named, yes, votes - yes) = 0 ORDER BY query_id, image_id
"""
_WITHOUT_JUDGMENT: Final = f"""
{_PAIRS}
SELECT file, line, 'image_id', 'image {{}} of query {{}} has no judgment', image_id, query_id
  FROM named ANTI JOIN voted USING (query_id, image_id)
 WHERE list_contains($known, query_id) AND EXISTS (FROM judgments) ORDER BY line
"""
#: The fixed lists' labels are those of the other files.
_DISAGREEING_LISTS: Final = f"""
{_PAIRS}
SELECT file, line, if(relevant <> named, 'relevant', 'judged'), 'image {{}} of query {{}} {{}}',
       image_id, query_id,
       CASE WHEN relevant <> named AND named THEN 'is in the annotations'
            WHEN relevant <> named THEN 'isn''t in the annotations'
            WHEN known AND judged <> voted AND voted THEN 'has a judgment'
            WHEN known AND judged <> voted THEN 'has no judgment'
            ELSE 'is relevant, so somebody judged it' END
  FROM listed
 WHERE relevant <> named OR known AND judged <> voted OR relevant AND NOT judged
 ORDER BY query_id, rank
"""
_CHECKS_OF_TABLES: Final = (
    _REPEATED_JUDGMENTS,
    _REPEATED_NEGATIVES,
    _REPEATED_RANKS,
    _GAPS,
    _OTHER_PATHS,
)
_CHECKS_BETWEEN_TABLES: Final = (_DISAGREEING_JUDGMENTS, _WITHOUT_JUDGMENT, _DISAGREEING_LISTS)
_JOINED_PAIRS: Final = f"""
{_PAIRS}
SELECT query_id, image_id, named AS relevant, votes, rank, row, NULL::BIGINT AS grade FROM judged
 UNION ALL
SELECT query_id, image_id, true, 0, NULL, row, grade
  FROM named ANTI JOIN voted USING (query_id, image_id)
 UNION ALL
SELECT query_id, image_id, false, 0, NULL, -1, NULL
  FROM listed WHERE judged AND NOT relevant AND NOT voted
 UNION ALL
SELECT query_id, image_id, false, 0, NULL, -1, grade FROM negatives
 ORDER BY query_id, image_id
"""
_JOINED_IMAGES: Final = f"""
{_PATHS}, known AS (
    SELECT image_id, arg_min(path, (part, place)) AS path FROM paths WHERE path <> ''
     GROUP BY image_id
), details AS (
    SELECT image_id, {", ".join(DETAILS)} FROM fixed
    QUALIFY row_number() OVER (PARTITION BY image_id ORDER BY place) = 1
)
SELECT image_id, coalesce(path, '') AS path, {", ".join(DETAILS)}
  FROM (SELECT image_id FROM paths UNION SELECT image_id FROM judgments)
  LEFT JOIN known USING (image_id) LEFT JOIN details USING (image_id) ORDER BY image_id
"""


@dataclass(frozen=True, slots=True)
class LayoutQuery:
    """A query, and its position in its file."""

    query: QueryRow
    row: int
    """Its place, from 0, among the queries of its split in the files' order."""


class Rows:
    """An Arrow table that grows row by row, and holds few rows as Python objects."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._batches: list[pa.RecordBatch] = []
        self._waiting: list[tuple[Any, ...]] = []

    def add(self, *values: Any) -> None:
        """Add a row, by the schema's columns; those at the end that are left out are null."""
        self._waiting.append((*values, *[None] * (len(self._schema) - len(values))))
        if len(self._waiting) >= _ROWS_AT_A_TIME:
            self._flush()

    def table(self) -> pa.Table:
        """All rows so far."""
        self._flush()
        return pa.Table.from_batches(self._batches, schema=self._schema)

    def _flush(self) -> None:
        if self._waiting:
            columns = zip(*self._waiting, strict=True)
            arrays = [
                pa.array(values, type=column.type)
                for values, column in zip(columns, self._schema, strict=True)
            ]
            self._batches.append(pa.record_batch(arrays, schema=self._schema))
            self._waiting.clear()


@dataclass
class Layout:
    """A benchmark. Its files give `annotations`, `judgments`, `fixed` and `negatives`;
    `validate_and_join` makes `pairs` and `images` of them."""

    queries: list[LayoutQuery]
    """By query id."""
    annotations: pa.Table
    """ANNOTATIONS: the relevant pairs."""
    judgments: pa.Table
    """JUDGMENTS: by query id, image id and annotator once settled."""
    fixed: pa.Table
    """LISTED: by query id and rank once settled."""
    negatives: pa.Table = field(default_factory=ANNOTATIONS.empty_table)
    """ANNOTATIONS: pairs that were judged not relevant, of a benchmark without single judgments."""
    judged_splits: set[str] = field(default_factory=set)
    """The splits whose judgments are all in the files."""
    grades: str = ""
    """Which of the four grades are relevant, for every query; empty where the annotations have
    none."""
    header: Header | None = None
    """The header of the snapshot in the directory, where the files are a release of this
    application."""
    own_queries: dict[int, SnapshotQuery] = field(default_factory=dict)
    """That snapshot's queries."""
    intact_snapshot: Snapshot | None = None
    """That snapshot, where all files are those of the release's manifest: the import then copies
    its tables."""
    duplicates: int = 0
    """Annotations that repeat a pair."""
    pairs: pa.Table = field(default_factory=lambda: schema_of(Pair).empty_table())
    """Each relevant or judged pair, as `Pair`, by query id and image id; 0 votes where its
    judgments aren't known."""
    images: pa.Table = field(default_factory=lambda: pa.table({}))
    """image_id, path (empty where no file has one), DETAILS (all null where no list has the image);
    by image id."""

    @property
    def ships_test_labels(self) -> bool:
        """Whether the files name a relevant image of a test query."""
        return bool(np.isin(self.annotations["query_id"], self._query_ids({"test"})).any())

    @property
    def annotators(self) -> int:
        """How many people made the judgments."""
        return len(self.judgments["annotator"].unique())

    def efforts(self) -> dict[int, tuple[int, float]]:
        """(annotators, seconds) of the judgments of each query that has any."""
        groups = self.judgments.group_by("query_id").aggregate(
            [("annotator", "count_distinct"), ("seconds", "sum")]
        )
        return {
            row["query_id"]: (row["annotator_count_distinct"], row["seconds_sum"])
            for row in groups.to_pylist()
        }

    def gains(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """(n,) the gains of the pairs, as `Snapshot.gains` has them."""
        graded = (
            [read.query.query_id for read in self.queries]
            if self.grades
            else [query.query_id for query in self.own_queries.values() if query.grades]
        )
        return gains_of(self.pairs, graded) if graded else None

    def _query_ids(self, splits: set[str]) -> list[int]:
        return [read.query.query_id for read in self.queries if read.query.split in splits]

    def paths(self) -> Iterator[tuple[int, str]]:
        """(image id, path) of each image by id; the path is empty where no file has one."""
        paths = self.images.select(["image_id", "path"])
        for batch in paths.to_batches(max_chunksize=_ROWS_AT_A_TIME):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def image_parts(self, size: int) -> Iterator[dict[int, dict[str, Any]]]:
        """The images by id, `size` at a time, each with `path` and what the lists say of it."""
        for start in range(0, len(self.images), size):
            part = {}
            for row in self.images.slice(start, size).to_pylist():
                listed = row["scientific_name"] is not None
                names = ("path", *DETAILS) if listed else ("path",)
                part[row["image_id"]] = {name: row[name] for name in names}
            yield part

    def validate_and_join(self, errors: list[RowError]) -> None:
        """Check each table and the tables against each other, then make `pairs` and `images`.

        Adds what is wrong to `errors`; with errors it makes nothing.
        """
        names = ("annotations", "negatives", "judgments", "fixed")
        tables = {name: _with_places(getattr(self, name)) for name in names}
        counts = "SELECT count(*) - count(DISTINCT (query_id, image_id)) FROM annotations"
        [(self.duplicates,)] = query_tables(counts, tables).fetchall()
        _check(errors, _CHECKS_OF_TABLES, tables)
        if errors:
            return
        known = self._query_ids(self.judged_splits)
        _check(errors, _CHECKS_BETWEEN_TABLES, tables, known=known)
        if errors:
            return
        self.pairs = query_tables(_JOINED_PAIRS, tables, known=known).to_arrow_table()
        self.images = query_tables(_JOINED_IMAGES, tables).to_arrow_table()
        by_query = ("query_id", "ascending")
        self.judgments = self.judgments.sort_by(
            [by_query, ("image_id", "ascending"), ("annotator", "ascending")]
        )
        self.fixed = self.fixed.sort_by([by_query, ("rank", "ascending")])

    def add_paths(self, paths: pa.Table) -> None:
        """Add paths (image_id, file_name) of images for which no file has one. ValueError: an image
        is listed twice, or a column has another type."""
        _require_unique(paths, ["image_id"])
        paths = paths.cast(pa.schema([("image_id", pa.int64()), ("file_name", pa.string())]))
        statement = """
            SELECT images.* REPLACE (if(path = '', coalesce(file_name, ''), path) AS path)
              FROM images LEFT JOIN paths USING (image_id) ORDER BY image_id
        """
        tables = {"images": self.images, "paths": paths}
        self.images = query_tables(statement, tables).to_arrow_table()

    def add_grades(self, grades: pa.Table) -> None:
        """Add the grades (query_id, image_id, grade) of pairs. ValueError: a pair is listed twice,
        or a column has another type."""
        _require_unique(grades, _PAIR)
        grades = grades.cast(pa.schema([(name, pa.int64()) for name in (*_PAIR, "grade")]))
        statement = """
            SELECT pairs.* REPLACE (grades.grade AS grade)
              FROM pairs LEFT JOIN grades USING (query_id, image_id) ORDER BY query_id, image_id
        """
        tables = {"pairs": self.pairs, "grades": grades}
        self.pairs = query_tables(statement, tables).to_arrow_table()


def _with_places(table: pa.Table) -> pa.Table:
    return table.append_column("place", pa.array(np.arange(len(table))))


def _require_unique(table: pa.Table, keys: list[str]) -> None:
    if len(table.group_by(keys).aggregate([])) < len(table):
        raise ValueError(f"two rows have the same {' and '.join(keys)}")


def _check(
    errors: list[RowError], checks: Iterable[str], tables: dict[str, pa.Table], **values: Any
) -> None:
    for check in checks:
        rows = query_tables(f"{check} LIMIT {MAX_ERRORS}", tables, **values).fetchall()
        for file, line, column, message, *parts in rows[: max(0, MAX_ERRORS - len(errors))]:
            errors.append(RowError(file, line, column, message.format(*parts)))
