"""Queries and judgments from CSV files: whole or not at all, and twice without doubling."""

from __future__ import annotations

import csv
import io
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from core.csv_rows import RowError
from core.errors import Conflict, FileRefused
from labeling.candidates.services import lock_query, lock_query_shared
from labeling.judging.files import JudgmentRow, read_judgments
from labeling.judging.models import JudgmentSource
from labeling.judging.writer import JudgmentWriter, lock_annotator
from labeling.lifecycle.services import QueryFields, lock_query_ids, query_create, query_update
from labeling.queries.files import QueryRow, read_queries, split_of_name
from labeling.queries.models import Query
from retrieval.corpus.models import Image, Species
from retrieval.species.selectors import species_resolve

IMAGES_AT_A_TIME = 5000
LINES_OF_UPLOADS = 1000

#: Names of a query's fields in the file, where they differ.
_COLUMNS = {"text": "query_text"}


class QueryImportRefused(FileRefused):
    """A file of queries was refused whole."""


class JudgmentImportRefused(FileRefused):
    """A file of judgments was refused whole."""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The number of rows by outcome."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0


@dataclass(frozen=True, slots=True)
class _File:
    """One file of queries, read."""

    name: str
    rows: list[QueryRow]
    columns: frozenset[str]
    """The optional columns that it has; existing queries keep their values of the others.
    """


def queries_import_uploads(
    *, files: Sequence[tuple[str, bytes]], by: Any, split: str = ""
) -> ImportReport:
    """Import CSVs of queries in a request, which is answered within seconds: QueryImportRefused
    also for more than LINES_OF_UPLOADS lines in all files. See `queries_import`."""
    lines = 0
    for name, data in files:
        lines += data.count(b"\n")
        if lines > LINES_OF_UPLOADS:
            message = (
                f"an upload may have {LINES_OF_UPLOADS:,} lines; divide the file, or use the "
                "command import_queries, which takes any number"
            )
            raise QueryImportRefused([RowError(name, LINES_OF_UPLOADS + 1, "", message)])
    return queries_import(files=files, by=by, split=split)


def queries_import(*, files: Sequence[tuple[str, bytes]], by: Any, split: str = "") -> ImportReport:
    """Import CSVs of queries in INQUIRE's columns, all files or none.

    `files` holds (name, content); a name is used in messages and for the split, never on disk.
    `split`, if not empty, holds for every row. An existing query is updated where it differs, but
    not in the columns that a file lacks. New queries are drafts. Raises QueryImportRefused with
    every error.
    """
    errors: list[RowError] = []
    read = [_read(name, data, split, errors) for name, data in files]
    _refuse_duplicates(read, errors)
    if errors:
        raise QueryImportRefused(errors)
    with transaction.atomic():
        lock_query_ids()
        _lock_known(read)
        counts = {"added": 0, "updated": 0, "unchanged": 0}
        species = _SpeciesByName()
        for file in read:
            for row in file.rows:
                outcome = _import_row(file, row, species, by, errors)
                if outcome:
                    counts[outcome] += 1
        if errors:
            raise QueryImportRefused(errors)
    return ImportReport(**counts)


def _read(name: str, data: bytes, split: str, errors: list[RowError]) -> _File:
    rows, found = read_queries(io.BytesIO(data), name=name)
    errors += found
    # What is wrong is refused anyway, and a header that isn't CSV can't be read a second time.
    columns = set() if found else _columns(data)
    if split:
        rows = [replace(row, split=split) for row in rows]
    if split or split_of_name(name):
        columns.add("split")
    return _File(name, rows, frozenset(columns))


def _columns(data: bytes) -> set[str]:
    """The columns of a file that was found right."""
    records = csv.reader(io.StringIO(data.decode("utf-8-sig")), strict=True)
    return {column.strip() for column in next(filter(None, records))}


def _refuse_duplicates(files: Sequence[_File], errors: list[RowError]) -> None:
    first: dict[int, str] = {}
    for file in files:
        for row in file.rows:
            if row.query_id in first:
                message = f"{row.query_id} is already in {first[row.query_id]}"
                errors.append(RowError(file.name, row.line, "query_id", message))
        first |= {row.query_id: f"{file.name}, line {row.line}" for row in file.rows}


def _lock_known(files: Sequence[_File]) -> None:
    """Lock the queries that exist in the order of their keys, as an import of judgments does, so
    that they don't deadlock.
    """
    requested = [row.query_id for file in files for row in file.rows]
    for query in Query.objects.filter(query_id__in=requested).order_by("pk"):
        lock_query(query)


class _SpeciesByName:
    """Looks names of a species filter up, each once."""

    def __init__(self) -> None:
        self.known: dict[str, list[Species]] = {}

    def __call__(self, name: str) -> list[Species]:
        if name not in self.known:
            self.known[name] = list(species_resolve([name])[0])
        return self.known[name]


def _import_row(
    file: _File, row: QueryRow, species: _SpeciesByName, by: Any, errors: list[RowError]
) -> str | None:
    """Write one row; returns what it did, or None after adding its errors."""
    missing = [name for name in row.species if not species(name)]
    if missing:
        message = f"not in the corpus: {', '.join(missing)}; import its images first"
        errors.append(RowError(file.name, row.line, "species", message))
        return None
    fields: QueryFields = {
        "query_id": row.query_id,
        "text": row.query_text,
        "category": row.category,
        "iconic_group": row.iconic_group,
        "split": row.split if "split" in file.columns else "",
        "guidelines": row.guidelines,
        "scientific_terms": bool(row.scientific_terms),
        "species": list({s.pk: s for name in row.species for s in species(name)}.values()),
    }
    try:
        query = Query.objects.filter(query_id=row.query_id).first()
        if query is None:
            query_create(created_by=by, **fields)  # type: ignore[typeddict-item]
            return "added"
        changes = _changes(query, fields, file.columns)
        if not changes:
            return "unchanged"
        query_update(query=query, by=by, **changes)
        return "updated"
    except ValidationError as error:
        for name, messages in error.message_dict.items():
            column = _COLUMNS.get(name, name)
            errors.append(RowError(file.name, row.line, column, " ".join(messages)))
    except Conflict as error:
        errors.append(RowError(file.name, row.line, "", str(error)))
    return None


def _changes(query: Query, fields: QueryFields, columns: frozenset[str]) -> QueryFields:
    """The fields in which the file differs from the query, of the columns that it has."""
    changes: dict[str, Any] = {}
    for name, value in fields.items():
        if name in ("guidelines", "scientific_terms", "species", "split") and name not in columns:
            continue
        if name == "species":
            requested = {one.pk for one in fields["species"]}
            if requested != set(query.species.values_list("pk", flat=True)):
                changes[name] = value
        elif getattr(query, name) != value or (name == "split" and not query.split_settled):
            changes[name] = value
    return QueryFields(**changes)  # type: ignore[typeddict-item]


def judgments_import(*, data: bytes, name: str, annotator: Any) -> ImportReport:
    """Import a CSV of judgments (query_id, image_id, relevance) as this annotator's, all rows or
    none.

    They count by their rank in the query's list, whenever that is made. An equal
    judgment is left alone, a different one is changed and its old value kept in the history.
    Refused are unknown queries and images, and queries that are complete or rejected: reopen those
    first. Raises JudgmentImportRefused with every error, of the file and of what it names, by line.
    """
    rows, errors = read_judgments(io.BytesIO(data), name=name)
    with transaction.atomic():
        queries = _queries_locked(rows, name, errors)
        _check_images(rows, name, errors)
        if errors:
            raise JudgmentImportRefused(sorted(errors, key=lambda error: error.line))
        lock_annotator(annotator)
        return _judgments_store(rows, queries, annotator)


def _queries_locked(
    rows: Sequence[JudgmentRow], name: str, errors: list[RowError]
) -> dict[int, Query]:
    """The queries of the rows by query id, each locked shared in the order of their keys, so
    that imports don't deadlock.
    """
    requested = {row.query_id for row in rows}
    found = Query.objects.filter(query_id__in=requested).order_by("pk")
    queries = {query.query_id: lock_query_shared(query) for query in found}
    for row in rows:
        query = queries.get(row.query_id)
        if query is None:
            errors.append(RowError(name, row.line, "query_id", f"there is no query {row.query_id}"))
        elif query.state in (Query.State.COMPLETE, Query.State.REJECTED):
            message = f"query {row.query_id} is {query.state}; reopen it to change its judgments"
            errors.append(RowError(name, row.line, "query_id", message))
    return queries


def _check_images(rows: Sequence[JudgmentRow], name: str, errors: list[RowError]) -> None:
    for start in range(0, len(rows), IMAGES_AT_A_TIME):
        part = rows[start : start + IMAGES_AT_A_TIME]
        requested = {row.image_id for row in part}
        known = set(Image.objects.filter(pk__in=requested).values_list("pk", flat=True))
        errors += [
            RowError(name, row.line, "image_id", f"there is no image {row.image_id} in the corpus")
            for row in part
            if row.image_id not in known
        ]


def _judgments_store(
    rows: Sequence[JudgmentRow], queries: dict[int, Query], annotator: Any
) -> ImportReport:
    by_query: defaultdict[int, list[JudgmentRow]] = defaultdict(list)
    for row in rows:
        by_query[row.query_id].append(row)
    counts = {"added": 0, "updated": 0, "unchanged": 0}
    for query_id, group in by_query.items():
        writer = JudgmentWriter.load(
            query=queries[query_id],
            annotator=annotator,
            image_ids=[row.image_id for row in group],
        )
        for row in group:
            current = writer.images[row.image_id].current
            if current == row.relevance:
                counts["unchanged"] += 1
                continue
            counts["updated" if current else "added"] += 1
            writer.add(
                image_id=row.image_id,
                relevance=row.relevance,
                client_id=uuid.uuid4(),
                seconds=0.0,
                source=JudgmentSource.IMPORT,
            )
        writer.store()
    return ImportReport(**counts)
