"""Computing a release's certificates again from its files alone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from core.csv_rows import RowError, csv_rows
from labeling.audits.draws import draw_order, selected
from releases.formats.certificates import (
    CERTIFICATES_FILE,
    COLUMNS,
    RELEASE_CERTIFICATE_FILE,
    VAL_CERTIFICATES_FILE,
    VAL_RELEASE_CERTIFICATE_FILE,
    certificate_lines,
)
from releases.formats.writing import csv_value
from releases.snapshot.certificates import UNANIMOUS, audits, certificate
from releases.snapshot.release_certificate import release_certificate
from releases.snapshot.release_files import SNAPSHOT_FOLDER
from releases.snapshot.snapshot import (
    HEADER_FILE,
    OPEN_FOLDER,
    AuditedImage,
    DrawnRound,
    PoolImage,
    ReleasedAudit,
    Seed,
    Snapshot,
)

#: The folders of snapshots, with the files of certificates that follow from them.
_FOLDERS: Final = {
    SNAPSHOT_FOLDER: (CERTIFICATES_FILE, VAL_CERTIFICATES_FILE),
    OPEN_FOLDER: (VAL_CERTIFICATES_FILE,),
}
#: The same of the release's own certificate, with the split that each file is of.
_RELEASE_FILES: Final = {
    SNAPSHOT_FOLDER: {RELEASE_CERTIFICATE_FILE: "", VAL_RELEASE_CERTIFICATE_FILE: "val"},
    OPEN_FOLDER: {VAL_RELEASE_CERTIFICATE_FILE: "val"},
}


@dataclass(slots=True)
class CertificateChecks:
    """What was computed again, and what differs."""

    release: str = ""
    queries: int = 0
    rounds: int = 0
    draws: int = 0
    withdrawn: int = 0
    """Draws whose label can't be checked, as their images were withdrawn from the corpus."""
    audits: int = 0
    """For the release's own certificate."""
    audited: int = 0
    """Images that these could select."""
    selected: int = 0
    """Of which they selected these."""
    differences: list[str] = field(default_factory=list)


def certificates_check(directory: Path) -> CertificateChecks:
    """Check the certificates of a release that `export_release` wrote, whole or its open files.

    FileNotFoundError: the directory holds no release; OSError, ValueError, KeyError or TypeError:
    a file of it can't be read.
    """
    folders = [one for one in _FOLDERS if (directory / one / HEADER_FILE).is_file()]
    if not folders:
        raise FileNotFoundError(f"{directory} holds no release: it has no {SNAPSHOT_FOLDER}/.")
    found = CertificateChecks()
    # The whole snapshot comes first; the open one repeats a part of it.
    for folder in folders:
        snapshot = Snapshot(directory / folder)
        checks = _check(snapshot, directory, _FOLDERS[folder])
        _release_check(snapshot, directory, _RELEASE_FILES[folder], checks)
        if folder == folders[0]:
            found = checks
        else:
            found.differences += [f"{folder}: {one}" for one in checks.differences]
    return found


def _check(snapshot: Snapshot, directory: Path, files: Sequence[str]) -> CertificateChecks:
    header = snapshot.header
    found = CertificateChecks(release=f"{header.name} v{header.version}")
    of_release: dict[int, set[int]] = defaultdict(set)
    for image in snapshot.audited():
        if image.drawn:
            of_release[image.query_id].add(image.image_id)
    for seed in snapshot.seeds():
        of_release[seed.query_id].add(seed.image_id)
    # A file's rows, by query id and round, as they should be.
    expected: dict[str, dict[tuple[str, str], list[str]]] = {name: {} for name in files}
    pools = set()
    for rounds, pool in audits(snapshot):
        query_id = pool[0].query_id
        pools.add(query_id)
        found.queries += 1
        found.rounds += len(rounds)
        found.draws += sum(one.place > 0 for one in pool)
        found.withdrawn += sum(one.place > 0 and one.withdrawn for one in pool)
        wrong = [*_pool_differences(snapshot, rounds, pool)]
        wrong += [line for one in rounds for line in _draw_differences(one, pool)]
        wrong += _label_differences(snapshot, pool, of_release[query_id])
        try:
            made = certificate(snapshot, rounds, pool)
        except (ValueError, KeyError) as error:
            wrong.append(f"the counts of its rounds can't be: {error}")
        else:
            for line in certificate_lines(made, header.confidence):
                fields = [one if isinstance(one, str) else csv_value(one) for one in line]
                for name in files:
                    if name == CERTIFICATES_FILE or made.query.split == "val":
                        expected[name][fields[0], fields[1]] = fields
        found.differences += [f"query {query_id}: {one}" for one in wrong]
    without = sorted({one.query_id for one in snapshot.rounds()} - pools)
    found.differences += [f"query {one}: it has rounds and no pool" for one in without]
    found.differences += _count_differences(snapshot)
    for name in files:
        found.differences += _file_differences(directory / name, expected[name])
    return found


def _count_differences(snapshot: Snapshot) -> Iterator[str]:
    """Queries that don't have the rounds and audits that they had when the release was made."""
    rounds = Counter(one.query_id for one in snapshot.rounds())
    audits = Counter(one.query_id for one in snapshot.release_audits())
    for query_id, query in snapshot.labeled_queries.items():
        for there, made, name in (
            (rounds[query_id], query.rounds, "rounds"),
            (audits[query_id], query.release_audits, "audits for the release"),
        ):
            if made not in (None, there):
                yield f"query {query_id}: {name} that it has: {there}, and had when made: {made}"


def _pool_differences(
    snapshot: Snapshot, rounds: Sequence[DrawnRound], pool: Sequence[PoolImage]
) -> Iterator[str]:
    query = snapshot.queries.get(pool[0].query_id)
    if query is None:
        yield "the release has no such query"
    elif len(pool) != query.list_size:
        yield f"its pool has {len(pool)} images, its candidate list {query.list_size}"
    if [one.rank for one in pool] != list(range(1, len(pool) + 1)):
        yield "the ranks of its pool aren't 1, 2, 3 and so on"
    if len({one.image_id for one in pool}) < len(pool):
        yield "its pool has an image twice"
    numbers = [one.round for one in rounds]
    if numbers != sorted(set(numbers)):
        yield "its rounds aren't in order"
    named = {one.drawable for one in pool} | {one.round for one in pool if one.place}
    for number in sorted(named - {0, *numbers}):
        yield f"round {number} is missing, which its pool names"
    for number in sorted(set(numbers) - named):
        yield f"its pool has nothing of round {number}"


def _draw_differences(drawn_round: DrawnRound, pool: Sequence[PoolImage]) -> Iterator[str]:
    number = drawn_round.round
    drawable = [one.image_id for one in pool if one.drawable >= number]
    drawn = sorted((one.place, one.image_id) for one in pool if one.round == number)
    try:
        order = draw_order(bytes.fromhex(drawn_round.key), drawn_round.query_id, drawable)
    except ValueError as error:
        yield f"round {number}: the key can't be used: {error}"
        return
    if [place for place, _ in drawn] != list(range(1, len(drawn) + 1)):
        yield f"round {number}: the places of its draws aren't 1, 2, 3 and so on"
    for (place, image_id), wanted in zip(drawn, order, strict=False):
        if image_id != wanted:
            yield (
                f"round {number}: draw {place} is image {image_id}, but in the order of the "
                f"published key it is image {wanted}"
            )
            return
    if len(drawn) > len(order):
        yield f"round {number}: it drew {len(drawn)} images, but could draw {len(order)}"


def _votes(
    snapshot: Snapshot, query_id: int
) -> tuple[dict[int, bool], dict[int, list[tuple[str, str]]]]:
    """The relevance of a query's judged images, and the (relevance, source) of their judgments."""
    pairs = _of_query(snapshot, "pairs", query_id, ("image_id", "relevant"))
    relevant = {one["image_id"]: one["relevant"] for one in pairs}
    if len(relevant) < len(pairs):
        raise ValueError(f"query {query_id} has an image twice among its pairs")
    votes: dict[int, list[tuple[str, str]]] = defaultdict(list)
    columns = ("image_id", "relevance", "source")
    for one in _of_query(snapshot, "judgments", query_id, columns):
        votes[one["image_id"]].append((one["relevance"], one["source"]))
    return relevant, votes


def _label_differences(
    snapshot: Snapshot, pool: Sequence[PoolImage], of_release: Collection[int]
) -> Iterator[str]:
    """Labels that aren't those of the release's pairs and judgments, and draws left out; those of
    the audit for the release are no round's."""
    relevant, votes = _votes(snapshot, pool[0].query_id)
    for image in pool:
        in_audit = any(source == "audit" for _, source in votes[image.image_id])
        if in_audit and not image.round and image.image_id not in of_release:
            yield f"image {image.image_id} was judged in an audit, but no round drew it"
        # What was withdrawn has no pair and no judgment in the release.
        if not image.withdrawn or image.image_id in relevant:
            allowed = _labels(relevant.get(image.image_id), votes[image.image_id])
            if image.label not in allowed:
                yield (
                    f"image {image.image_id} is {_words(image.label)} to the audit, but by the "
                    f"release's judgments it is {' or '.join(_words(one) for one in allowed)}"
                )


def _labels(relevant: bool | None, votes: Collection[tuple[str, str]]) -> list[str]:
    """The labels that an image can have, by its pair and its judgments."""
    if relevant is None:
        return [""]
    if len(different := {relevance for relevance, _ in votes}) == 1:
        return [UNANIMOUS.get(vote, vote) for vote in different]
    # Whether a reviewer has decided the judgments don't say.
    return ["relevant"] if relevant else ["not_relevant", "undecided"]


def _words(label: str) -> str:
    return label.replace("_", " ") or "not judged"


def _of_query(
    snapshot: Snapshot, table: str, query_id: int, columns: Sequence[str]
) -> list[dict[str, Any]]:
    chosen = [("query_id", "==", query_id)]
    rows = pq.read_table(snapshot.path(table), columns=list(columns), filters=chosen)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def _release_check(
    snapshot: Snapshot, directory: Path, files: dict[str, str], found: CertificateChecks
) -> None:
    """Check the release's own certificate; adds to what was found."""
    audits: dict[tuple[int, int], ReleasedAudit] = {}
    for one in snapshot.release_audits():
        if (one.query_id, one.audit) in audits:
            twice = f"query {one.query_id}: audit {one.audit} for the release stands twice"
            found.differences.append(twice)
        audits[one.query_id, one.audit] = one
    found.audits = len(audits)
    seeds = groupby(snapshot.seeds(), key=attrgetter("query_id"))
    by_query = {query_id: list(some) for query_id, some in seeds}
    for query_id, images in groupby(snapshot.audited(), key=attrgetter("query_id")):
        audited = list(images)
        found.audited += sum(one.audit > 0 for one in audited)
        found.selected += sum(one.drawn for one in audited)
        found.withdrawn += sum(one.drawn and one.withdrawn for one in audited)
        wrong = _selection_differences(audits, audited)
        # Those of other queries aren't in the release.
        if query_id in snapshot.labeled_queries:
            mixed_in = by_query.get(query_id, [])
            wrong = chain(wrong, _judgment_differences(snapshot, query_id, audited, mixed_in))
        found.differences += [f"query {query_id}: {one}" for one in wrong]
    for one in audits.values():
        if one.covers and one.query_id not in snapshot.labeled_queries:
            found.differences.append(f"query {one.query_id}: audited, but not in the release")
    for name, split in files.items():
        made = release_certificate(snapshot, split)
        wanted = None if made is None else json.loads(json.dumps(asdict(made)))
        path = directory / name
        there = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        if wanted is None or there is None:
            if wanted is not there:
                problem = "is missing" if wanted else "is there, but nothing was audited"
                found.differences.append(f"{name} {problem}")
            continue
        found.differences += [
            f"{name}: {key} is {there.get(key)!r}, computed again {wanted.get(key)!r}"
            for key in dict.fromkeys([*wanted, *there])
            if there.get(key) != wanted.get(key)
        ]


def _selection_differences(
    audits: Mapping[tuple[int, int], ReleasedAudit], audited: Sequence[AuditedImage]
) -> Iterator[str]:
    """Images of a query that weren't selected by the key, and what isn't there."""
    if len({one.image_id for one in audited}) < len(audited):
        yield "an image could be selected twice"
    counts = Counter(one.audit for one in audited)
    for number in sorted(counts.keys() - {0}):
        audit = audits.get((audited[0].query_id, number))
        if audit is None:
            yield f"audit {number} for the release is missing"
        elif counts[number] > audit.unjudged:
            yield f"audit {number} could select {audit.unjudged} images, not {counts[number]}"
    for image in audited:
        audit = audits.get((image.query_id, image.audit))
        wanted = audit is not None and selected(
            bytes.fromhex(audit.key), image.query_id, image.image_id, audit.share
        )
        if image.drawn != wanted:
            yield f"image {image.image_id} is {'not ' * wanted}drawn, but not so by the key"


def _judgment_differences(
    snapshot: Snapshot, query_id: int, audited: Sequence[AuditedImage], seeds: Sequence[Seed]
) -> Iterator[str]:
    """Draws and seeds whose labels aren't those of the release."""
    relevant, votes = _votes(snapshot, query_id)
    for image in audited:
        if image.drawn and not image.withdrawn:
            allowed = _labels(relevant.get(image.image_id), votes[image.image_id])
            if image.label not in allowed:
                yield (
                    f"image {image.image_id} is {_words(image.label)} to the audit for the release,"
                    f" but {' or '.join(_words(one) for one in allowed)} by its judgments"
                )
        elif not image.audit and image.image_id in relevant:
            yield f"image {image.image_id} has a judgment, but not to the audit for the release"
    for seed in seeds:
        if seed.relevance and seed.relevance not in {one for one, _ in votes[seed.image_id]}:
            yield f"nobody judged the seed {seed.image_id} {_words(seed.relevance)}"
        if len(votes[seed.image_id]) < 1 + bool(seed.relevance):
            yield f"the seed {seed.image_id} was found by nobody else"


def _file_differences(path: Path, expected: dict[tuple[str, str], list[str]]) -> Iterator[str]:
    """How a file of certificates differs from the rows that it should have."""
    errors: list[RowError] = []
    rows: dict[tuple[str, str], dict[str, str]] = {}
    if path.is_file():
        with path.open("rb") as file:
            for line, row in csv_rows(file, name=path.name, required=COLUMNS, errors=errors):
                key = row["query_id"], row["round"]
                if key in rows:
                    errors.append(RowError(path.name, line, "round", "the row stands twice"))
                rows[key] = row
    elif expected:
        yield f"{path.name} is missing"
        return
    yield from map(str, errors)
    for key in [*expected, *(one for one in rows if one not in expected)]:
        query_id, number = key
        where = f"{path.name}, query {query_id}, {f'round {number}' if number else 'last row'}"
        if key not in rows:
            yield f"{where}: the row is missing"
        elif key not in expected:
            yield f"{where}: the snapshot has no such round"
        else:
            for column, value in zip(COLUMNS, expected[key], strict=True):
                if rows[key][column] != value:
                    yield f"{where}: {column} is {rows[key][column]!r}, computed again {value!r}"
