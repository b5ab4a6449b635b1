"""What goes along with a release of this application: single judgments, fixed lists, the snapshot.

    *judgments.csv                 see `release_files`; or one for a split, *judgments_val.csv
    inquire_rerank/val.csv, test.csv   see `formats.inquire_rerank`
    snapshot/                      see `snapshot`: what the other files don't tell of queries

They must agree with the annotations, which say what is relevant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from benchmark.releases.importing.layout_store import JudgedPair, Layout, ListedPair, Place
from benchmark.releases.snapshot.release_files import (
    JUDGMENT_COLUMNS,
    SNAPSHOT_FOLDER,
    SOURCES,
    JudgmentRow,
)
from benchmark.releases.snapshot.snapshot import HEADER_FILE, FixedImage, Snapshot
from core.csv_rows import MAX_ERRORS, RowError, csv_records, numbered_texts, whole_number
from core.files import open_regular
from labeling.candidates.stopping import RELEVANCES
from labeling.judging.consensus import consensus
from labeling.queries.categories import SPLITS
from labeling.queries.files import split_of_name

RERANK_FOLDER: Final = "inquire_rerank"

_ANNOTATOR: Final = re.compile(r"annotator_([1-9][0-9]{0,8})")
_PATH_COLUMN: Final = "inat24_file_name"
_TEXTS: Final = ("inat24_species_name", "date", "license", "rights_holder")
_NUMBERS: Final = ("latitude", "longitude", "location_uncertainty")
_FIXED_COLUMNS: Final = ("query_id", "rank", "inat24_image_id", "clip_score", "relevant", "judged",
                         _PATH_COLUMN, *_TEXTS, *_NUMBERS)  # fmt: skip


def labels_read(
    layout: Layout, directory: Path, judgments: Iterable[Path], errors: list[RowError]
) -> None:
    """Read all of it into a layout whose queries and annotations were read already; what is wrong,
    or contradicts the annotations, goes to `errors`."""
    splits = {one.query.query_id: one.query.split for one in layout.queries}
    covered = layout.judged_splits
    for path in judgments:
        before = layout.judgment_count
        with open_regular(path) as file:
            layout.add_judgments(_judgments(file, path.name, splits, errors), errors=errors)
        # A benchmark that came in without judgments goes out with a file of none.
        if layout.judgment_count > before:
            # A file of both splits says so by naming none.
            split = split_of_name(path.name)
            covered |= {split} if split else set(SPLITS)
    for split in SPLITS:
        path = directory / RERANK_FOLDER / f"{split}.csv"
        if path.is_file():
            with open_regular(path) as file:
                _read_fixed(layout, file, split, splits, errors)
    if not errors:
        known = {query_id for query_id, split in splits.items() if split in covered}
        layout.decide(_decided(layout, known, errors))
        _check_lists(layout, known, errors)
    _read_snapshot(layout, directory / SNAPSHOT_FOLDER, errors)


def _judgments(
    lines: Iterable[bytes], name: str, splits: dict[int, str], errors: list[RowError]
) -> Iterator[tuple[JudgmentRow, Place]]:
    records = csv_records(numbered_texts(lines), name=name, columns=JUDGMENT_COLUMNS, errors=errors)
    for line, fields in records:
        row = _Row(name, line, dict(zip(JUDGMENT_COLUMNS, fields, strict=True)), errors)
        query_id, image_id = row.query(splits), row.whole("image_id")
        relevance, source = row.one_of("relevance", RELEVANCES), row.one_of("source", SOURCES)
        person = _ANNOTATOR.fullmatch(row.fields["annotator"])
        if person is None:
            row.wrong("annotator", "is not annotator_ and a number from 1")
        rank = row.whole("rank", least=1) if row.fields["rank"] else None
        seconds = row.number("seconds", least=0)
        if row.right and person is not None:
            judgment = JudgmentRow(
                query_id=query_id,
                image_id=image_id,
                relevance=relevance,
                annotator=int(person[1]),
                rank=rank,
                seconds=seconds,
                source=source,
            )
            yield judgment, Place(name, line)


def _read_fixed(
    layout: Layout,
    lines: Iterable[bytes],
    split: str,
    splits: dict[int, str],
    errors: list[RowError],
) -> None:
    name = f"{RERANK_FOLDER}/{split}.csv"
    own = {query_id: of for query_id, of in splits.items() if of == split}
    records = csv_records(numbered_texts(lines), name=name, columns=_FIXED_COLUMNS, errors=errors)
    for line, fields in records:
        row = _Row(name, line, dict(zip(_FIXED_COLUMNS, fields, strict=True)), errors)
        one = FixedImage(
            query_id=row.query(own),
            rank=row.whole("rank", least=1),
            image_id=row.whole("inat24_image_id"),
            score=row.number("clip_score"),
        )
        relevant = row.one_of("relevant", "01") == "1"
        # Blank where nobody knows.
        judged = row.one_of("judged", ("0", "1", "")) == "1"
        numbers = [row.number(column) if row.fields[column] else None for column in _NUMBERS]
        texts = [row.fields[column] for column in (_PATH_COLUMN, *_TEXTS)]
        if any("\0" in text or "\ufffd" in text for text in texts):
            row.wrong(_PATH_COLUMN, "stands in a row that is not UTF-8 text")
        if row.right:
            place = Place(name, line)
            path, species, date, code, holder = texts
            layout.add_fixed(one, relevant, judged, place, errors)
            layout.add_image(one.image_id, path, place=place, errors=errors, column=_PATH_COLUMN)
            layout.add_told(one.image_id, (species, *numbers, date, code, holder))
    for query_id, place in layout.lists_with_gaps():
        if place.file == name:
            message = f"the ranks of query {query_id} are not 1, 2, 3 and so on"
            errors.append(RowError(place.file, place.line, "rank", message))


def _decided(
    layout: Layout, known: set[int], errors: list[RowError]
) -> Iterator[tuple[int, int, bool, int, int | None]]:
    """The judged pairs, found to agree with the annotations, for the queries of `known`, of which
    every judgment is there."""
    for pair in layout.judged_pairs():
        if pair.named not in _outcomes(pair) and len(errors) < MAX_ERRORS:
            says, stands = (
                ("not relevant", "stands") if pair.named else ("relevant", "doesn't stand")
            )
            message = (
                f"image {pair.image_id} of query {pair.query_id} is {says} by its judgments, but "
                f"{stands} in the annotations"
            )
            errors.append(RowError(pair.place.file, pair.place.line, "relevance", message))
        yield pair.query_id, pair.image_id, pair.named, len(pair.votes), pair.rank
    for query_id, image_id, place in layout.pairs_without_judgment():
        if query_id in known and len(errors) < MAX_ERRORS:
            message = f"image {image_id} of query {query_id} has no judgment"
            errors.append(RowError(place.file, place.line, "image_id", message))


def _outcomes(pair: JudgedPair) -> set[bool]:
    """What the consensus about a pair may be: the files don't tell who is a reviewer, and so whose
    judgment decides."""
    outcomes = {consensus(pair.votes).relevant}
    for place, vote in enumerate(pair.votes):
        decisive = replace(vote, role="reviewer")
        votes = [*pair.votes[:place], decisive, *pair.votes[place + 1 :]]
        outcomes.add(consensus(votes).relevant)
    return outcomes


def _check_lists(layout: Layout, known: set[int], errors: list[RowError]) -> None:
    """Whether the fixed lists' labels are those of the other files; where there are no judgments,
    the lists tell judged images that aren't relevant."""
    negatives = []
    for one in layout.listed_pairs():
        field, message = _disagreement(one, one.query_id in known)
        if message and len(errors) < MAX_ERRORS:
            errors.append(RowError(one.place.file, one.place.line, field, message))
        if one.judged and not one.relevant and not one.has_judgments:
            negatives.append((one.query_id, one.image_id, False, 0, None))
    layout.decide(negatives)


def _disagreement(one: ListedPair, judgments_known: bool) -> tuple[str, str]:
    """(column, what is wrong) of a pair of a fixed list; empty where nothing is."""
    pair = f"image {one.image_id} of query {one.query_id}"
    if one.relevant != one.named:
        stands = "stands" if one.named else "doesn't stand"
        return "relevant", f"{pair} {stands} in the annotations"
    if judgments_known and one.judged != one.has_judgments:
        return "judged", f"{pair} has {'a' if one.has_judgments else 'no'} judgment"
    if one.relevant and not one.judged:
        return "judged", f"{pair} is relevant, so somebody judged it"
    return "", ""


def _read_snapshot(layout: Layout, directory: Path, errors: list[RowError]) -> None:
    if not (directory / HEADER_FILE).is_file():
        return
    snapshot = Snapshot(directory)
    try:
        layout.header = snapshot.header
        layout.own_queries = snapshot.queries
        layout.add_paths((one.file_name, one.image_id) for one in snapshot.images())
    except (OSError, ValueError, TypeError, KeyError) as error:
        message = f"can't be read ({error}); without this folder the benchmark can be imported"
        errors.append(RowError(directory.name, 1, "", message))


class _Row:
    """One row, and what is wrong with it."""

    def __init__(
        self, name: str, line: int, fields: dict[str, str], errors: list[RowError]
    ) -> None:
        self.fields = fields
        self.right = True
        self._where = name, line
        self._errors = errors

    def wrong(self, column: str, says: str) -> None:
        """Note that a field is wrong, by words that go on after it."""
        self.right = False
        message = f"{self.fields[column][:40]!r} {says}"
        self._errors.append(RowError(*self._where, column, message))

    def whole(self, column: str, least: int = 0) -> int:
        """A field that is a whole number; 0 where it is wrong."""
        number = whole_number(self.fields[column])
        if number is None or number < least:
            self.wrong(column, f"is not a whole number from {least}")
            return 0
        return number

    def query(self, known: dict[int, str]) -> int:
        """The query's id, which must be among these."""
        number = self.whole("query_id")
        if self.right and number not in known:
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
