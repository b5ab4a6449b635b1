"""Reading an existing benchmark in INQUIRE's layout: a directory with query files and annotations.

    *queries_val.csv, *queries_test.csv   INQUIRE's query columns (`labeling.queries.files`), or
    *queries.csv                          the same with a column split
    *annotations.csv                      query_id, image_id and, if there is one, image_path: one
                                          row per relevant pair, in any order; or one such file for
                                          each split, *annotations_val.csv and *annotations_test.csv

Any benchmark may have its own categories and groups. A release of this application has more, which
must agree with the annotations:

    *judgments.csv                     see `release_files`; or one for a split, *judgments_val.csv
    inquire_rerank/val.csv, test.csv   see `formats.inquire_rerank`
    snapshot/                          see `snapshot`: the queries' fields that other files lack
    manifest.json                      where all of these are the files that it lists, the import
                                       copies all tables of the snapshot

Or one in BEIR's: see `beir_files`; or in another one of LAYOUTS.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Final

import pyarrow.parquet as pq

from core.csv_rows import RowError, csv_rows
from core.errors import FileRefused
from core.files import open_regular
from core.ids import id_of
from core.line_stream import GROWTH_FREE, MAX_GROWTH
from labeling.candidates.stopping import RELEVANCES
from labeling.judging.grades import GRADES
from labeling.judging.sources import JudgmentSource
from labeling.queries.categories import SPLITS
from labeling.queries.files import read_queries, split_of_name
from releases.importing.beir_files import is_beir, read_beir
from releases.importing.layout import (
    ANNOTATIONS,
    DETAILS,
    JUDGMENTS,
    LISTED,
    Layout,
    LayoutQuery,
    Rows,
)
from releases.making.files import file_sha256
from releases.snapshot.manifest import MANIFEST_FILE
from releases.snapshot.release_files import (
    GRADE_COLUMNS,
    JUDGMENT_COLUMNS,
    RELEASE_FILES,
    SNAPSHOT_FOLDER,
)
from releases.snapshot.snapshot import HEADER_FILE, Snapshot

PATH_COLUMN: Final = "image_path"
RERANK_FOLDER: Final = "inquire_rerank"

_ANNOTATOR: Final = re.compile(r"annotator_([1-9][0-9]{0,8})")
_TEXTS: Final = ("inat24_file_name", "inat24_species_name", "date", "license", "rights_holder")
_NUMBERS: Final = ("latitude", "longitude", "location_uncertainty")
_LISTED_COLUMNS: Final = ("query_id", "rank", "inat24_image_id", "clip_score", "relevant", "judged",
                          *_TEXTS, *_NUMBERS)  # fmt: skip
#: Few, for each may repeat a long text that the file holds once.
_CHECKED_ROWS: Final = 1000


class LayoutRefused(FileRefused):
    """It isn't a benchmark in this layout."""


@dataclass(frozen=True, slots=True)
class LayoutFiles:
    """The files of a benchmark."""

    queries: list[Path]
    annotations: list[Path]
    judgments: list[Path]
    """Empty where the benchmark has no single judgments."""


LAYOUTS: list[tuple[Callable[[Path], bool], Callable[[Path, list[RowError]], Layout]]] = [
    (is_beir, read_beir)
]
"""Whether a directory holds a benchmark in the layout, and the layout's reader; extras append
theirs. A directory in none of these has INQUIRE's layout."""


def layout_read(directory: Path) -> Layout:
    """Read a benchmark whole.

    LayoutRefused: files are missing or ambiguous, or anything in them is wrong. OSError: one can't
    be read.
    """
    errors: list[RowError] = []
    read = next((reader for matches, reader in LAYOUTS if matches(directory)), _read_layout)
    layout = read(directory, errors)
    if errors:
        raise LayoutRefused(sorted(errors, key=lambda error: (error.file, error.line)))
    return layout


def _read_layout(directory: Path, errors: list[RowError]) -> Layout:
    files = layout_files(directory)
    queries = _read_queries(files.queries, errors)
    if errors:
        # Each pair of a query that can't be read would be one more error.
        raise LayoutRefused(errors)
    splits = {read.query.query_id: read.query.split for read in queries}
    annotations, judgments, listed = Rows(ANNOTATIONS), Rows(JUDGMENTS), Rows(LISTED)
    judged_splits: set[str] = set()
    for path in files.annotations:
        with open_regular(path) as file:
            _read_annotations(file, path, splits, annotations, errors)
    if not errors:
        for path in files.judgments:
            with open_regular(path) as file:
                # A release of a benchmark without judgments has a file without rows.
                if _read_judgments(file, path.name, splits, judgments, errors):
                    # The name of a file of both splits has none.
                    split = split_of_name(path.name)
                    judged_splits |= {split} if split else set(SPLITS)
        for split in SPLITS:
            path = directory / RERANK_FOLDER / f"{split}.csv"
            if path.is_file():
                with open_regular(path) as file:
                    _read_listed(file, split, splits, listed, errors)
    layout = Layout(
        queries=queries,
        annotations=annotations.table(),
        judgments=judgments.table(),
        fixed=listed.table(),
        judged_splits=judged_splits,
    )
    layout.validate_and_join(errors)
    if not errors:
        _read_snapshot(layout, directory / SNAPSHOT_FOLDER, errors)
    return layout


def layout_files(directory: Path) -> LayoutFiles:
    """The files of the benchmark in a directory, by their names. LayoutRefused: see
    `layout_read`."""
    if not directory.is_dir():
        raise LayoutRefused([RowError(str(directory), 1, "", "there is no such directory")])
    errors: list[RowError] = []
    stems = {path: path.stem.lower() for path in sorted(directory.glob("*.csv"))}

    def chosen(kind: str, needed: str = "") -> list[Path]:
        whole = [path for path, stem in stems.items() if _ends(stem, kind)]
        parts = {
            split: [path for path, stem in stems.items() if _ends(stem, f"{kind}_{split}")]
            for split in SPLITS
        }
        # A file of all rows goes before those of the splits, which repeat it.
        for paths in [whole] if whole else parts.values():
            if len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                message = f"which of {names} is meant? Keep only one of them"
                errors.append(RowError(str(directory), 1, "", message))
        matching = whole or [path for paths in parts.values() for path in paths]
        if needed and not matching:
            errors.append(RowError(str(directory), 1, "", f"no file of {kind}: {needed}"))
        return matching

    files = LayoutFiles(
        queries=chosen("queries", "…queries_val.csv and …queries_test.csv, or …queries.csv"),
        annotations=chosen("annotations", "…annotations.csv"),
        judgments=chosen("judgments"),
    )
    if errors:
        raise LayoutRefused(errors)
    return files


def _ends(stem: str, name: str) -> bool:
    return stem == name or stem.endswith((f"_{name}", f"-{name}"))


def _read_queries(paths: list[Path], errors: list[RowError]) -> list[LayoutQuery]:
    by_id: dict[int, LayoutQuery] = {}
    first: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for path in paths:
        with open_regular(path) as file:
            rows, wrong = read_queries(file, name=path.name, vocabulary=False)
        errors += wrong
        if not wrong and _ends(path.stem.lower(), "queries") and "split" not in _header(path):
            message = "a file of both splits needs this column"
            errors.append(RowError(path.name, 1, "split", message))
        for row in rows:
            if row.query_id in by_id:
                message = f"{row.query_id} is already in {first[row.query_id]}"
                errors.append(RowError(path.name, row.line, "query_id", message))
                continue
            first[row.query_id] = f"{path.name}, line {row.line}"
            by_id[row.query_id] = LayoutQuery(query=row, row=counts[row.split])
            counts[row.split] += 1
    if not by_id and not errors:
        errors.append(RowError(paths[0].name, 1, "", "there is no query in the files"))
    queries = [by_id[query_id] for query_id in sorted(by_id)]
    if len({read.query.index for read in queries}) < len(queries):
        # The unnamed column counts each file from 0, so it isn't the position among all queries.
        queries = [replace(read, query=replace(read.query, index=-1)) for read in queries]
    return queries


def _header(path: Path) -> list[str]:
    with (
        open_regular(path) as data,
        io.TextIOWrapper(data, encoding="utf-8-sig", errors="replace", newline="") as file,
    ):
        records = csv.reader(file)
        try:
            return [column.strip() for column in next(filter(None, records), [])]
        except csv.Error:
            return []


def _read_annotations(
    lines: BinaryIO, path: Path, splits: Mapping[int, str], into: Rows, errors: list[RowError]
) -> None:
    for row in _rows(lines, path.name, ("query_id", "image_id"), errors, optional=(PATH_COLUMN,)):
        query_id, image_id = row.query(splits), row.whole_number("image_id")
        if row.valid:
            into.add(query_id, image_id, row.fields.get(PATH_COLUMN, ""), path.name, row.line)


def _read_judgments(
    lines: BinaryIO, name: str, splits: Mapping[int, str], into: Rows, errors: list[RowError]
) -> int:
    """Read judgments; how many there are."""
    count = 0
    for row in _rows(lines, name, JUDGMENT_COLUMNS, errors, optional=GRADE_COLUMNS):
        query_id, image_id = row.query(splits), row.whole_number("image_id")
        relevance = row.one_of("relevance", RELEVANCES)
        source = row.one_of("source", JudgmentSource)
        person = _ANNOTATOR.fullmatch(row.fields["annotator"])
        if person is None:
            row.wrong("annotator", "is not annotator_ and a number from 1")
        rank = row.whole_number("rank", least=1) if row.fields["rank"] else None
        seconds = row.number("seconds", least=0)
        grade = row.fields.get("grade", "")
        if grade:
            row.one_of("grade", map(str, GRADES))
        if row.valid and person is not None:
            into.add(
                *(query_id, image_id, relevance, int(person[1]), rank, seconds, source),
                *(int(grade) if grade else None, row.fields.get("reason", ""), name, row.line),
            )
            count += 1
    return count


def _read_listed(
    lines: BinaryIO, split: str, splits: Mapping[int, str], into: Rows, errors: list[RowError]
) -> None:
    name = f"{RERANK_FOLDER}/{split}.csv"
    own = {query_id: of for query_id, of in splits.items() if of == split}
    for row in _rows(lines, name, _LISTED_COLUMNS, errors):
        query_id, rank = row.query(own), row.whole_number("rank", least=1)
        image_id, score = row.whole_number("inat24_image_id"), row.number("clip_score")
        relevant = row.one_of("relevant", "01") == "1"
        # Blank where nobody knows.
        judged = row.one_of("judged", ("0", "1", "")) == "1"
        numbers = [row.number(column) if row.fields[column] else None for column in _NUMBERS]
        path, species, *texts = (row.fields[column] for column in _TEXTS)
        if row.valid:
            into.add(query_id, rank, image_id, score, relevant, judged, path, species, *numbers,
                     *texts, name, row.line)  # fmt: skip


def _read_snapshot(layout: Layout, directory: Path, errors: list[RowError]) -> None:
    if not (directory / HEADER_FILE).is_file():
        return
    snapshot = Snapshot(directory)
    try:
        for path in sorted(directory.glob("*.parquet")):
            _check_growth(path)
        layout.header = snapshot.header
        layout.own_queries = snapshot.queries
        if _matches_manifest(directory.parent):
            layout.intact_snapshot = snapshot
            images = pq.read_table(
                snapshot.path("images"), columns=["image_id", "file_name", *DETAILS]
            )
            layout.images = images.rename_columns(["image_id", "path", *DETAILS])
        else:
            columns = ["image_id", "file_name"]
            layout.add_paths(pq.read_table(snapshot.path("images"), columns=columns))
        if snapshot.graded_queries:
            columns = ["query_id", "image_id", "grade"]
            layout.add_grades(pq.read_table(snapshot.path("pairs"), columns=columns))
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"can't be read ({error}); without this folder the benchmark can be imported"
        errors.append(RowError(directory.name, 1, "", message))


def _check_growth(path: Path) -> None:
    """Raise ValueError where more comes out of a Parquet file than of any table."""
    most = max(GROWTH_FREE, MAX_GROWTH * path.stat().st_size)
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(batch_size=_CHECKED_ROWS):
            most -= batch.nbytes
            if most < 0:
                raise ValueError(f"{path.name} becomes more than {MAX_GROWTH} times as large")


def _matches_manifest(directory: Path) -> bool:
    """Whether the files of a release that an import reads are those that its manifest lists."""
    try:
        manifest = json.loads((directory / MANIFEST_FILE).read_text(encoding="utf-8"))
        listed = {entry["name"]: entry["sha256"] for entry in manifest["files"]}
    except (OSError, ValueError, KeyError, TypeError):
        return False
    folders = (SNAPSHOT_FOLDER, RERANK_FOLDER)
    read = {name for name in listed if name in RELEASE_FILES or name.split("/")[0] in folders}
    present = {path.relative_to(directory).as_posix()
               for folder in folders for path in (directory / folder).glob("*")}  # fmt: skip
    return present <= read and all(
        (directory / name).is_file() and file_sha256(directory / name) == listed[name]
        for name in read
    )


def _rows(
    lines: BinaryIO,
    name: str,
    required: Sequence[str],
    errors: list[RowError],
    optional: Sequence[str] = (),
) -> Iterator[_Row]:
    """The rows of a file, whose columns beyond these are ignored."""
    for line, fields in csv_rows(
        lines, name=name, required=required, optional=optional, errors=errors, others=True
    ):
        yield _Row(name, line, fields, errors)


class _Row:
    """One row, and what is wrong with it."""

    def __init__(
        self, name: str, line: int, fields: Mapping[str, str], errors: list[RowError]
    ) -> None:
        self.line = line
        self.fields = {column: field.strip() for column, field in fields.items()}
        self.valid = True
        self._name = name
        self._errors = errors

    def wrong(self, column: str, says: str) -> None:
        """Add an error about a field; `says` continues a sentence that begins with its text."""
        self.valid = False
        message = f"{self.fields[column][:40]!r} {says}"
        self._errors.append(RowError(self._name, self.line, column, message))

    def whole_number(self, column: str, least: int = 0) -> int:
        """A field that is a whole number; 0 where it is wrong."""
        number = id_of(self.fields[column])
        if number is None or number < least:
            self.wrong(column, f"is not a whole number from {least}")
            return 0
        return number

    def query(self, known: Mapping[int, str]) -> int:
        """The query's id, which must be among these."""
        number = self.whole_number("query_id")
        if self.valid and number not in known:
            self.wrong("query_id", "is in no query file that this one goes with")
        return number

    def number(self, column: str, least: float = -math.inf) -> float:
        """A field that is a finite number; 0 where it is wrong."""
        try:
            number = float(self.fields[column])
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and number >= least):
            self.wrong(column, "is not a number" if least < 0 else f"is not a number from {least}")
            return 0.0
        return number

    def one_of(self, column: str, choices: Iterable[str]) -> str:
        """A field that is one of these."""
        text = self.fields[column]
        if text not in list(choices):
            self.wrong(column, f"is not one of {', '.join(sorted(choices))}")
        return text
