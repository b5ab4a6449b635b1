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
from releases.snapshot.open_snapshot import OpenSnapshot
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
#: The files of the release's own certificate.
_RELEASE_FILES: Final = {
    SNAPSHOT_FOLDER: (RELEASE_CERTIFICATE_FILE, VAL_RELEASE_CERTIFICATE_FILE),
    OPEN_FOLDER: (VAL_RELEASE_CERTIFICATE_FILE,),
}


@dataclass(slots=True)
class CertificateChecks:
    """How much was computed again, and the differences."""

    release: str = ""
    queries: int = 0
    rounds: int = 0
    draws: int = 0
    withdrawn: int = 0
    """Draws whose label can't be checked, since their images were withdrawn from the corpus."""
    audits: int = 0
    """Audits for the release's own certificate."""
    audited: int = 0
    """Images that these audits could select."""
    selected: int = 0
    """Images that they selected."""
    differences: list[str] = field(default_factory=list)


def certificates_check(directory: Path) -> CertificateChecks:
    """Check the certificates of a release that `export_release` wrote, whole or its open files.

    FileNotFoundError: the directory holds no release; OSError, ValueError, KeyError or TypeError:
    a file of it can't be read.
    """
    folders = [folder for folder in _FOLDERS if (directory / folder / HEADER_FILE).is_file()]
    if not folders:
        raise FileNotFoundError(f"{directory} holds no release: it has no {SNAPSHOT_FOLDER}/.")
    result = CertificateChecks()
    # The whole snapshot comes first; the open one repeats a part of it.
    for folder in folders:
        snapshot = Snapshot(directory / folder)
        checks = _check(snapshot, directory, _FOLDERS[folder])
        _release_check(snapshot, directory, _RELEASE_FILES[folder], checks)
        if folder == folders[0]:
            result = checks
        else:
            result.differences += [f"{folder}: {text}" for text in checks.differences]
    return result


def _check(snapshot: Snapshot, directory: Path, files: Sequence[str]) -> CertificateChecks:
    header = snapshot.header
    checks = CertificateChecks(release=f"{header.name} v{header.version}")
    release_images: dict[int, set[int]] = defaultdict(set)
    for image in snapshot.audited():
        if image.drawn:
            release_images[image.query_id].add(image.image_id)
    for seed in snapshot.seeds():
        release_images[seed.query_id].add(seed.image_id)
    # The expected rows of each file, by query id and round.
    expected: dict[str, dict[tuple[str, str], list[str]]] = {name: {} for name in files}
    pools = set()
    for rounds, pool in audits(snapshot):
        query_id = pool[0].query_id
        pools.add(query_id)
        checks.queries += 1
        checks.rounds += len(rounds)
        checks.draws += sum(image.place > 0 for image in pool)
        checks.withdrawn += sum(image.place > 0 and image.withdrawn for image in pool)
        differences = [*_pool_differences(snapshot, rounds, pool)]
        for drawn_round in rounds:
            differences += _draw_differences(drawn_round, pool)
        differences += _label_differences(snapshot, pool, release_images[query_id])
        try:
            computed = certificate(snapshot, rounds, pool)
        except (ValueError, KeyError) as error:
            differences.append(f"the counts of its rounds are impossible: {error}")
        else:
            for line in certificate_lines(computed, header.confidence):
                fields = [v if isinstance(v, str) else csv_value(v) for v in line]
                for name in files:
                    if name == CERTIFICATES_FILE or computed.query.split == "val":
                        expected[name][fields[0], fields[1]] = fields
        checks.differences += [f"query {query_id}: {text}" for text in differences]
    without_pool = {drawn_round.query_id for drawn_round in snapshot.rounds()} - pools
    checks.differences += [
        f"query {query_id}: it has rounds but no pool" for query_id in sorted(without_pool)
    ]
    checks.differences += _count_differences(snapshot)
    for name in files:
        checks.differences += _file_differences(directory / name, expected[name])
    return checks


def _count_differences(snapshot: Snapshot) -> Iterator[str]:
    """Queries that don't have the rounds and audits that they had when the release was made."""
    rounds = Counter(drawn_round.query_id for drawn_round in snapshot.rounds())
    audits = Counter(audit.query_id for audit in snapshot.release_audits())
    for query_id, query in snapshot.labeled_queries.items():
        for present, when_made, name in (
            (rounds[query_id], query.rounds, "rounds"),
            (audits[query_id], query.release_audits, "audits for the release"),
        ):
            if when_made not in (None, present):
                yield f"query {query_id}: it has {present} {name}, but had {when_made} when made"


def _pool_differences(
    snapshot: Snapshot, rounds: Sequence[DrawnRound], pool: Sequence[PoolImage]
) -> Iterator[str]:
    query = snapshot.queries.get(pool[0].query_id)
    if query is None:
        yield "the release has no such query"
    elif len(pool) != query.list_size:
        yield f"its pool has {len(pool)} images, its candidate list {query.list_size}"
    if [image.rank for image in pool] != list(range(1, len(pool) + 1)):
        yield "the ranks of its pool aren't 1, 2, 3 and so on"
    if len({image.image_id for image in pool}) < len(pool):
        yield "its pool has an image twice"
    numbers = [drawn_round.round for drawn_round in rounds]
    if numbers != sorted(set(numbers)):
        yield "its rounds aren't in order"
    named = {image.drawable for image in pool} | {image.round for image in pool if image.place}
    for number in sorted(named - {0, *numbers}):
        yield f"its pool names round {number}, which is missing"
    for number in sorted(set(numbers) - named):
        yield f"its pool has nothing of round {number}"


def _draw_differences(drawn_round: DrawnRound, pool: Sequence[PoolImage]) -> Iterator[str]:
    number = drawn_round.round
    drawable = [image.image_id for image in pool if image.drawable >= number]
    drawn = sorted((image.place, image.image_id) for image in pool if image.round == number)
    try:
        order = draw_order(bytes.fromhex(drawn_round.key), drawn_round.query_id, drawable)
    except ValueError as error:
        yield f"round {number}: the key can't be used: {error}"
        return
    if [place for place, _ in drawn] != list(range(1, len(drawn) + 1)):
        yield f"round {number}: the places of its draws aren't 1, 2, 3 and so on"
    for (place, image_id), expected in zip(drawn, order, strict=False):
        if image_id != expected:
            yield (
                f"round {number}: draw {place} is image {image_id}, but in the order of the "
                f"published key it is image {expected}"
            )
            return
    if len(drawn) > len(order):
        yield f"round {number}: it drew {len(drawn)} images, but could draw {len(order)}"


def _labels_and_votes(
    snapshot: Snapshot, query_id: int
) -> tuple[dict[int, bool], dict[int, list[tuple[str, str]]]]:
    """The relevance of a query's judged images, and the (relevance, source) of their judgments."""
    pairs = _of_query(snapshot, "pairs", query_id, ("image_id", "relevant"))
    relevant = {pair["image_id"]: pair["relevant"] for pair in pairs}
    if len(relevant) < len(pairs):
        raise ValueError(f"query {query_id} has an image twice among its pairs")
    votes: dict[int, list[tuple[str, str]]] = defaultdict(list)
    columns = ("image_id", "relevance", "source")
    for judgment in _of_query(snapshot, "judgments", query_id, columns):
        votes[judgment["image_id"]].append((judgment["relevance"], judgment["source"]))
    return relevant, votes


def _label_differences(
    snapshot: Snapshot, pool: Sequence[PoolImage], release_images: Collection[int]
) -> Iterator[str]:
    """Labels that differ from the release's pairs and judgments, and audited images that no round
    drew; `release_images`, which the audit for the release drew, belong to no round."""
    relevant, votes = _labels_and_votes(snapshot, pool[0].query_id)
    for image in pool:
        in_audit = any(source == "audit" for _, source in votes[image.image_id])
        if in_audit and not image.round and image.image_id not in release_images:
            yield f"image {image.image_id} was judged in an audit, but no round drew it"
        # Withdrawn images have no pair and no judgment in the release.
        if not image.withdrawn or image.image_id in relevant:
            allowed = _allowed_labels(relevant.get(image.image_id), votes[image.image_id])
            if image.label not in allowed:
                yield (
                    f"image {image.image_id} is {_words(image.label)} to the audit, but by the "
                    f"release's judgments it is {' or '.join(map(_words, allowed))}"
                )


def _allowed_labels(relevant: bool | None, votes: Collection[tuple[str, str]]) -> list[str]:
    """The labels that an image of an audit may have, by its pair and its judgments."""
    if relevant is None:
        return [""]
    if len(different := {relevance for relevance, _ in votes}) == 1:
        return [UNANIMOUS.get(vote, vote) for vote in different]
    # The judgments don't say whether a reviewer has decided.
    return ["relevant"] if relevant else ["not_relevant", "undecided"]


def _words(label: str) -> str:
    return label.replace("_", " ") or "not judged"


def _of_query(
    snapshot: Snapshot, table: str, query_id: int, columns: Sequence[str]
) -> list[dict[str, Any]]:
    of_query = [("query_id", "==", query_id)]
    table_rows = pq.read_table(snapshot.path(table), columns=list(columns), filters=of_query)
    rows: list[dict[str, Any]] = table_rows.to_pylist()
    return rows


def _release_check(
    snapshot: Snapshot, directory: Path, files: Sequence[str], checks: CertificateChecks
) -> None:
    """Check the release's own certificate; adds the result to `checks`."""
    audits: dict[tuple[int, int], ReleasedAudit] = {}
    for audit in snapshot.release_audits():
        if (audit.query_id, audit.audit) in audits:
            twice = f"query {audit.query_id}: audit {audit.audit} for the release is listed twice"
            checks.differences.append(twice)
        audits[audit.query_id, audit.audit] = audit
    checks.audits = len(audits)
    seeds = groupby(snapshot.seeds(), key=attrgetter("query_id"))
    seeds_by_query = {query_id: list(group) for query_id, group in seeds}
    for query_id, images in groupby(snapshot.audited(), key=attrgetter("query_id")):
        audited = list(images)
        checks.audited += sum(image.audit > 0 for image in audited)
        checks.selected += sum(image.drawn for image in audited)
        checks.withdrawn += sum(image.drawn and image.withdrawn for image in audited)
        differences = _selection_differences(audits, audited)
        # The release has no judgments of other queries.
        if query_id in snapshot.labeled_queries:
            query_seeds = seeds_by_query.get(query_id, [])
            differences = chain(
                differences, _audit_label_differences(snapshot, query_id, audited, query_seeds)
            )
        checks.differences += [f"query {query_id}: {text}" for text in differences]
    for audit in audits.values():
        if audit.covers and audit.query_id not in snapshot.labeled_queries:
            checks.differences.append(f"query {audit.query_id}: audited, but not in the release")
    for name in files:
        of_val = name == VAL_RELEASE_CERTIFICATE_FILE
        computed = release_certificate(OpenSnapshot(snapshot) if of_val else snapshot)
        expected = None if computed is None else json.loads(json.dumps(asdict(computed)))
        path = directory / name
        stored = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
        if expected is None or stored is None:
            if expected is not stored:
                problem = "is missing" if expected else "is there, but nothing was audited"
                checks.differences.append(f"{name} {problem}")
            continue
        checks.differences += [
            f"{name}: {key} is {stored.get(key)!r}, computed again {expected.get(key)!r}"
            for key in dict.fromkeys([*expected, *stored])
            if stored.get(key) != expected.get(key)
        ]


def _selection_differences(
    audits: Mapping[tuple[int, int], ReleasedAudit], audited: Sequence[AuditedImage]
) -> Iterator[str]:
    """Images of a query that weren't selected by the key, and missing audits."""
    if len({image.image_id for image in audited}) < len(audited):
        yield "an image could be selected twice"
    counts = Counter(image.audit for image in audited)
    for number in sorted(counts.keys() - {0}):
        audit = audits.get((audited[0].query_id, number))
        if audit is None:
            yield f"audit {number} for the release is missing"
        elif counts[number] > audit.unjudged:
            yield f"audit {number} could select {audit.unjudged} images, not {counts[number]}"
    for image in audited:
        audit = audits.get((image.query_id, image.audit))
        expected = audit is not None and selected(
            bytes.fromhex(audit.key), image.query_id, image.image_id, audit.share
        )
        if image.drawn != expected:
            is_drawn = "not drawn, but is" if expected else "drawn, but isn't"
            yield f"image {image.image_id} is {is_drawn} selected by the key"


def _audit_label_differences(
    snapshot: Snapshot, query_id: int, audited: Sequence[AuditedImage], seeds: Sequence[Seed]
) -> Iterator[str]:
    """Draws and seeds whose labels aren't those of the release."""
    relevant, votes = _labels_and_votes(snapshot, query_id)
    for image in audited:
        if image.drawn and not image.withdrawn:
            allowed = _allowed_labels(relevant.get(image.image_id), votes[image.image_id])
            if image.label not in allowed:
                yield (
                    f"image {image.image_id} is {_words(image.label)} to the audit for the release,"
                    f" but {' or '.join(map(_words, allowed))} by its judgments"
                )
        elif not image.audit and image.image_id in relevant:
            yield f"image {image.image_id} has a judgment, but not to the audit for the release"
    for seed in seeds:
        if seed.relevance and seed.relevance not in {
            relevance for relevance, _ in votes[seed.image_id]
        }:
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
                    errors.append(RowError(path.name, line, "round", "the row is listed twice"))
                rows[key] = row
    elif expected:
        yield f"{path.name} is missing"
        return
    yield from map(str, errors)
    for key in [*expected, *(key for key in rows if key not in expected)]:
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
