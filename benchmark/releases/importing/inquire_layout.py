"""Reading an existing benchmark in INQUIRE's layout: a directory with query files and annotations.

    *queries_val.csv, *queries_test.csv   INQUIRE's query columns (`labeling.queries.files`), or
    *queries.csv                          the same with a column split
    *annotations.csv                      query_id, image_id and, if there is one, image_path: one
                                          row per relevant pair, in any order; or one such file for
                                          each split, *annotations_val.csv and *annotations_test.csv

Any benchmark may have its own categories and groups. A release of this application tells more, see
`layout_labels`: single judgments and the fixed lists for re-ranking.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from benchmark.releases.importing.layout_labels import labels_read
from benchmark.releases.importing.layout_store import Layout, LayoutQuery
from core.csv_rows import RowError, csv_records, numbered_texts, whole_number
from core.errors import FileRefused
from core.files import open_regular
from labeling.queries.categories import SPLITS
from labeling.queries.files import read_queries

PATH_COLUMN: Final = "image_path"


class LayoutRefused(FileRefused):
    """It isn't a benchmark in this layout."""


@dataclass(frozen=True, slots=True)
class LayoutFiles:
    """The files of a benchmark."""

    queries: list[Path]
    annotations: list[Path]
    judgments: list[Path]
    """None where the benchmark tells no single judgments."""


def layout_read(directory: Path, *, database: Path) -> Layout:
    """Read a benchmark whole; `database` is a file that doesn't exist yet, for pairs and paths.

    LayoutRefused: files are missing or ambiguous, or anything in them is wrong. OSError: one can't
    be read.
    """
    files = layout_files(directory)
    errors: list[RowError] = []
    queries = _read_queries(files.queries, errors)
    if errors:
        # Each pair of a query that can't be read would be one more error.
        raise LayoutRefused(errors)
    layout = Layout(database)
    try:
        layout.queries = queries
        known = {one.query.query_id for one in queries}
        for path in files.annotations:
            with open_regular(path) as file:
                rows = _annotation_rows(file, path, known, errors)
                layout.add_rows(rows, name=path.name, errors=errors)
        if not errors:
            labels_read(layout, directory, files.judgments, errors)
        if errors:
            raise LayoutRefused(sorted(errors, key=lambda error: (error.file, error.line)))
    except BaseException:
        layout.close()
        raise
    return layout


def layout_files(directory: Path) -> LayoutFiles:
    """The files of the benchmark in a directory, by their names. LayoutRefused: see
    `layout_read`."""
    if not directory.is_dir():
        raise LayoutRefused([RowError(str(directory), 1, "", "there is no such directory")])
    errors: list[RowError] = []
    stems = {path: path.stem.lower() for path in sorted(directory.glob("*.csv"))}

    def chosen(kind: str, wanted: str = "") -> list[Path]:
        whole = [path for path, stem in stems.items() if _ends(stem, kind)]
        parts = {
            split: [path for path, stem in stems.items() if _ends(stem, f"{kind}_{split}")]
            for split in SPLITS
        }
        # A file of all rows goes before those of the splits, which repeat it.
        for paths in [whole] if whole else parts.values():
            if len(paths) > 1:
                names = ", ".join(path.name for path in paths)
                message = f"which of {names} is meant? Leave one of them"
                errors.append(RowError(str(directory), 1, "", message))
        found = whole or [path for paths in parts.values() for path in paths]
        if wanted and not found:
            errors.append(RowError(str(directory), 1, "", f"no file of {kind}: {wanted}"))
        return found

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
    found: dict[int, LayoutQuery] = {}
    first: dict[int, str] = {}
    counts: Counter[str] = Counter()
    for path in paths:
        with open_regular(path) as file:
            rows, wrong = read_queries(file, name=path.name, vocabulary=False)
        errors += wrong
        if not wrong and _ends(path.stem.lower(), "queries") and not _has_split(path):
            message = "a file of both splits needs this column"
            errors.append(RowError(path.name, 1, "split", message))
        for row in rows:
            if row.query_id in found:
                message = f"{row.query_id} stands already in {first[row.query_id]}"
                errors.append(RowError(path.name, row.line, "query_id", message))
                continue
            first[row.query_id] = f"{path.name}, line {row.line}"
            found[row.query_id] = LayoutQuery(query=row, row=counts[row.split])
            counts[row.split] += 1
    if not found and not errors:
        errors.append(RowError(paths[0].name, 1, "", "there is no query in the files"))
    return _without_repeated_indexes([found[query_id] for query_id in sorted(found)])


def _without_repeated_indexes(queries: list[LayoutQuery]) -> list[LayoutQuery]:
    """Where the unnamed column counts each file from 0 it names no place among all queries."""
    indexes = [one.query.index for one in queries]
    if len(set(indexes)) == len(indexes):
        return queries
    return [replace(one, query=replace(one.query, index=-1)) for one in queries]


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


def _has_split(path: Path) -> bool:
    return "split" in _header(path)


def _annotation_rows(
    lines: Iterable[bytes], path: Path, known: set[int], errors: list[RowError]
) -> Iterator[tuple[int, int, int, str]]:
    """(line, query id, image id, path) of each row that is right; the others go to `errors`."""
    columns = ["query_id", "image_id"]
    if PATH_COLUMN in _header(path):
        columns.append(PATH_COLUMN)
    records = csv_records(numbered_texts(lines), name=path.name, columns=columns, errors=errors)
    for line, fields in records:
        before = len(errors)
        numbers = []
        for column, field in zip(columns, fields[:2], strict=False):
            number = whole_number(field)
            numbers.append(number)
            if number is None:
                message = f"{field[:40]!r} is not a whole number"
                errors.append(RowError(path.name, line, column, message))
        query_id, image_id = numbers
        if query_id is not None and query_id not in known:
            message = f"{query_id} is in no query file of the benchmark"
            errors.append(RowError(path.name, line, "query_id", message))
        image_path = fields[2] if len(fields) > 2 else ""
        if "\0" in image_path or "\ufffd" in image_path:
            errors.append(RowError(path.name, line, PATH_COLUMN, "not UTF-8 text"))
        if len(errors) == before and query_id is not None and image_id is not None:
            yield line, query_id, image_id, image_path
