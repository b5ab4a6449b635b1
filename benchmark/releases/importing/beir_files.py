"""Reading an existing benchmark in BEIR's layout, whose ids are whole numbers.

    queries.jsonl          _id and text of each query; in metadata, if there is one, supercategory,
                           category, iconic_group and split
    qrels/validation.tsv   query-id, corpus-id, score of the validation split; or dev.tsv, val.tsv
    qrels/test.tsv         the same of the test split; one of the two is enough
    corpus.jsonl           _id of each image and, if metadata has it, file_name; may be missing

A score above 0 is relevant. A file with other scores names the judged images that aren't relevant
too; without them nobody knows which were judged. A query's split is that of the file that names
it, else the one in its metadata; without either it isn't part of the benchmark, as for BEIR's own
loader. A category that isn't given is NOT_KNOWN.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from benchmark.releases.importing.layout import (
    ANNOTATIONS,
    JUDGMENTS,
    LISTED,
    Layout,
    LayoutQuery,
    Rows,
)
from benchmark.scoring.line_stream import Unreadable, text_lines
from benchmark.scoring.qrels_files import qrels_rows
from core.csv_rows import MAX_ERRORS, RowError
from core.files import open_regular
from core.ids import id_of
from labeling.queries.categories import SPLITS
from labeling.queries.files import query_row

QUERIES_FILE: Final = "queries.jsonl"
CORPUS_FILE: Final = "corpus.jsonl"
QRELS_FOLDER: Final = "qrels"
#: Split -> what its qrels may be called.
QRELS_NAMES: Final = {"val": ("validation", "dev", "val"), "test": ("test",)}
NOT_KNOWN: Final = "not known"

#: A field of a query's row -> the key that holds it.
_KEYS: Final = {"query_id": "_id", "query_text": "text"}
_METADATA: Final = ("supercategory", "category", "iconic_group", "split")
_SHOWN: Final = 40


@dataclass(slots=True)
class _Qrels:
    """The rows of both qrels files."""

    relevant: Rows = field(default_factory=lambda: Rows(ANNOTATIONS))
    others: Rows = field(default_factory=lambda: Rows(ANNOTATIONS))
    splits: dict[int, str] = field(default_factory=dict)
    """Of the queries that they name."""
    places: dict[int, tuple[str, int]] = field(default_factory=dict)
    """File and line that first name a query."""
    judged_splits: set[str] = field(default_factory=set)
    """Whose file names images that aren't relevant."""


def is_beir(directory: Path) -> bool:
    """Whether a directory holds a benchmark in this layout."""
    return (directory / QUERIES_FILE).is_file()


def read_beir(directory: Path, errors: list[RowError]) -> Layout:
    """Read a benchmark whole; what is wrong goes to `errors`, by file, line and key. OSError: a
    file can't be read."""
    qrels = _read_qrels(directory, errors)
    queries = _read_queries(directory / QUERIES_FILE, qrels, errors)
    layout = Layout(
        queries=queries,
        annotations=qrels.relevant.table(),
        negatives=qrels.others.table(),
        judgments=Rows(JUDGMENTS).table(),
        fixed=Rows(LISTED).table(),
        judged_splits=qrels.judged_splits,
    )
    if not errors:
        layout.settle(errors)
    corpus = directory / CORPUS_FILE
    if not errors and corpus.is_file():
        _read_corpus(corpus, layout, errors)
    return layout


def _read_qrels(directory: Path, errors: list[RowError]) -> _Qrels:
    qrels = _Qrels()
    count = 0
    for split, names in QRELS_NAMES.items():
        files = [f"{QRELS_FOLDER}/{name}.tsv" for name in names]
        there = [name for name in files if (directory / name).is_file()]
        if len(there) > 1:
            message = f"which of {', '.join(there)} is meant? Leave one of them"
            errors.append(RowError(QRELS_FOLDER, 1, "", message))
        for name in there[:1]:
            count += 1
            with open_regular(directory / name) as file:
                for row in qrels_rows(file, name=name, errors=errors):
                    _add(row, name, split, qrels, errors)
    if not count:
        message = "there is neither validation.tsv (or dev.tsv) nor test.tsv"
        errors.append(RowError(QRELS_FOLDER, 1, "", message))
    return qrels


def _add(
    row: tuple[int, str, str, int], name: str, split: str, qrels: _Qrels, errors: list[RowError]
) -> None:
    line, *ids, score = row
    query_id, image_id = (
        _whole(text, name, line, column, errors)
        for text, column in zip(ids, ("query-id", "corpus-id"), strict=True)
    )
    if query_id is None or image_id is None:
        return
    if qrels.splits.setdefault(query_id, split) != split:
        message = f"{query_id} is in {qrels.places[query_id][0]} too"
        errors.append(RowError(name, line, "query-id", message))
    qrels.places.setdefault(query_id, (name, line))
    if score <= 0:
        qrels.judged_splits.add(split)
    rows = qrels.relevant if score > 0 else qrels.others
    rows.add(query_id, image_id, "", name, line)


def _read_queries(path: Path, qrels: _Qrels, errors: list[RowError]) -> list[LayoutQuery]:
    found: dict[int, LayoutQuery] = {}
    counts: Counter[str] = Counter()
    for line, query in _objects(path, errors):
        fields = _query_fields(path.name, line, query, errors)
        query_id = _whole(fields["query_id"], path.name, line, "_id", errors)
        if query_id is None:
            continue
        split = qrels.splits.get(query_id) or fields["split"]
        if split not in SPLITS:
            continue
        row, problems = query_row(line, fields | {"split": split}, split, vocabulary=False)
        if query_id in found:
            problems.append(("query_id", f"{query_id} is on line {found[query_id].query.line} too"))
        errors += [
            RowError(path.name, line, _KEYS.get(column, column), message)
            for column, message in problems
        ]
        found[query_id] = LayoutQuery(query=row, row=counts[split])
        counts[split] += 1
    if not found and not errors:
        errors.append(RowError(path.name, 1, "", "no query here is of the benchmark"))
    for query_id, (file, line) in qrels.places.items():
        if query_id not in found and len(errors) < MAX_ERRORS:
            message = f"{query_id} isn't in {path.name}"
            errors.append(RowError(file, line, "query-id", message))
    return [found[query_id] for query_id in sorted(found)]


def _query_fields(
    name: str, line: int, query: dict[str, Any], errors: list[RowError]
) -> dict[str, str]:
    """A query's fields by the columns of a file of queries."""
    metadata = query.get("metadata") or {}
    if not isinstance(metadata, dict):
        errors.append(RowError(name, line, "metadata", "is not a JSON object"))
        metadata = {}
    values = {
        "query_id": _id_text(query),
        "query_text": query.get("text", ""),
        **{key: metadata.get(key) or "" for key in _METADATA},
    }
    fields = {key: value if isinstance(value, str) else "" for key, value in values.items()}
    for key, value in values.items():
        if fields[key] != value:
            errors.append(RowError(name, line, _KEYS.get(key, key), "is not a text"))
    for key in ("supercategory", "category"):
        fields[key] = fields[key] or NOT_KNOWN
    return fields


def _read_corpus(path: Path, layout: Layout, errors: list[RowError]) -> None:
    """Take the images' paths from the corpus, which must have every image of the qrels."""
    named = dict.fromkeys(layout.images["image_id"].to_pylist(), "")
    seen = set()
    for line, image in _objects(path, errors):
        image_id = id_of(_id_text(image))
        if image_id is None or image_id not in named:
            continue
        metadata = image.get("metadata")
        file_name = metadata.get("file_name") if isinstance(metadata, dict) else None
        if file_name is not None and not isinstance(file_name, str):
            errors.append(RowError(path.name, line, "file_name", "is not a text"))
        elif file_name:
            named[image_id] = file_name
        seen.add(image_id)
    missing = pa.array(list(named.keys() - seen), type=pa.int64())
    rows = pa.concat_tables([layout.annotations, layout.negatives])
    rows = rows.filter(pc.is_in(rows["image_id"], value_set=missing))
    for row in rows.slice(0, MAX_ERRORS).to_pylist():
        message = f"{row['image_id']} isn't in {path.name}"
        errors.append(RowError(row["file"], row["line"], "corpus-id", message))
    ids, names = pa.array(list(named), pa.int64()), pa.array(list(named.values()), pa.string())
    layout.add_paths(pa.table({"image_id": ids, "file_name": names}))


def _objects(path: Path, errors: list[RowError]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line, object) of each line that isn't blank; with MAX_ERRORS errors the reading ends."""
    with open_regular(path) as file:
        try:
            for line, text in text_lines(file):
                if text.isspace():
                    continue
                try:
                    value = json.loads(text)
                except (ValueError, RecursionError):
                    value = None
                if isinstance(value, dict):
                    yield line, value
                else:
                    errors.append(RowError(path.name, line, "", "not a JSON object"))
                if len(errors) >= MAX_ERRORS:
                    return
        except Unreadable as error:
            errors.append(RowError(path.name, error.line, "", str(error)))


def _id_text(value: dict[str, Any]) -> str:
    """The `_id`, which some write as a number."""
    found = value.get("_id", "")
    return found if isinstance(found, str) else json.dumps(found)


def _whole(text: str, name: str, line: int, column: str, errors: list[RowError]) -> int | None:
    number = id_of(text)
    if number is None:
        message = (
            f"{text[:_SHOWN]!r} is not a whole number, as ids of an import are; `evaluate` takes "
            "any text"
        )
        errors.append(RowError(name, line, column, message))
    return number
