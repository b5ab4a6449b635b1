"""A release's snapshot: everything that its files are written from, in Parquet and one JSON.

    release.json       Header
    queries.parquet    SnapshotQuery, by query id
    pairs.parquet      Pair, the consensus of each judged pair, by query id and image id
    judgments.parquet  JudgmentRow, by query id, image id and annotator
    images.parquet     SnapshotImage, every image that a pair or the fixed lists name, by image id
    custom_fields.parquet    FieldValue, the images' values in custom fields, by image id and field;
                       only where an admin put fields into releases
    fixed.parquet      FixedImage, the fixed list of each query for re-ranking, by query id and rank
    vectors.parquet    QueryVector, the vectors by which images were ranked for a query, by query id
                       and model; not in snapshots of imported benchmarks
    model_ranks.parquet      ModelRank, where each model of a query's candidate list ranked its
                       judged images, by query id, image id and the list's models; not in snapshots
                       of imported benchmarks, nor in those from before there were pools of models
    rounds.parquet     DrawnRound, the rounds of audits, by query id and round
    pools.parquet      PoolImage, every image of the pools that the rounds drew from, by query id
                       and rank; like the rounds not in snapshots of imported benchmarks, nor in
                       those from before there were audits
    release_audits.parquet   ReleasedAudit, the audits for releases, by query id and number; where
                       the next two are, this is
    audited.parquet    AuditedImage, the images that these audits could select, by query id and
                       image id
    seeds.parquet      Seed, known positives mixed into the draws of these audits, by query id and
                       image id

Extras add tables (`core.registries.SNAPSHOT_TABLES`). Those of an extra that isn't installed stay
as they are, and an import leaves them out.

The writers of formats read a snapshot and nothing else, no database and no clock, so that equal
snapshots give equal bytes. Readers stream batches; memory doesn't grow with the corpus.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from core import __version__
from core.registries import SNAPSHOT_TABLES
from core.table_queries import query_tables
from labeling.judging.grades import HIGHEST
from releases.snapshot.qrels import Qrels, is_rerankable
from releases.snapshot.release_files import JudgmentRow

if TYPE_CHECKING:
    from duckdb import DuckDBPyRelation
    from pyarrow.dataset import Dataset

HEADER_FILE: Final = "release.json"
#: The folder of the snapshot without labels of the test split, beside that of the whole one.
OPEN_FOLDER: Final = "snapshot_open"
#: Written in each header, so that a later form can be distinguished from this one.
FORMATS_VERSION: Final = 4
ROWS_AT_A_TIME: Final = 20_000

Row = TypeVar("Row")


def software() -> str:
    """This application's name and version, such as "inquire-annotator 0.1.0"."""
    return f"inquire-annotator {__version__}"


@dataclass(frozen=True, slots=True)
class ListModel:
    """An embedding model that ordered candidate lists."""

    name: str
    depths: list[int]
    """The requested depths, ascending."""
    queries: int
    """How many of the queries were labeled in its order, or in one that fuses it with others'."""


@dataclass(frozen=True, slots=True)
class Header:
    """Facts about a release as a whole."""

    name: str
    version: int
    made_at: str
    """UTC, ISO 8601."""
    made_by: str
    """A user's name; empty where a command made it."""
    software: str
    """This application's name and version."""
    origin: str
    """"made" or "imported"."""
    corpus_images: int
    """Images that aren't withdrawn; 0 where the corpus isn't here."""
    corpus_species: int
    corpus_fingerprint: str
    """SHA-256 over "<image id> <SHA-256 of its file>\\n" of those images by id; empty if none."""
    models: list[ListModel] = field(default_factory=list)
    rerank_model: str = ""
    """The model whose top 100 are the fixed lists; empty where there are none."""
    include_images: bool = False
    """Whether the folders for Hugging Face and MTEB hold the images' bytes."""
    consensus: str = ""
    """The rule by which judgments became relevance, in words."""
    annotators: int | None = 0
    """None where an imported benchmark has no judgments."""
    negatives_known: bool = True
    """Whether it is known which images were judged and not relevant, for every query."""
    matched: dict[str, int] | None = None
    """Of an imported benchmark: how many of its images the corpus has, known by their path or by
    their data_set, and how many are absent."""
    confidence: float = 0.95
    """Of each query's certificate."""
    test_labels: str = "public"
    """"hidden" or "public"; "withheld" in a snapshot that leaves them out."""
    formats: int = FORMATS_VERSION
    """The version of the formats in which its files are written."""
    benchmark: str = ""
    """The benchmark whose queries it holds; empty, and not written, where there was only one."""
    duplicates: dict[str, int] | None = None
    """How many groups of near-duplicates the corpus has (`found`), and how many of them were
    decided in each way (`kept`, `one`, `withdrawn`); None, and not written, where it has none."""
    pay_per_hour: str = ""
    """What people were paid for an hour, such as "15.50 USD"; empty, and not written, where nobody
    said."""

    @property
    def values(self) -> dict[str, Any]:
        """By name, as they are written."""
        unused = {name: getattr(self, name) for name in ("benchmark", "duplicates", "pay_per_hour")}
        return {k: v for k, v in asdict(self).items() if k not in unused or unused[k]}


@dataclass(frozen=True, slots=True)
class SnapshotQuery:
    """One completed query."""

    query_id: int
    text: str
    supercategory: str
    category: str
    iconic_group: str | None
    """Empty where it has none; None where an imported benchmark doesn't say."""
    split: str
    """"val" or "test"."""
    species: list[str]
    """Scientific names of the species filter; empty for the whole corpus."""
    guidelines: str
    scientific_terms: bool | None
    """None where an imported benchmark doesn't say."""
    model: str = ""
    """The model that ordered its candidate list, the first of several; empty where it has none."""
    list_depth: int = 0
    """How many candidates were requested; 0 where it has no list."""
    list_size: int = 0
    list_total: int = 0
    """Embedded images within the filter when the list was frozen."""
    list_checksum: str = ""
    annotators: int = 0
    seconds: float = 0.0
    """Active time of all judgments together."""
    index: int = -1
    """Its position among all queries sorted by id, as INQUIRE's unnamed column counts; -1 where
    that is its position here."""
    row: int = -1
    """Its position, from 0, in the imported file of its split, since INQUIRE's validation file
    isn't sorted; -1 where files go by id."""
    left_open: str = ""
    """What was unmet, unsure or disputed when a reviewer completed it, in sentences; empty where
    nothing was."""
    completion_reason: str = ""
    """Why it was completed all the same; empty where nothing was left open."""
    rule: str = ""
    """The stop rule that was met when its last part was handed in; empty for none."""
    grades: str = ""
    """Which of the four grades are relevant, see `labeling.judging.grades`; empty where it was
    labeled without grades."""
    pool: list[str] = field(default_factory=list)
    """The models whose rankings its candidate list fuses; empty for a list of one model."""
    rounds: int | None = None
    """How many `DrawnRound`s it has, so that a missing one is noticed: judgments with the source
    "audit" may be of an earlier list. None in snapshots that don't say."""
    release_audits: int | None = None
    """How many `ReleasedAudit`s it has; None in snapshots that don't say."""


@dataclass(frozen=True, slots=True)
class Pair:
    """The consensus about one judged pair."""

    query_id: int
    image_id: int
    relevant: bool
    votes: int
    """How many people judged it."""
    rank: int | None
    """The image's rank in the query's candidate list, from 1; None outside it."""
    row: int = -1
    """Of a relevant pair: its position, from 0, in the imported annotations, since INQUIRE's file
    isn't sorted by image; -1 where files go by ids."""
    grade: int | None = None
    """From 0 (definitely not) to 3 (definitely); None where the query has no grades, or an imported
    benchmark doesn't say."""


@dataclass(frozen=True, slots=True)
class SnapshotImage:
    """One image; empty and None where the corpus doesn't know."""

    image_id: int
    dataset: str = ""
    source_id: str = ""
    file_name: str = ""
    sha256: str = ""
    """Of its source file; empty where the image isn't here."""
    width: int = 0
    """Pixels; 0 where the image isn't here."""
    height: int = 0
    """Pixels; 0 where the image isn't here."""
    scientific_name: str = ""
    vernacular_name: str = ""
    """English, or of any language."""
    kingdom: str = ""
    phylum: str = ""
    class_name: str = ""
    order: str = ""
    family: str = ""
    genus: str = ""
    iconic_group: str = ""
    license: str = ""
    license_url: str = ""
    rights_holder: str = ""
    observed_at: str = ""
    """ISO 8601."""
    latitude: float | None = None
    """Degrees, WGS 84."""
    longitude: float | None = None
    location_uncertainty: float | None = None
    """Meters."""
    address: str = ""
    """Its public address on the web, absolute; empty where that isn't known."""
    no_organism: bool = False
    """Somebody flagged that it shows none, and no reviewer has decided yet."""
    elevation: float | None = None
    """Meters."""


@dataclass(frozen=True, slots=True)
class FieldValue:
    """An image's value in a custom field, a column of the table that it came with."""

    image_id: int
    field: str
    """Its name."""
    kind: str
    """"number", "date", "text" or "yes_no"."""
    value: str
    """As people write it: 3, 2.5, 2024-09-27, yes."""


@dataclass(frozen=True, slots=True)
class FixedImage:
    """One image of a query's fixed list."""

    query_id: int
    rank: int
    """From 1."""
    image_id: int
    score: float
    """Cosine similarity to the text under the header's `rerank_model`."""


@dataclass(frozen=True, slots=True)
class QueryVector:
    """The vector of a query's text under a model that ordered its images."""

    query_id: int
    model: str
    text: str
    """The text that was encoded."""
    vector: list[float]
    """Of about unit length, in half precision. Its inner product with an image's embedding in half
    precision, computed in double precision, is the score by which candidate lists and fixed lists
    are ordered."""


@dataclass(frozen=True, slots=True)
class ModelRank:
    """Where a model of a query's candidate list ranked a judged image. An image beyond every
    model's depth has no row: a search or "more like this" brought it."""

    query_id: int
    image_id: int
    model: str
    rank: int
    """From 1, among the images of the query's filter."""
    score: float
    """Cosine similarity to the text under the model."""


@dataclass(frozen=True, slots=True)
class DrawnRound:
    """A round of draws from a query's pool, its candidate list as released. Rounds that drew from
    an earlier list, or from a shorter one, certify nothing and are left out."""

    query_id: int
    round: int
    """Its number among the query's rounds, from 1."""
    key: str
    """The key that orders its draws, see `labeling.audits.draws`: hexadecimal. Once published, it
    isn't used any more."""
    whole: bool
    """Whether the pool holds every image of the query's filter."""


@dataclass(frozen=True, slots=True)
class PoolImage:
    """An image of the pool of a query that has rounds."""

    query_id: int
    rank: int
    """In the query's candidate list, from 1."""
    image_id: int
    label: str
    """"relevant", "not_relevant", "undecided" (unsure; or votes differ, most aren't relevant and no
    reviewer has decided), or empty where nobody judged it."""
    withdrawn: bool
    """Whether the image was withdrawn from the corpus; its pair and judgments are left out."""
    drawable: int
    """The last round that could draw it, 0 for none. Each round draws from the images that the
    round before left."""
    round: int
    """The round that displayed it, of whichever list; 0 for none."""
    place: int
    """Its position among the draws of that round, from 1; 0 where that round isn't among the
    `DrawnRound`s."""


@dataclass(frozen=True, slots=True)
class ReleasedAudit:
    """An audit for releases. Its query may not be released: an audit whose images were displayed
    counts for the release's certificate all the same."""

    query_id: int
    audit: int
    """Its number among the query's audits for releases, from 1."""
    split: str
    """The query's: "val" or "test"."""
    key: str
    """The key that selected its images, see `labeling.audits.draws`: hexadecimal."""
    share: float
    """The probability with which it selected each image."""
    covers: bool
    """Whether this is the query's last audit, and the query is released with the candidate list
    that it audited."""
    unjudged: int
    """How many images it could select."""
    found: int
    """How many images of the list were judged relevant when it was drawn."""


@dataclass(frozen=True, slots=True)
class AuditedImage:
    """An image that an audit for releases could select; or, of a query that an audit covers, an
    image of the list that no audit could select and that has no judgment any more. Images that were
    withdrawn before they were displayed are left out."""

    query_id: int
    image_id: int
    audit: int
    """The number of the audit; 0 for none."""
    drawn: bool
    """Whether it was selected."""
    label: str
    """The label of a drawn image, see `PoolImage`; else empty."""
    withdrawn: bool
    """Whether it has been withdrawn since; its pair and judgments are left out."""


@dataclass(frozen=True, slots=True)
class Seed:
    """A known positive that was shown to a person who hadn't judged it, among draws."""

    query_id: int
    image_id: int
    relevance: str
    """What they judged; empty where they haven't."""


TABLES: Final[dict[str, type]] = {
    "queries": SnapshotQuery,
    "pairs": Pair,
    "judgments": JudgmentRow,
    "images": SnapshotImage,
    "custom_fields": FieldValue,
    "fixed": FixedImage,
    "vectors": QueryVector,
    "model_ranks": ModelRank,
    "rounds": DrawnRound,
    "pools": PoolImage,
    "release_audits": ReleasedAudit,
    "audited": AuditedImage,
    "seeds": Seed,
}


def all_tables() -> dict[str, type]:
    """The rows of all tables by name, those of extras too."""
    return TABLES | {table.name: table.row for table in SNAPSHOT_TABLES}


class Snapshot:
    """A snapshot in a directory, to be read."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @cached_property
    def header(self) -> Header:
        """The facts about the release."""
        data = self.header_data
        return Header(**data | {"models": [ListModel(**model) for model in data["models"]]})

    @cached_property
    def header_data(self) -> dict[str, Any]:
        """The header as it was written."""
        data: dict[str, Any] = json.loads(
            (self.directory / HEADER_FILE).read_text(encoding="utf-8")
        )
        return data

    @cached_property
    def queries(self) -> dict[int, SnapshotQuery]:
        """All queries by id, ascending. ValueError: the table holds a query twice."""
        rows = list(self._rows("queries", SnapshotQuery))
        by_id = {query.query_id: query for query in rows}
        if len(by_id) < len(rows):
            raise ValueError(f"{self.path('queries').name} holds a query twice")
        return by_id

    @property
    def labeled_splits(self) -> tuple[str, ...]:
        """The splits whose labels the snapshot holds."""
        return ("val",) if self.header.test_labels == "withheld" else ("val", "test")

    @property
    def labeled_queries(self) -> dict[int, SnapshotQuery]:
        """The queries whose labels the snapshot holds, by id, ascending."""
        return self.queries_of("val") if self.header.test_labels == "withheld" else self.queries

    @cached_property
    def open(self) -> Snapshot:
        """The snapshot that researchers may have: this one, or the one without the labels of the
        test split where these are hidden."""
        if self.header.test_labels != "hidden":
            return self
        return Snapshot(self.directory.parent / OPEN_FOLDER)

    def withholds(self, name: str) -> bool:
        """Whether it is known to leave out rows of a table."""
        return False

    def queries_of(self, split: str) -> dict[int, SnapshotQuery]:
        """The queries of a split by id, ascending."""
        return {key: query for key, query in self.queries.items() if query.split == split}

    @cached_property
    def fixed_labels(self) -> dict[tuple[int, int], bool]:
        """(query id, image id) -> relevance of the judged images of the fixed lists."""
        labels = self.sql(
            "SELECT query_id, image_id, relevant FROM fixed JOIN pairs USING (query_id, image_id)"
        )
        return {
            (query_id, image_id): relevant for query_id, image_id, relevant in labels.fetchall()
        }

    @cached_property
    def rerankable_queries(self) -> frozenset[int]:
        """The ids of the queries whose fixed list is fit for re-ranking, see `is_rerankable`."""
        labels = self.fixed_labels
        return frozenset(
            query_id
            for query_id, images in groupby(self.fixed(), key=attrgetter("query_id"))
            if is_rerankable(labels.get((query_id, image.image_id), False) for image in images)
        )

    @property
    def statistics_path(self) -> Path:
        """Where the statistics page stores its numbers: the only file in a release's folder that
        doesn't belong to the release."""
        return self.directory.with_name(f"{self.directory.name}_statistics.json")

    @cached_property
    def image_count(self) -> int:
        """How many images the snapshot has."""
        return self.count("images")

    def pairs(self) -> Iterator[Pair]:
        """Every judged pair, by query id and image id."""
        return self._rows("pairs", Pair)

    def imported_rows(self) -> npt.NDArray[np.int64]:
        """(n,) `Pair.row` of every pair; all -1 in snapshots without this column."""
        if "row" not in self.schema("pairs").names:
            return np.full(self.count("pairs"), -1)
        rows: npt.NDArray[np.int64] = self.table("pairs", ["row"])["row"].to_numpy()
        return rows

    def judgments(self) -> Iterator[JudgmentRow]:
        """Every judgment, by query id, image id and annotator."""
        return self._rows("judgments", JudgmentRow)

    def images(self) -> Iterator[SnapshotImage]:
        """Every image, by id."""
        return self._rows("images", SnapshotImage)

    def custom_fields(self) -> Iterator[FieldValue]:
        """The images' values in custom fields, by image id and field."""
        return self._rows_if_any("custom_fields", FieldValue)

    def fixed(self) -> Iterator[FixedImage]:
        """The fixed lists of all queries, also those not fit for re-ranking, by query id and
        rank."""
        return self._rows("fixed", FixedImage)

    def vectors(self) -> Iterator[QueryVector]:
        """The vectors of the queries' texts, by query id and model."""
        return self._rows("vectors", QueryVector)

    def model_ranks(self) -> Iterator[ModelRank]:
        """The ranks of judged images by each model, by query id, image id and the list's models."""
        return self._rows_if_any("model_ranks", ModelRank)

    def rounds(self) -> Iterator[DrawnRound]:
        """The rounds of audits, by query id and number."""
        return self._rows_if_any("rounds", DrawnRound)

    def pools(self) -> Iterator[PoolImage]:
        """The images of the pools of queries with rounds, by query id and rank."""
        return self._rows_if_any("pools", PoolImage)

    def release_audits(self) -> Iterator[ReleasedAudit]:
        """The audits for releases, by query id and number."""
        return self._rows_if_any("release_audits", ReleasedAudit)

    def audited(self) -> Iterator[AuditedImage]:
        """The images that these audits could select, by query id and image id."""
        return self._rows_if_any("audited", AuditedImage)

    def seeds(self) -> Iterator[Seed]:
        """The seeds that were shown, by query id and image id."""
        return self._rows_if_any("seeds", Seed)

    @cached_property
    def graded_queries(self) -> list[int]:
        """The ids of the queries that were labeled with grades, ascending."""
        return [query_id for query_id, query in self.queries.items() if query.grades]

    def gains(self) -> npt.NDArray[np.int64] | None:
        """(n,) the gain of every pair, see `gains_of`; None where no query has grades."""
        if not self.graded_queries:
            return None
        table = self.table("pairs", ["query_id", "image_id", "relevant", "grade"])
        return gains_of(table, self.graded_queries)

    def qrels(self) -> Qrels:
        """The consensus as arrays; all queries of the release."""
        table = self.table("pairs", ["query_id", "image_id", "relevant"])
        query_ids, image_ids, relevant = (table[name].to_numpy() for name in table.column_names)
        return Qrels.from_arrays(self.queries, query_ids, image_ids, relevant, self.gains())

    def labeled_qrels(self) -> Iterator[tuple[str, Qrels]]:
        """(split, the consensus on its queries) of each split whose labels the snapshot holds."""
        qrels = self.qrels()
        for split in self.labeled_splits:
            yield split, qrels.only(list(self.queries_of(split)))

    def path(self, table: str) -> Path:
        """Where a table's file is."""
        return self.directory / f"{table}.parquet"

    def contained(self, image_ids: Collection[int]) -> list[int]:
        """Those of these images that it has, ascending."""
        if not image_ids:
            return []
        table = pq.read_table(
            self.path("images"),
            columns=["image_id"],
            filters=[("image_id", "in", list(image_ids))],
        )
        return sorted(table["image_id"].to_pylist())

    def dataset(self, name: str) -> Dataset:
        """A table for `sql`; a column that an earlier version didn't write is null."""
        from pyarrow.dataset import dataset  # imports pandas where it is installed

        return dataset(self.path(name), schema=schema_of(all_tables()[name]))

    def sql(self, statement: str, /, **values: Any) -> DuckDBPyRelation:
        """Query the tables by their names; see `query_tables`."""
        named = {name: self.dataset(name) for name in all_tables() if name in statement}
        return query_tables(statement, named, **values)

    def has_table(self, name: str) -> bool:
        """Whether the snapshot has a table: earlier versions wrote fewer, and imported benchmarks
        have fewer."""
        return self.path(name).exists()

    def schema(self, name: str) -> pa.Schema:
        """A table's columns."""
        return pq.read_schema(self.path(name))

    def count(self, name: str) -> int:
        """How many rows a table has."""
        return int(pq.read_metadata(self.path(name)).num_rows)

    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """A table piece by piece: the columns named, in that order, or all."""
        with pq.ParquetFile(self.path(name)) as file:
            for batch in file.iter_batches(batch_size=ROWS_AT_A_TIME, columns=columns):
                yield batch if columns is None else batch.select(columns)

    def table(self, name: str, columns: Sequence[str]) -> pa.Table:
        """A table's columns as a whole."""
        schema = pa.schema([self.schema(name).field(column) for column in columns])
        return pa.Table.from_batches(self.batches(name, columns), schema=schema)

    def rows(self, name: str, columns: Sequence[str] | None = None) -> Iterator[tuple[Any, ...]]:
        """A table's rows, of the columns named or of all, without holding them."""
        for batch in self.batches(name, columns):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def _rows_if_any(self, table: str, row: type[Row]) -> Iterator[Row]:
        return self._rows(table, row) if self.has_table(table) else iter(())

    def _rows(self, table: str, row: type[Row]) -> Iterator[Row]:
        return (row(*values) for values in self.rows(table))


class SnapshotWriter:
    """Writes a snapshot into an empty directory, table by table."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def header(self, header: Header) -> None:
        """Write the facts about the release."""
        write_header(self.directory, header.values)

    def table(self, name: str, rows: Iterable[Any]) -> int:
        """Write a whole table from rows in its order, without holding them; how many."""
        count = 0
        with self.rows(name) as write:
            for row in rows:
                write(row)
                count += 1
        return count

    def arrow(self, name: str, table: pa.Table) -> None:
        """Write a whole table, whose rows are in the snapshot's order and which has at least its
        columns."""
        schema = schema_of(all_tables()[name])
        rows = table.select(schema.names).cast(schema)
        with pq.ParquetWriter(self._path(name), schema, compression="zstd") as file:
            file.write_table(rows, row_group_size=ROWS_AT_A_TIME)

    @contextmanager
    def rows(self, name: str) -> Iterator[Callable[[Any], None]]:
        """Give a function that writes one row of a table; the table is whole after the block."""
        row_type = all_tables()[name]
        schema = schema_of(row_type)
        names = schema.names
        waiting: list[Any] = []
        with pq.ParquetWriter(self._path(name), schema, compression="zstd") as file:

            def flush() -> None:
                columns = [
                    pa.array(
                        [getattr(row, column) for row in waiting], type=schema.field(column).type
                    )
                    for column in names
                ]
                file.write_batch(pa.record_batch(columns, schema=schema))
                waiting.clear()

            def write(row: Any) -> None:
                waiting.append(row)
                if len(waiting) >= ROWS_AT_A_TIME:
                    flush()

            yield write
            flush()

    def _path(self, table: str) -> Path:
        return self.directory / f"{table}.parquet"


def write_header(directory: Path, content: Mapping[str, Any]) -> None:
    """Write the facts about a release into a snapshot's directory."""
    text = json.dumps(content, ensure_ascii=False, indent=2) + "\n"
    (directory / HEADER_FILE).write_text(text, encoding="utf-8")


def gains_of(pairs: pa.Table, graded: Collection[int]) -> npt.NDArray[np.int64]:
    """(n,) gains of pairs with the columns query_id, relevant and grade. In the queries `graded`
    a pair's gain is its grade (a relevant pair without one counts as definitely relevant, another
    as definitely not); in other queries it is 1 or 0."""
    relevant = pairs["relevant"].to_numpy().astype(np.int64)
    in_graded = np.isin(pairs["query_id"].to_numpy(), list(graded))
    grades = pairs["grade"].fill_null(-1).to_numpy()
    gains: npt.NDArray[np.int64] = np.where(
        in_graded, np.where(grades < 0, relevant * HIGHEST, grades), relevant
    )
    return gains


def schema_of(row_type: type) -> pa.Schema:
    """The Parquet schema of a table's rows."""
    hints = typing.get_type_hints(row_type)
    return pa.schema(
        [_arrow_field(column.name, hints[column.name]) for column in dataclasses.fields(row_type)]
    )


def _arrow_field(name: str, hint: Any) -> pa.Field:
    nullable = typing.get_origin(hint) in (types.UnionType, typing.Union)
    if nullable:
        hint = next(kind for kind in typing.get_args(hint) if kind is not type(None))
    kinds: dict[Any, pa.DataType] = {
        int: pa.int64(),
        float: pa.float64(),
        bool: pa.bool_(),
        str: pa.string(),
        list[str]: pa.list_(pa.string()),
        list[float]: pa.list_(pa.float32()),
    }
    return pa.field(name, kinds[hint], nullable=nullable)
