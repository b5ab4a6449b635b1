"""Queries and judgments from CSV files: whole or not at all, and twice without doubling.

A file's number is that of a query that an import brought. One that was written here got its number
from the application, and is another query. What people have judged for is changed only where the
importer names it.
"""

from __future__ import annotations

import io
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

from django.core.exceptions import ValidationError
from django.db import transaction

from core.csv_rows import RowError
from core.errors import Conflict, FileRefused
from labeling.candidates.services import lock_query, lock_query_shared
from labeling.judging.files import JudgmentRow, read_judgments
from labeling.judging.sources import JudgmentSource
from labeling.judging.writer import JudgmentInput, JudgmentWriter, lock_annotator
from labeling.lifecycle.history import in_words
from labeling.lifecycle.services import (
    QueryFields,
    facts_changed,
    facts_of,
    lock_query_ids,
    query_create,
    query_facts,
    query_update,
)
from labeling.lifecycle.text_limits import CutText, cut_texts
from labeling.queries.files import QueryRow, read_queries, split_of_name
from labeling.queries.models import Benchmark, Query
from retrieval.corpus.models import Image, Species
from retrieval.species.selectors import species_resolve

IMAGES_AT_A_TIME = 5000
LINES_OF_UPLOADS = 1000
LARGEST_UPLOAD = 5 * 1024 * 1024

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


class FieldReport(NamedTuple):
    """A field in which a file differs from a query, in words."""

    field: str
    here: str
    file: str


@dataclass(frozen=True, slots=True)
class RowReport:
    """A query that an import changes, or leaves as it is though the file differs."""

    query_id: int
    text: str
    """The file's."""
    changes: tuple[FieldReport, ...]
    left: str = ""
    """Why it stays as it is; empty where it changes."""


@dataclass(frozen=True, slots=True)
class QueryImportReport:
    """What an import of queries does: numbers of rows by outcome, and those that differ."""

    added: int = 0
    updated: int = 0
    unchanged: int = 0
    left: int = 0
    rows: tuple[RowReport, ...] = ()
    cut: tuple[CutText, ...] = ()
    """Texts of the file that a model in use doesn't read to their ends."""

    @property
    def counts(self) -> str:
        """In one line."""
        return (
            f"{self.added} added, {self.updated} updated, {self.unchanged} unchanged, "
            f"{self.left} left as they are"
        )


def queries_import_uploads(
    *,
    files: Sequence[tuple[str, bytes]],
    by: Any,
    split: str = "",
    benchmark: Benchmark | None = None,
    named: Collection[int] = (),
    dry_run: bool = False,
) -> QueryImportReport:
    """Import CSVs of queries in a request, which is answered within seconds; see `queries_import`.

    Raises also ValidationError for a file of more than LARGEST_UPLOAD bytes, and QueryImportRefused
    for more than LINES_OF_UPLOADS lines in all files.
    """
    lines = 0
    for name, data in files:
        if len(data) > LARGEST_UPLOAD:
            raise ValidationError({"file": f"{name} is larger than 5 MB."})
        lines += data.count(b"\n")
        if lines > LINES_OF_UPLOADS:
            message = (
                f"an upload may have {LINES_OF_UPLOADS:,} lines; divide the file, or use the "
                "command import_queries, which takes any number"
            )
            raise QueryImportRefused([RowError(name, LINES_OF_UPLOADS + 1, "", message)])
    return queries_import(
        files=files, by=by, split=split, benchmark=benchmark, named=named, dry_run=dry_run
    )


def queries_import(
    *,
    files: Sequence[tuple[str, bytes]],
    by: Any,
    split: str = "",
    benchmark: Benchmark | None = None,
    named: Collection[int] = (),
    dry_run: bool = False,
) -> QueryImportReport:
    """Import CSVs of queries in INQUIRE's columns, all files or none; a dry run only tells what it
    would do.

    `files` holds (name, content); a name is used in messages and for the split, never on disk.
    `split`, if not empty, holds for every row, as does `benchmark`; without it new queries are of
    the first. A query that an earlier import brought is updated where it differs, but not in the
    columns that a file lacks. Left as they are, and told in the report, are queries that anybody
    has judged for and those that no import brought, unless their numbers are `named`. New queries
    are drafts. Raises QueryImportRefused with every error.
    """
    errors: list[RowError] = []
    rows = [(name, row) for name, data in files for row in _read(name, data, split, errors)]
    _refuse_duplicates(rows, errors)
    if errors:
        raise QueryImportRefused(errors)
    counts: Counter[str] = Counter()
    reports: list[RowReport] = []
    species = cache(lambda name: list(species_resolve([name])[0]))
    with transaction.atomic():
        lock_query_ids()
        known = Query.objects.filter(query_id__in=[row.query_id for _, row in rows])
        # In the order of their keys, as an import of judgments does, so that they don't deadlock.
        for query in known.order_by("pk"):
            lock_query(query)
        queries = {
            query.query_id: query
            for query in known.select_related("benchmark").prefetch_related("species")
        }
        for name, row in rows:
            try:
                earlier = queries.get(row.query_id)
                outcome, report = _import_row(row, earlier, species, by, benchmark, named)
                counts[outcome] += 1
                reports += [report] if report else []
            except ValidationError as error:
                for field, messages in error.message_dict.items():
                    column = _COLUMNS.get(field, field)
                    errors.append(RowError(name, row.line, column, " ".join(messages)))
            except Conflict as error:
                errors.append(RowError(name, row.line, "", str(error)))
        if errors:
            raise QueryImportRefused(errors)
        transaction.set_rollback(dry_run)
    cut = cut_texts([row.query_text for _, row in rows], benchmark)
    return QueryImportReport(**counts, rows=tuple(reports), cut=tuple(cut))


def _read(name: str, data: bytes, split: str, errors: list[RowError]) -> list[QueryRow]:
    """The rows of a file; with "split" among their columns where anything but a default says it."""
    rows, row_errors = read_queries(io.BytesIO(data), name=name)
    errors += row_errors
    if split:
        rows = [replace(row, split=split) for row in rows]
    if split or split_of_name(name):
        rows = [replace(row, columns=row.columns | {"split"}) for row in rows]
    return rows


def _refuse_duplicates(rows: Sequence[tuple[str, QueryRow]], errors: list[RowError]) -> None:
    """Add an error for each query that an earlier file has; `read_queries` finds those of one."""
    first: dict[int, tuple[str, QueryRow]] = {}
    for name, row in rows:
        earlier, other = first.setdefault(row.query_id, (name, row))
        if other is not row:
            message = f"{row.query_id} is already in {earlier}, line {other.line}"
            errors.append(RowError(name, row.line, "query_id", message))


def _import_row(
    row: QueryRow,
    query: Query | None,
    species: Callable[[str], list[Species]],
    by: Any,
    benchmark: Benchmark | None,
    named: Collection[int],
) -> tuple[str, RowReport | None]:
    """Write a row, for a new query where there is none of its number; what that did, and what
    differs. Raises ValidationError and Conflict.
    """
    missing = [name for name in row.species if not species(name)]
    if missing:
        message = f"not in the corpus: {', '.join(missing)}; import its images first"
        raise ValidationError({"species": message})
    fields: QueryFields = {
        "query_id": row.query_id,
        "text": row.query_text,
        "category": row.category,
        "iconic_group": row.iconic_group,
        "split": row.split if "split" in row.columns else "",
        "guidelines": row.guidelines,
        "scientific_terms": bool(row.scientific_terms),
        "species": list({s.pk: s for name in row.species for s in species(name)}.values()),
    }
    if benchmark is not None:
        fields["benchmark"] = benchmark
    if query is None:
        query_create(created_by=by, imported=True, **fields)
        return "added", None
    for name in {"guidelines", "scientific_terms", "species", "split"} - row.columns:
        del fields[name]  # type: ignore[misc]
    differing = facts_changed(query_facts(query, fields), facts_of(fields))
    if not differing and ("split" not in fields or query.split_settled):
        return "unchanged", None
    left = ""
    if row.query_id not in named:
        if not query.imported:
            left = "no import brought it: its number was given here, so it is another query"
        elif query.judgment_events.exists():
            left = "it has judgments, which would count for what the file says"
    changes = tuple(FieldReport(*change) for change in in_words(differing))
    report = RowReport(row.query_id, row.query_text, changes, left)
    if left:
        return "left", report
    query_update(query=query, by=by, imported=True, **fields)
    return "updated", report


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
    known = Query.objects.filter(query_id__in=requested).order_by("pk")
    queries = {query.query_id: lock_query_shared(query) for query in known}
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
    counts: Counter[str] = Counter()
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
                JudgmentInput(
                    row.image_id, row.relevance, uuid.uuid4(), source=JudgmentSource.IMPORT
                )
            )
        writer.store()
    return ImportReport(**counts)
