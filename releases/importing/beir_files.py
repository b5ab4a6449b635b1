"""Reading an existing benchmark in BEIR's layout, whose ids are whole numbers.

    queries.jsonl          _id and text of each query; in metadata, if there is one, supercategory,
                           category, iconic_group and split
    qrels/validation.tsv   query-id, corpus-id, score of the validation split; or dev.tsv, val.tsv
    qrels/test.tsv         the same of the test split; one of the two is enough
    corpus.jsonl           _id of each image and, if metadata has it, file_name; may be missing;
                           corpus_all.jsonl comes before it, as a release of ours has it

A score above 0 is relevant. A file with other scores names the judged images that aren't relevant
too; without them nobody knows which were judged. A query's split is that of the file that names
it, else the one in its metadata; without either it isn't part of the benchmark, as for BEIR's own
loader. A category that isn't given is NOT_KNOWN.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from core.csv_rows import MAX_ERRORS, RowError
from core.files import open_regular
from core.ids import id_of
from core.line_stream import Unreadable, text_lines
from labeling.queries.categories import SPLITS
from labeling.queries.files import query_row
from releases.formats.qrels_files import qrels_rows
from releases.importing.layout import (
    ANNOTATIONS,
    JUDGMENTS,
    LISTED,
    Layout,
    LayoutQuery,
    Rows,
)

QUERIES_FILE: Final = "queries.jsonl"
#: What the corpus may be called; the first that is there is read.
CORPUS_FILES: Final = ("corpus_all.jsonl", "corpus.jsonl")
QRELS_FOLDER: Final = "qrels"
#: Split -> what its qrels may be called.
QRELS_NAMES: Final = {"val": ("validation", "dev", "val"), "test": ("test",)}
NOT_KNOWN: Final = "not known"

#: A column of a file of queries -> the key that it has here.
_KEYS: Final = {"query_id": "_id", "query_text": "text"}
_METADATA: Final = ("supercategory", "category", "iconic_group", "split")


def is_beir(directory: Path) -> bool:
    """Whether a directory holds a benchmark in this layout."""
    return (directory / QUERIES_FILE).is_file()


def read_beir(directory: Path, errors: list[RowError]) -> Layout:
    """Read a benchmark whole; adds what is wrong to `errors`, by file, line and key. OSError: a
    file can't be read."""
    reader = _Reader(directory, errors)
    reader.read_qrels()
    layout = Layout(
        queries=reader.read_queries(),
        annotations=reader.relevant.table(),
        negatives=reader.others.table(),
        judgments=Rows(JUDGMENTS).table(),
        fixed=Rows(LISTED).table(),
        judged_splits=reader.judged_splits,
    )
    if not errors:
        layout.validate_and_join(errors)
    corpus = next((name for name in CORPUS_FILES if (directory / name).is_file()), "")
    if corpus and not errors:
        reader.read_corpus(layout, corpus)
    return layout


class _Reader:
    """Reads the files of a directory."""

    def __init__(self, directory: Path, errors: list[RowError]) -> None:
        self.relevant, self.others = Rows(ANNOTATIONS), Rows(ANNOTATIONS)
        self.judged_splits: set[str] = set()
        self._directory = directory
        self._errors = errors
        self._splits: dict[int, str] = {}
        self._places: dict[int, tuple[str, int]] = {}
        """File and line that first name a query."""

    def read_qrels(self) -> None:
        """Read the rows of both qrels files."""
        count = 0
        for split, names in QRELS_NAMES.items():
            files = [f"{QRELS_FOLDER}/{name}.tsv" for name in names]
            present = [name for name in files if (self._directory / name).is_file()]
            count += len(present)
            if len(present) > 1:
                message = f"which of {', '.join(present)} is meant? Keep only one of them"
                self._wrong(QRELS_FOLDER, 1, "", message)
            for name in present[:1]:
                with open_regular(self._directory / name) as file:
                    for row in qrels_rows(file, name=name, errors=self._errors):
                        self._add(*row, name, split)
        if not count:
            message = "there is neither validation.tsv (or dev.tsv) nor test.tsv"
            self._wrong(QRELS_FOLDER, 1, "", message)

    def _add(self, line: int, query: str, image: str, score: int, name: str, split: str) -> None:
        query_id = self._whole_number(query, name, line, "query-id")
        image_id = self._whole_number(image, name, line, "corpus-id")
        if query_id is None or image_id is None:
            return
        place = self._places.setdefault(query_id, (name, line))
        if self._splits.setdefault(query_id, split) != split:
            self._wrong(name, line, "query-id", f"{query_id} is in {place[0]} too")
        if score <= 0:
            self.judged_splits.add(split)
        rows = self.relevant if score > 0 else self.others
        rows.add(query_id, image_id, "", name, line)

    def read_queries(self) -> list[LayoutQuery]:
        """The queries of the benchmark, by id."""
        by_id: dict[int, LayoutQuery] = {}
        counts: Counter[str] = Counter()
        for line, query in self._objects(QUERIES_FILE):
            fields = self._fields(line, query)
            query_id = self._whole_number(fields["query_id"], QUERIES_FILE, line, "_id")
            if query_id is None:
                continue
            split = fields["split"] = self._splits.get(query_id) or fields["split"]
            if split not in SPLITS:
                continue
            row, problems = query_row(line, fields, split, vocabulary=False)
            if query_id in by_id:
                first = by_id[query_id].query.line
                problems.append(("query_id", f"{query_id} is on line {first} too"))
            for column, message in problems:
                self._wrong(QUERIES_FILE, line, _KEYS.get(column, column), message)
            by_id[query_id] = LayoutQuery(query=row, row=counts[split])
            counts[split] += 1
        if not by_id and not self._errors:
            self._wrong(QUERIES_FILE, 1, "", "no query here is of the benchmark")
        for query_id, (name, line) in self._places.items():
            if query_id not in by_id:
                self._wrong(name, line, "query-id", f"{query_id} isn't in {QUERIES_FILE}")
        return [by_id[query_id] for query_id in sorted(by_id)]

    def _fields(self, line: int, query: dict[str, Any]) -> dict[str, str]:
        """A query by the columns of a file of queries."""
        metadata = query.get("metadata") or {}
        if not isinstance(metadata, dict):
            self._wrong(QUERIES_FILE, line, "metadata", "is not a JSON object")
            metadata = {}
        fields = {"query_id": _id_text(query), "query_text": query.get("text", "")}
        fields |= {key: metadata.get(key) or "" for key in _METADATA}
        for key, value in fields.items():
            if not isinstance(value, str):
                self._wrong(QUERIES_FILE, line, _KEYS.get(key, key), "is not a text")
                fields[key] = ""
        for key in ("supercategory", "category"):
            fields[key] = fields[key] or NOT_KNOWN
        return fields

    def read_corpus(self, layout: Layout, name: str) -> None:
        """Take the images' paths from the corpus, which must have every image of the qrels."""
        missing = set(layout.images["image_id"].to_pylist())
        paths = dict.fromkeys(missing, "")
        for line, image in self._objects(name):
            image_id = id_of(_id_text(image))
            if image_id is None or image_id not in paths:
                continue
            missing.discard(image_id)
            metadata = image.get("metadata")
            path = metadata.get("file_name") if isinstance(metadata, dict) else None
            if path is not None and not isinstance(path, str):
                self._wrong(name, line, "file_name", "is not a text")
            paths[image_id] = path or ""
        rows = pa.concat_tables([layout.annotations, layout.negatives])
        absent = pa.array(sorted(missing), type=pa.int64())
        for row in rows.filter(pc.is_in(rows["image_id"], value_set=absent)).to_pylist():
            message = f"{row['image_id']} isn't in {name}"
            self._wrong(row["file"], row["line"], "corpus-id", message)
        if not self._errors:
            ids, names = pa.array(list(paths), pa.int64()), pa.array(list(paths.values()))
            layout.add_paths(pa.table({"image_id": ids, "file_name": names}))

    def _objects(self, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
        """(line, object) of each line that isn't blank; reading ends with MAX_ERRORS errors."""
        with open_regular(self._directory / name) as file:
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
                        self._wrong(name, line, "", "not a JSON object")
                    if len(self._errors) >= MAX_ERRORS:
                        return
            except Unreadable as error:
                self._wrong(name, error.line, "", str(error))

    def _whole_number(self, text: str, name: str, line: int, key: str) -> int | None:
        number = id_of(text)
        if number is None:
            says = "is not a whole number, as ids of an import are; `evaluate` takes any text"
            self._wrong(name, line, key, f"{text[:40]!r} {says}")
        return number

    def _wrong(self, name: str, line: int, key: str, message: str) -> None:
        if len(self._errors) < MAX_ERRORS:
            self._errors.append(RowError(name, line, key, message))


def _id_text(value: dict[str, Any]) -> str:
    """The `_id`, which some write as a number."""
    text = value.get("_id", "")
    return text if isinstance(text, str) else json.dumps(text)
