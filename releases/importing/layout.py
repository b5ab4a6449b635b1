"""A benchmark that was read, as Arrow tables: what its files say of each pair must agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from core.csv_rows import MAX_ERRORS, RowError
from labeling.candidates.stopping import RELEVANT
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
_SORTED: Final = [(name, "ascending") for name in _PAIR]
#: Where a row is: file and line.
_PLACE: Final = [pa.field("file", pa.string()), pa.field("line", pa.int64())]


def _nullable(row_type: type) -> list[pa.Field]:
    """The columns of a snapshot's table, as joins make them."""
    return [one.with_nullable(True) for one in schema_of(row_type)]


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
    [*((name, pa.int64()) for name in _PAIR), ("path", pa.string()), *_PLACE, ("grade", pa.int64())]
)
JUDGMENTS: Final = pa.schema([*_nullable(JudgmentRow), *_PLACE])
LISTED: Final = pa.schema(
    [*_nullable(FixedImage), ("relevant", pa.bool_()), ("judged", pa.bool_()),
     ("path", pa.string()), *DETAILS.items(), *_PLACE]
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class LayoutQuery:
    """A query, and its place in its file."""

    query: QueryRow
    row: int
    """Its place, from 0, among the queries of its split in the files' order."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What was put into the labels of a query."""

    annotators: int
    seconds: float


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
                pa.array(values, type=one.type)
                for values, one in zip(columns, self._schema, strict=True)
            ]
            self._batches.append(pa.record_batch(arrays, schema=self._schema))
            self._waiting.clear()


@dataclass
class Layout:
    """A benchmark. The first three tables are as its files have them; `validate_and_join` makes the
    others."""

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
    """Of whose queries every judgment is in the files."""
    grades: str = ""
    """Which of four grades are relevant, where the annotations have some, for every query."""
    header: Header | None = None
    """Of the snapshot that goes along with a release made by this application."""
    own_queries: dict[int, SnapshotQuery] = field(default_factory=dict)
    """The same snapshot's queries."""
    whole: Snapshot | None = None
    """The same snapshot, where all files are as its release's manifest has them: then its tables
    are the import's."""
    duplicates: int = 0
    """Annotations that repeat a pair."""
    pairs: pa.Table = field(default_factory=lambda: schema_of(Pair).empty_table())
    """Each relevant or judged pair, as `Pair`, by query id and image id; without votes where no
    judgment is of it."""
    images: pa.Table = field(default_factory=lambda: pa.table({}))
    """image_id, path (empty where no file has one), DETAILS (all null where no list has the image);
    by image id."""

    @property
    def ships_test_labels(self) -> bool:
        """Whether the files name a relevant image of a test query."""
        test = [one.query.query_id for one in self.queries if one.query.split == "test"]
        return bool(np.isin(self.annotations["query_id"], test).any())

    @property
    def annotators(self) -> int:
        """How many people judged."""
        return len(self.judgments["annotator"].unique())

    def efforts(self) -> dict[int, Effort]:
        """What was put into each query that has judgments."""
        groups = self.judgments.group_by("query_id").aggregate(
            [("annotator", "count_distinct"), ("seconds", "sum")]
        )
        return {
            row["query_id"]: Effort(row["annotator_count_distinct"], row["seconds_sum"])
            for row in groups.to_pylist()
        }

    def gains(self) -> np.ndarray[Any, np.dtype[np.int64]] | None:
        """(n,) the gains of the pairs, as `Snapshot.gains` has them."""
        queries = self.own_queries.values()
        graded = (
            [one.query.query_id for one in self.queries]
            if self.grades
            else [one.query_id for one in queries if one.grades]
        )
        return gains_of(self.pairs, graded) if graded else None

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
        """Check the tables against themselves and each other, and put together pairs and images.

        What is wrong goes to `errors`; with errors nothing is put together.
        """
        self.duplicates = int(_repeated(self.annotations, _PAIR).sum())
        self._check_repeats(errors)
        self._check_gaps(errors)
        images = pa.concat_tables(
            [
                _images(self.annotations, "image_path"),
                _images(self.negatives, "image_path"),
                _images(self.fixed, "inat24_file_name"),
            ]
        )
        self._check_paths(images, errors)
        if errors:
            return
        details = _first(self.fixed, ["image_id"]).select(["image_id", *DETAILS])
        self.judgments = self.judgments.sort_by([*_SORTED, ("annotator", "ascending")])
        self.fixed = self.fixed.sort_by([("query_id", "ascending"), ("rank", "ascending")])
        named = _first(self.annotations, _PAIR).select([*_PAIR, "file", "line", "grade"])
        named = named.append_column("named", _constant(True, named))
        named = named.append_column("row", pa.array(np.arange(len(named))))
        judged = self._judged(named)
        self._check_judgments(named, judged, errors)
        listed = self._listed(named, judged)
        self._check_listed(listed, errors)
        if errors:
            return
        negatives = listed.filter(
            pc.and_(listed["judged"], pc.invert(pc.or_(listed["relevant"], listed["voted"])))
        )
        unvoted = named.join(judged, _PAIR, join_type="left anti")
        parts = [
            _pairs(
                *(judged, judged["named"]),
                votes=judged["votes"],
                rank=judged["rank"],
                row=pc.fill_null(judged["row"], -1),
            ),
            _pairs(unvoted, _constant(True, unvoted), row=unvoted["row"], grade=unvoted["grade"]),
            _pairs(negatives, _constant(False, negatives)),
            _pairs(self.negatives, _constant(False, self.negatives), grade=self.negatives["grade"]),
        ]
        self.pairs = pa.concat_tables(parts).sort_by(_SORTED)
        self.images = self._with_details(images, details)

    def add_paths(self, paths: pa.Table) -> None:
        """Take over paths (image_id, file_name) of images for which no file has one. ValueError: an
        image stands twice."""
        _require_once(paths, ["image_id"])
        joined = self.images.join(paths, "image_id").sort_by("image_id")
        known = pc.fill_null(joined["file_name"], "")
        path = pc.if_else(pc.equal(joined["path"], ""), known, joined["path"])
        place = joined.schema.get_field_index("path")
        self.images = joined.set_column(place, "path", path).drop_columns(["file_name"])

    def add_grades(self, grades: pa.Table) -> None:
        """Take over the grades (query_id, image_id, grade) of pairs. ValueError: a pair stands
        twice."""
        _require_once(grades, _PAIR)
        names = self.pairs.schema.names
        joined = self.pairs.drop_columns(["grade"]).join(grades, _PAIR)
        self.pairs = joined.select(names).sort_by(_SORTED)

    def _check_repeats(self, errors: list[RowError]) -> None:
        for row in _failing(self.judgments, _repeated(self.judgments, [*_PAIR, "annotator"])):
            message = f"annotator_{row['annotator']} judged this pair on a line before"
            _error(errors, row, "annotator", message)
        pairs = pa.concat_tables([self.annotations, self.negatives])
        twice = _repeated(pairs, _PAIR) & (np.arange(len(pairs)) >= len(self.annotations))
        for row in _failing(pairs, twice):
            message = f"image {row['image_id']} stands twice for the query {row['query_id']}"
            _error(errors, row, "corpus-id", message)
        twice = _repeated(self.fixed, ["query_id", "rank"]) | _repeated(self.fixed, _PAIR)
        for row in _failing(self.fixed, twice):
            message = f"this rank, or image {row['image_id']}, is on a line before"
            _error(errors, row, "rank", message)

    def _check_gaps(self, errors: list[RowError]) -> None:
        groups = self.fixed.group_by(["query_id", "file"]).aggregate(
            [("rank", "min"), ("rank", "max"), ([], "count_all"), ("line", "min")]
        )
        for row in groups.to_pylist():
            if row["rank_min"] != 1 or row["rank_max"] != row["count_all"]:
                message = f"the ranks of query {row['query_id']} are not 1, 2, 3 and so on"
                _error(errors, row | {"line": row["line_min"]}, "rank", message)

    def _check_paths(self, images: pa.Table, errors: list[RowError]) -> None:
        """An image has one path in all files."""
        images = images.filter(pc.not_equal(images["path"], ""))
        _, first, group = np.unique(images["image_id"], return_index=True, return_inverse=True)
        known = images.take(first[group])
        other = pc.not_equal(images["path"], known["path"]).to_numpy()
        for row, before in zip(_failing(images, other), _failing(known, other), strict=True):
            where = f"in {before['file']}, line {before['line']}"
            message = f"image {row['image_id']} has the path {before['path'][:80]!r} {where}"
            _error(errors, row, row["column"], message)

    def _judged(self, named: pa.Table) -> pa.Table:
        """Each pair that has judgments: votes, how many of them say relevant, rank, whether the
        annotations name it (named), and where its first judgment is (file, line)."""
        yes = pc.cast(pc.equal(self.judgments["relevance"], RELEVANT), pa.int64())
        groups = (
            self.judgments.append_column("yes", yes)
            .group_by(_PAIR, use_threads=False)
            .aggregate(
                [([], "count_all"), ("yes", "sum")]
                + [(name, "first") for name in ("rank", "file", "line")]
            )
            .rename_columns([*_PAIR, "votes", "yes", "rank", "file", "line"])
        )
        joined = groups.join(named.drop_columns(["file", "line"]), _PAIR)
        return _filled(joined, "named").sort_by(_SORTED)

    def _check_judgments(self, named: pa.Table, judged: pa.Table, errors: list[RowError]) -> None:
        """Whether the annotations are a consensus of the judgments. The files don't say who is a
        reviewer, whose judgment alone decides: so one judgment that agrees is enough."""
        name = judged["named"]
        agreeing = pc.if_else(name, judged["yes"], pc.subtract(judged["votes"], judged["yes"]))
        for row in _failing(judged, pc.equal(agreeing, 0).to_numpy()):
            says, found = ("not relevant", "is") if row["named"] else ("relevant", "isn't")
            message = (
                f"image {row['image_id']} of query {row['query_id']} is {says} by its judgments, "
                f"but {found} in the annotations"
            )
            _error(errors, row, "relevance", message)
        if not len(self.judgments):
            return
        known = [
            one.query.query_id for one in self.queries if one.query.split in self.judged_splits
        ]
        unvoted = named.join(judged.select(_PAIR), _PAIR, join_type="left anti").sort_by("line")
        for row in _failing(unvoted, np.isin(unvoted["query_id"], known)):
            message = f"image {row['image_id']} of query {row['query_id']} has no judgment"
            _error(errors, row, "image_id", message)

    def _listed(self, named: pa.Table, judged: pa.Table) -> pa.Table:
        """The fixed lists with named, and whether the pair has judgments (voted)."""
        listed = self.fixed.select([*_PAIR, "rank", "relevant", "judged", "file", "line"])
        voted = judged.select(_PAIR).append_column("voted", _constant(True, judged))
        listed = listed.join(named.drop_columns(["file", "line"]), _PAIR).join(voted, _PAIR)
        listed = _filled(_filled(listed, "named"), "voted")
        return listed.sort_by([("query_id", "ascending"), ("rank", "ascending")])

    def _check_listed(self, listed: pa.Table, errors: list[RowError]) -> None:
        """Whether the fixed lists' labels are those of the other files."""
        splits = {one.query.query_id: one.query.split for one in self.queries}
        known = [query_id for query_id, split in splits.items() if split in self.judged_splits]
        columns = ("named", "voted", "relevant", "judged")
        named, voted, relevant, flag = (listed[name].to_numpy() for name in columns)
        wrong = (relevant != named) | (relevant & ~flag)
        wrong |= np.isin(listed["query_id"], known) & (flag != voted)
        for row in _failing(listed, wrong):
            pair = f"image {row['image_id']} of query {row['query_id']}"
            if row["relevant"] != row["named"]:
                found = "is" if row["named"] else "isn't"
                _error(errors, row, "relevant", f"{pair} {found} in the annotations")
            elif row["query_id"] in known and row["judged"] != row["voted"]:
                article = "a" if row["voted"] else "no"
                _error(errors, row, "judged", f"{pair} has {article} judgment")
            else:
                _error(errors, row, "judged", f"{pair} is relevant, so somebody judged it")

    def _with_details(self, images: pa.Table, details: pa.Table) -> pa.Table:
        paths = _first(images.filter(pc.not_equal(images["path"], "")), ["image_id"])
        ids = pa.concat_tables([images.select(["image_id"]), self.judgments.select(["image_id"])])
        found = (
            ids.group_by("image_id")
            .aggregate([])
            .join(paths.select(["image_id", "path"]), "image_id")
            .join(details, "image_id")
            .sort_by("image_id")
        )
        return found.set_column(1, "path", pc.fill_null(found["path"], ""))


def _images(table: pa.Table, column: str) -> pa.Table:
    """image_id, path, file and line of a table's rows, with the column that holds the path."""
    images = table.select(["image_id", "path", "file", "line"])
    return images.append_column("column", pa.array([column] * len(images), pa.string()))


def _pairs(
    table: pa.Table,
    relevant: Any,
    *,
    votes: Any = None,
    rank: Any = None,
    row: Any = None,
    grade: Any = None,
) -> pa.Table:
    zeros = np.zeros(len(table), dtype=np.int64)
    columns = [
        *(table[name] for name in _PAIR),
        relevant,
        pa.array(zeros) if votes is None else votes,
        pa.nulls(len(table), pa.int64()) if rank is None else rank,
        pa.array(zeros - 1) if row is None else row,
        pa.nulls(len(table), pa.int64()) if grade is None else grade,
    ]
    return pa.table(columns, names=schema_of(Pair).names)


def _first(table: pa.Table, keys: Sequence[str]) -> pa.Table:
    """The first row of each key, in the table's order."""
    return table.filter(pa.array(~_repeated(table, keys)))


def _repeated(table: pa.Table, keys: Sequence[str]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Of each row whether its key is that of a row before it."""
    rows = np.arange(len(table))
    numbered = table.select(list(keys)).append_column("row", pa.array(rows))
    first = numbered.group_by(list(keys)).aggregate([("row", "min")])["row_min"]
    return ~np.isin(rows, first)


def _require_once(table: pa.Table, keys: Sequence[str]) -> None:
    if _repeated(table, keys).any():
        raise ValueError(f"two rows have the same {' and '.join(keys)}")


def _constant(value: bool, table: pa.Table) -> pa.Array:
    return pa.array(np.full(len(table), value))


def _filled(table: pa.Table, name: str) -> pa.Table:
    """The table with False in place of null in a column."""
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, pc.fill_null(table[name], False))


def _failing(table: pa.Table, wrong: Any) -> list[dict[str, Any]]:
    """The first rows that are wrong, as many as are named."""
    rows: list[dict[str, Any]] = table.take(np.flatnonzero(wrong)[:MAX_ERRORS]).to_pylist()
    return rows


def _error(errors: list[RowError], row: dict[str, Any], column: str, message: str) -> None:
    if len(errors) < MAX_ERRORS:
        errors.append(RowError(row["file"], row["line"], column, message))
