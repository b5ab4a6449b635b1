"""What was read of a benchmark: queries in memory, everything else in a database file of SQLite's,
so that memory doesn't grow with the labels."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from benchmark.releases.snapshot.release_files import JudgmentRow
from benchmark.releases.snapshot.snapshot import FixedImage, Header, Pair, SnapshotQuery
from core.csv_rows import MAX_ERRORS, RowError
from labeling.judging.consensus import Vote
from labeling.queries.files import QueryRow

_ROWS_AT_A_TIME: Final = 5000
_TABLES: Final = """
CREATE TABLE pair (query_id INTEGER, image_id INTEGER, file TEXT, line INTEGER,
    PRIMARY KEY (query_id, image_id)) WITHOUT ROWID;
CREATE TABLE image (image_id INTEGER PRIMARY KEY, path TEXT, file TEXT, line INTEGER);
CREATE TABLE judgment (query_id INTEGER, image_id INTEGER, annotator INTEGER, relevance TEXT,
    rank INTEGER, seconds REAL, source TEXT, file TEXT, line INTEGER,
    PRIMARY KEY (query_id, image_id, annotator)) WITHOUT ROWID;
CREATE TABLE decided (query_id INTEGER, image_id INTEGER, relevant INTEGER, votes INTEGER,
    rank INTEGER, PRIMARY KEY (query_id, image_id)) WITHOUT ROWID;
CREATE TABLE fixed (query_id INTEGER, rank INTEGER, image_id INTEGER, score REAL, relevant INTEGER,
    judged INTEGER, file TEXT, line INTEGER, PRIMARY KEY (query_id, rank),
    UNIQUE (query_id, image_id)) WITHOUT ROWID;
CREATE TABLE told (image_id INTEGER PRIMARY KEY, scientific_name TEXT, latitude REAL,
    longitude REAL, location_uncertainty REAL, observed_at TEXT, license TEXT, rights_holder TEXT);
"""
#: What a fixed list tells of an image besides its path, by the names of `SnapshotImage`.
TOLD: Final = (
    "scientific_name",
    "latitude",
    "longitude",
    "location_uncertainty",
    "observed_at",
    "license",
    "rights_holder",
)


@dataclass(frozen=True, slots=True)
class LayoutQuery:
    """A query, and where it stands."""

    query: QueryRow
    row: int
    """Its place, from 0, among the queries of its split in the files' order."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row stands."""

    file: str
    line: int


@dataclass(frozen=True, slots=True)
class JudgedPair:
    """What people said of a pair, and whether the annotations name it."""

    query_id: int
    image_id: int
    votes: list[Vote]
    """Of annotators: the files tell no roles."""
    rank: int | None
    named: bool
    place: Place
    """Of the first vote."""


@dataclass(frozen=True, slots=True)
class ListedPair:
    """What a fixed list says of a pair, beside what the other files do."""

    query_id: int
    image_id: int
    relevant: bool
    judged: bool
    named: bool
    """By the annotations."""
    has_judgments: bool
    place: Place


@dataclass(frozen=True, slots=True)
class Effort:
    """What was put into the labels of a query."""

    annotators: int
    seconds: float


class Layout:
    """A benchmark that was read and found right; close it when it was used."""

    def __init__(self, database: Path) -> None:
        self.queries: list[LayoutQuery] = []
        """By query id."""
        self.duplicates = 0
        """Rows that repeat a pair."""
        self.rows = 0
        """Rows of the annotations."""
        self.judged_splits: set[str] = set()
        """Of whose queries every judgment is told."""
        self.header: Header | None = None
        """Of the snapshot that goes along with a release made by this application."""
        self.own_queries: dict[int, SnapshotQuery] = {}
        """The same snapshot's queries."""
        self._connection = sqlite3.connect(database)
        self._connection.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;")
        self._connection.executescript(_TABLES)

    def close(self) -> None:
        """Let go of the database file."""
        self._connection.close()

    def __enter__(self) -> Layout:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def pair_count(self) -> int:
        """How many pairs there are, relevant or judged."""
        return self._number(f"SELECT count(*) FROM ({_PAIRS})")

    @property
    def ships_test_labels(self) -> bool:
        """Whether the files name a relevant image of a test query."""
        test = {one.query.query_id for one in self.queries if one.query.split == "test"}
        named = self._connection.execute("SELECT DISTINCT query_id FROM pair")
        return any(query_id in test for (query_id,) in named)

    @property
    def image_count(self) -> int:
        """How many images the files name."""
        return self._number("SELECT count(*) FROM image")

    @property
    def judgment_count(self) -> int:
        """How many single judgments there are."""
        return self._number("SELECT count(*) FROM judgment")

    @property
    def annotator_count(self) -> int:
        """How many people judged."""
        return self._number("SELECT count(DISTINCT annotator) FROM judgment")

    @property
    def has_fixed(self) -> bool:
        """Whether the files hold fixed lists."""
        return bool(self._number("SELECT EXISTS (SELECT * FROM fixed)"))

    def pairs(self) -> Iterator[Pair]:
        """Each relevant or judged pair, by query id and image id; without votes where no judgments
        tell of it."""
        for query_id, image_id, relevant, votes, rank in self._select(f"{_PAIRS} ORDER BY 1, 2"):
            yield Pair(query_id, image_id, relevant=bool(relevant), votes=votes, rank=rank)

    def judgments(self) -> Iterator[JudgmentRow]:
        """Each judgment by query id, image id and annotator."""
        statement = (
            "SELECT query_id, image_id, relevance, annotator, rank, seconds, source FROM judgment "
            "ORDER BY query_id, image_id, annotator"
        )
        return (JudgmentRow(*row) for row in self._select(statement))

    def efforts(self) -> dict[int, Effort]:
        """What was put into each query that has judgments."""
        statement = (
            "SELECT query_id, count(DISTINCT annotator), sum(seconds) FROM judgment "
            "GROUP BY query_id"
        )
        return {query_id: Effort(*rest) for query_id, *rest in self._select(statement)}

    def fixed(self) -> Iterator[FixedImage]:
        """The fixed lists by query id and rank."""
        statement = "SELECT query_id, rank, image_id, score FROM fixed ORDER BY query_id, rank"
        return (FixedImage(*row) for row in self._select(statement))

    def images(self) -> Iterator[tuple[int, str]]:
        """(image id, path) of each image by id; the path is empty where the files tell none."""
        yield from self._select("SELECT image_id, path FROM image ORDER BY image_id")

    def told(self, first: int, last: int) -> dict[int, dict[str, Any]]:
        """What the fixed lists tell of the images with ids from `first` to `last`, by id: values of
        `SnapshotImage`."""
        statement = f"SELECT image_id, {', '.join(TOLD)} FROM told WHERE image_id BETWEEN ? AND ?"
        return {
            image_id: dict(zip(TOLD, values, strict=True))
            for image_id, *values in self._select(statement, (first, last))
        }

    def add_rows(
        self, rows: Iterable[tuple[int, int, int, str]], *, name: str, errors: list[RowError]
    ) -> None:
        """Store (line, query id, image id, path) of annotations; an image with another path than
        before is an error."""
        for _, part in groupby(enumerate(rows), key=lambda one: one[0] // _ROWS_AT_A_TIME):
            batch = [row for _, row in part]
            cursor = self._connection.executemany(
                "INSERT OR IGNORE INTO pair VALUES (?, ?, ?, ?)",
                [(query_id, image_id, name, line) for line, query_id, image_id, _ in batch],
            )
            self.rows += len(batch)
            self.duplicates += len(batch) - cursor.rowcount
            for line, _, image_id, path in batch:
                self.add_image(image_id, path, place=Place(name, line), errors=errors)

    def add_image(
        self, image_id: int, path: str, *, place: Place, errors: list[RowError], column: str = ""
    ) -> None:
        """Store an image; one with another path than before is an error of the column."""
        added = self._connection.execute(
            "INSERT OR IGNORE INTO image VALUES (?, ?, ?, ?)",
            (image_id, path, place.file, place.line),
        )
        if added.rowcount:
            return
        known, file, line = self._connection.execute(
            "SELECT path, file, line FROM image WHERE image_id = ?", (image_id,)
        ).fetchone()
        if path and not known:
            self._connection.execute(
                "UPDATE image SET path = ?, file = ?, line = ? WHERE image_id = ?",
                (path, place.file, place.line, image_id),
            )
        elif path and known != path and len(errors) < MAX_ERRORS:
            where = f"on line {line}" if file == place.file else f"in {file}, line {line}"
            message = f"image {image_id} has the path {known[:80]!r} {where}"
            errors.append(RowError(place.file, place.line, column or "image_path", message))

    def add_paths(self, rows: Iterable[tuple[str, int]]) -> None:
        """Store (path, image id) of the images that are named without a path."""
        self._connection.executemany(
            "UPDATE image SET path = ? WHERE image_id = ? AND path = ''", rows
        )

    def add_judgments(
        self, rows: Iterable[tuple[JudgmentRow, Place]], *, errors: list[RowError]
    ) -> None:
        """Store judgments; a person's second one of a pair is an error."""
        statement = "INSERT OR IGNORE INTO judgment VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
        for one, place in rows:
            values = (one.query_id, one.image_id, one.annotator, one.relevance, one.rank,
                      one.seconds, one.source, place.file, place.line)  # fmt: skip
            if not self._connection.execute(statement, values).rowcount:
                message = f"annotator_{one.annotator} judged this pair on a line before"
                errors.append(RowError(place.file, place.line, "annotator", message))
        self._connection.execute(
            "INSERT OR IGNORE INTO image SELECT DISTINCT image_id, '', file, line FROM judgment"
        )

    def add_fixed(
        self, one: FixedImage, relevant: bool, judged: bool, place: Place, errors: list[RowError]
    ) -> None:
        """Store an image of a fixed list; a rank or an image that stands twice is an error."""
        values = (one.query_id, one.rank, one.image_id, one.score, relevant, judged, place.file,
                  place.line)  # fmt: skip
        statement = "INSERT OR IGNORE INTO fixed VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        if not self._connection.execute(statement, values).rowcount:
            message = f"this rank, or image {one.image_id}, stands on a line before"
            errors.append(RowError(place.file, place.line, "rank", message))

    def add_told(self, image_id: int, values: Sequence[object]) -> None:
        """Store what a fixed list tells of an image, in the order of TOLD; the first counts."""
        marks = ", ".join("?" * (1 + len(TOLD)))
        self._connection.execute(
            f"INSERT OR IGNORE INTO told VALUES ({marks})", (image_id, *values)
        )

    def decide(self, rows: Iterable[tuple[int, int, bool, int, int | None]]) -> None:
        """Store (query id, image id, relevant, votes, rank) of judged pairs."""
        self._connection.executemany("INSERT INTO decided VALUES (?, ?, ?, ?, ?)", rows)

    def judged_pairs(self) -> Iterator[JudgedPair]:
        """Each pair that has judgments, by query id and image id."""
        rows = self._select(
            "SELECT j.query_id, j.image_id, j.annotator, j.relevance, j.rank, j.file, j.line, "
            "p.query_id IS NOT NULL FROM judgment j LEFT JOIN pair p USING (query_id, image_id) "
            "ORDER BY j.query_id, j.image_id, j.annotator"
        )
        for (query_id, image_id), group in groupby(rows, key=lambda row: row[:2]):
            found = list(group)
            *_, rank, file, line, named = found[0]
            yield JudgedPair(
                query_id=query_id,
                image_id=image_id,
                votes=[Vote(row[2], "annotator", row[3]) for row in found],
                rank=rank,
                named=bool(named),
                place=Place(file, line),
            )

    def pairs_without_judgment(self) -> Iterator[tuple[int, int, Place]]:
        """(query id, image id, where) of each relevant pair that no judgment tells of."""
        rows = self._select(
            "SELECT query_id, image_id, file, line FROM pair p WHERE NOT EXISTS (SELECT * FROM "
            "judgment j WHERE j.query_id = p.query_id AND j.image_id = p.image_id) ORDER BY line"
        )
        return ((query_id, image_id, Place(*where)) for query_id, image_id, *where in rows)

    def listed_pairs(self) -> Iterator[ListedPair]:
        """Each pair of the fixed lists, by query id and rank."""
        rows = self._select(
            "SELECT f.query_id, f.image_id, f.relevant, f.judged, p.query_id IS NOT NULL, "
            "d.query_id IS NOT NULL, f.file, f.line FROM fixed f "
            "LEFT JOIN pair p USING (query_id, image_id) "
            "LEFT JOIN decided d ON d.query_id = f.query_id AND d.image_id = f.image_id "
            "ORDER BY f.query_id, f.rank"
        )
        for query_id, image_id, *flags, file, line in rows:
            relevant, judged, named, has_judgments = map(bool, flags)
            yield ListedPair(
                query_id, image_id, relevant, judged, named, has_judgments, Place(file, line)
            )

    def lists_with_gaps(self) -> Iterator[tuple[int, Place]]:
        """(query id, where it begins) of each fixed list whose ranks aren't 1, 2, 3 …"""
        rows = self._select(
            "SELECT query_id, file, min(line) FROM fixed GROUP BY query_id "
            "HAVING min(rank) != 1 OR max(rank) != count(*)"
        )
        return ((query_id, Place(*where)) for query_id, *where in rows)

    def _select(self, statement: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        with closing(self._connection.execute(statement, values)) as found:
            yield from found

    def _number(self, statement: str) -> int:
        return int(self._connection.execute(statement).fetchone()[0])


#: Judged pairs, and the relevant ones that no judgment tells of.
_PAIRS: Final = """
SELECT query_id, image_id, relevant, votes, rank FROM decided UNION ALL
SELECT query_id, image_id, 1, 0, NULL FROM pair p WHERE NOT EXISTS (SELECT * FROM decided d
    WHERE d.query_id = p.query_id AND d.image_id = p.image_id)
"""
