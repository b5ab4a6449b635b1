"""Building and updating a packed matrix from the database, chunk by chunk.

An update reads the embeddings since the last one into a new run. Everything is read again if the
files don't match the database, if there are many runs, or if many rows were removed. A run can be
continued after its process was killed; the present matrix is used until the next manifest.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from core.binary_copy import microseconds, moment_of
from core.errors import Conflict
from core.files import sync_path, whole_file
from retrieval.embedding.embedding_models import embedding_model_freeze
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.current import read_state
from retrieval.ranking.files import (
    BUILDING,
    FORMAT,
    KINDS,
    MANIFEST,
    Manifest,
    Mapped,
    MatrixDamaged,
    MatrixUnusable,
    Run,
    Stored,
    checksum_of,
    folder_of,
    sole_writer,
    tidy,
    write_json,
)
from retrieval.ranking.reading import Chunk, Span, ids_by, partition, read_embeddings, within
from retrieval.ranking.scan import Rows, ids_of, moments_of, vectors_of
from retrieval.ranking.sharing import fetch, publish

MOST_RUNS: Final = 16
"""More runs make each ranking slower."""
_REBUILD_DIVISOR: Final = 10
"""Rebuild when more than one row in so many was removed."""
CHUNK_BYTES: Final = 32 << 20
_SPARE_BYTES: Final = 64 << 20
# Rows of a matrix that are compared with the database before it is extended.
_COMPARED: Final = 64
_CHECKED: Final = 8192


class MatrixRefused(Conflict):
    """A matrix can't be packed; the message is for people."""


@dataclass(frozen=True, slots=True)
class Packing:
    """The progress of packing a matrix."""

    rows: int
    """Rows read."""
    total: int
    """About how many rows to read: some may be removed in the meantime."""
    finished: bool = False
    busy: bool = False
    """Another process is packing this matrix."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run to read, and the manifest that it extends."""

    identity: str
    watermark: int
    xmin: int
    total: int
    base: int | None
    """The checksum of the manifest that it extends; None to replace the matrix."""
    run: int
    writer: dict[str, Any] | None = None
    """The writer's position."""
    format: int = FORMAT

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """Load the plan of a killed process, if it still fits the manifest and its files."""
        try:
            plan = cls(**json.loads((folder / BUILDING).read_text()))
        except (OSError, ValueError, TypeError):
            return None
        known = Manifest.load(folder)
        if plan.format != FORMAT or (known is not None and plan.run < known.next_run):
            # Its run is in the manifest: the process was killed before it could tidy up.
            return None
        if plan.base is None:
            return plan
        if known is None or plan.base != _manifest_key(folder) or known.touched(folder):
            return None
        return plan


def pack(
    model: EmbeddingModel,
    *,
    images: Span | None = None,
    until: float | None = None,
    rebuild: bool = False,
    counted: bool = False,
) -> Packing:
    """Update the model's matrix, or that of these images: at least one chunk, then more until
    `until` (of `time.monotonic`), or to the end.

    `rebuild` reads everything again, `counted` where the rows of some images' matrix aren't the
    database's.
    Raises MatrixRefused.
    """
    folder = folder_of(model, images)
    with sole_writer(folder) as held:
        if not held:
            return Packing(0, 0, busy=True)
        if not rebuild:
            fetch(folder)
        plan = _Plan.load(folder)
        if plan is None or (rebuild and plan.base is not None):
            plan = _planned(model, images, folder, rebuild=rebuild, counted=counted)
            if plan is None:
                tidy(folder, keep=[])
                publish(folder)
                return Packing(0, 0, finished=True)
        packing = _carry_out(model, images, folder, plan, until)
        if packing.finished:
            publish(folder)
        return packing


def _planned(
    model: EmbeddingModel, images: Span | None, folder: Path, *, rebuild: bool, counted: bool
) -> _Plan | None:
    """Plan what to read; None if the matrix is up to date."""
    base = None if rebuild else _trusted(model, images, folder)
    known = Manifest.load(folder)
    watermark = microseconds(embedding_model_freeze(model=model))
    with connection.cursor() as cursor:
        # Removals that aren't visible yet have this transaction id or a later one.
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        xmin = cursor.fetchone()[0]
        if base is None:
            # Without statistics the search for newer rows would be planned as a scan.
            cursor.execute(f"ANALYZE {partition(model)} (model_id, image_id, created_at)")
    total = 0
    if base is not None:
        mapped = Mapped.open(folder, base)
        state = read_state(model, mapped, compared=_COMPARED, counted=counted)
        if (
            state.misfit
            or len(base.runs) + bool(state.newer) > MOST_RUNS
            or (len(mapped.removed) + len(state.removed)) * _REBUILD_DIVISOR > base.rows
        ):
            base = None
        elif not state.newer and not len(state.removed):
            return None
        else:
            total = state.newer
    if base is None:
        total = _count(model, images)
    needed = total * (2 * model.dimension + 16) + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise MatrixRefused(
            f"The matrix of {model.name} needs {needed / 1e9:.1f} GB more under {folder.parent}, "
            f"where {free / 1e9:.1f} GB are free."
        )
    return _Plan(
        identity=str(model.identity),
        watermark=watermark,
        xmin=xmin,
        total=total,
        base=None if base is None else _manifest_key(folder),
        run=known.next_run if known is not None else 1,
    )


def _trusted(model: EmbeddingModel, images: Span | None, folder: Path) -> Manifest | None:
    """Return the present manifest if its files are unchanged, with their new times."""
    manifest = Manifest.load(folder)
    if manifest is None or not manifest.is_of(model, images):
        return None
    if manifest.touched(folder):
        try:
            manifest = manifest.restamped(folder)
        except MatrixDamaged:
            return None
        manifest.save(folder)
    try:
        Mapped.open(folder, manifest)
    except MatrixDamaged:
        return None
    return manifest


def _carry_out(
    model: EmbeddingModel, images: Span | None, folder: Path, plan: _Plan, until: float | None
) -> Packing:
    base = Manifest.load(folder) if plan.base is not None else None
    name = f"{plan.run:06d}"
    tidy(folder, keep=[BUILDING, *(f"{name}.{kind}" for kind in KINDS)])
    writer = _RunWriter(folder, name, model.dimension, plan.writer)
    with writer:
        for chunk in _chunks(model, images, plan, base, writer.after):
            writer.append(chunk)
            if until is not None and time.monotonic() >= until:
                break
        else:
            run = writer.finish()
            _publish(model, images, folder, plan, base, run, writer.fingerprint)
            return Packing(writer.rows, max(plan.total, writer.rows), finished=True)
        write_json(folder / BUILDING, asdict(replace(plan, writer=writer.position())))
    return Packing(writer.rows, plan.total)


def _chunks(
    model: EmbeddingModel,
    images: Span | None,
    plan: _Plan,
    base: Manifest | None,
    after: int | None,
) -> Iterator[Chunk]:
    """Yield what is still to be read, by ascending image id."""
    size = max(256, CHUNK_BYTES // (2 * model.dimension))
    until = moment_of(plan.watermark)
    inside, span = within(images)
    if base is None:
        where, values = f"e.created_at <= %s{inside}", [until, *span]
        while True:
            more = "" if after is None else " AND e.image_id > %s"
            following = [] if after is None else [after]
            chunk = read_embeddings(model, where + more, [*values, *following], limit=size)
            if not len(chunk.image_ids):
                return
            yield chunk
            after = int(chunk.image_ids[-1])
    condition = f"e.created_at > %s AND e.created_at <= %s{inside}"
    moments = [moment_of(base.watermark), until, *span]
    ids = np.sort(ids_by(f"SELECT e.image_id FROM {partition(model)} e WHERE {condition}", moments))
    if after is not None:
        ids = ids[ids > after]
    for start in range(0, len(ids), size):
        some = ids[start : start + size].tolist()
        chunk = read_embeddings(model, f"e.image_id = ANY(%s) AND {condition}", [some, *moments])
        if len(chunk.image_ids):
            yield chunk


def _publish(
    model: EmbeddingModel,
    images: Span | None,
    folder: Path,
    plan: _Plan,
    base: Manifest | None,
    run: Run,
    fingerprint: int,
) -> None:
    """Write a manifest with the run and those that it extends."""
    runs = (run,) if run.rows else ()
    live = run.rows
    if base is not None:
        mapped = Mapped.open(folder, base)
        state = read_state(model, mapped)
        runs = (*_with_removed(folder, mapped, state.removed, plan.run), *runs)
        live += base.live - len(state.removed)
        fingerprint += base.fingerprint - state.removed_fingerprint
    Manifest(
        identity=plan.identity,
        dimension=model.dimension,
        watermark=plan.watermark,
        xmin=plan.xmin,
        live=live,
        fingerprint=fingerprint,
        runs=runs,
        next_run=plan.run + 1,
        images=images,
    ).save(folder)
    tidy(folder, keep=[])


def _with_removed(folder: Path, mapped: Mapped, removed: Rows, number: int) -> tuple[Run, ...]:
    """Return the runs of a matrix, with files of their removed rows."""
    runs = []
    together = np.union1d(mapped.removed, removed)
    for run, part in zip(mapped.manifest.runs, mapped.parts, strict=True):
        first, last = np.searchsorted(together, [part.first, part.first + run.rows])
        own = together[first:last] - part.first
        if own.nbytes == (run.removed.size if run.removed else 0):
            runs.append(run)
            continue
        name = f"{Path(run.vectors.name).stem}-{number}.removed"
        with whole_file(folder / name) as file:
            file.write(own.tobytes())
        runs.append(
            replace(run, removed=Stored.at(folder, name, checksum=zlib.crc32(own.tobytes())))
        )
    return tuple(runs)


def _count(model: EmbeddingModel, images: Span | None) -> int:
    inside, span = within(images)
    with connection.cursor() as cursor:
        if span:
            cursor.execute(f"SELECT count(*) FROM {partition(model)} e WHERE true{inside}", span)
        else:
            cursor.execute(
                "SELECT embedded FROM retrieval_embeddingcount WHERE model_id = %s", [model.pk]
            )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _manifest_key(folder: Path) -> int | None:
    path = folder / MANIFEST
    return checksum_of(path) if path.exists() else None


class _RunWriter:
    """Writes the files of a run; continues at a `position` if that is still valid."""

    def __init__(
        self, folder: Path, name: str, dimension: int, position: dict[str, Any] | None
    ) -> None:
        self._paths = {kind: folder / f"{name}.{kind}" for kind in KINDS}
        self._sizes = {"vectors": 2 * dimension, "ids": 8, "moments": 8}
        self.rows, self.fingerprint = 0, 0
        self.after: int | None = None
        """The last image id that was written."""
        self._checksums = dict.fromkeys(KINDS, 0)
        if position is not None and self._holds(position):
            self.rows, self.after = position["rows"], position["after"]
            self.fingerprint = position["fingerprint"]
            self._checksums = dict(position["checksums"])
        else:
            # A process that has mapped a file of that name keeps it.
            for path in self._paths.values():
                path.unlink(missing_ok=True)
        self._open = ExitStack()
        self._files = {
            kind: self._open.enter_context(path.open("ab")) for kind, path in self._paths.items()
        }
        for kind, file in self._files.items():
            file.truncate(self.rows * self._sizes[kind])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def append(self, chunk: Chunk) -> None:
        """Append rows with greater image ids."""
        pieces: dict[str, np.ndarray] = {
            "vectors": chunk.vectors,
            "ids": chunk.image_ids,
            "moments": chunk.moments,
        }
        for kind, piece in pieces.items():
            data = piece.view(np.uint8).data
            self._files[kind].write(data)
            self._checksums[kind] = zlib.crc32(data, self._checksums[kind])
        self.rows += len(chunk.image_ids)
        self.after = int(chunk.image_ids[-1])
        self.fingerprint += chunk.fingerprint

    def position(self) -> dict[str, Any]:
        """Return the position, after writing everything before it to the disk."""
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())
        return {
            "rows": self.rows,
            "after": self.after,
            "fingerprint": self.fingerprint,
            "checksums": self._checksums,
        }

    def finish(self) -> Run:
        """Return the run, after writing it to the disk."""
        self.position()
        folder = self._paths["ids"].parent
        sync_path(folder)
        files = {
            kind: Stored.at(folder, path.name, checksum=self._checksums[kind])
            for kind, path in self._paths.items()
        }
        return Run(rows=self.rows, **files)

    def _holds(self, position: dict[str, Any]) -> bool:
        """Whether the files up to the position are unchanged."""
        ends = {kind: position["rows"] * size for kind, size in self._sizes.items()}
        for kind, path in self._paths.items():
            if not path.exists() or path.stat().st_size < ends[kind]:
                return False
        # Vectors aren't read, which would take long; they were on the disk before the position.
        return all(
            checksum_of(self._paths[kind], until=ends[kind]) == position["checksums"][kind]
            for kind in ("ids", "moments")
        )


def verify_matrix(
    model: EmbeddingModel, progress: Callable[[int, int], None], images: Span | None = None
) -> list[str]:
    """Return what is wrong with a model's matrix, or that of these images, for people: damaged
    files, or embeddings or vectors that differ from the database. Reads all files; calls
    `progress(rows done, rows)`.
    """
    folder = folder_of(model, images)
    manifest = Manifest.load(folder)
    if manifest is None:
        return ["there is no matrix"]
    found = [f"{file.name} is damaged" for file in manifest.files if not file.whole(folder)]
    try:
        mapped = Mapped.open(folder, manifest)
        state = read_state(model, mapped, counted=True)
    except (MatrixDamaged, MatrixUnusable) as error:
        return [*found, str(error)]
    if state.misfit:
        found.append(state.misfit)
    gone = np.union1d(mapped.removed, state.removed)
    live = np.setdiff1d(np.arange(manifest.rows), gone, assume_unique=True)
    for start in range(0, len(live), _CHECKED):
        progress(start, len(live))
        different = _differing(model, mapped, live[start : start + _CHECKED])
        if len(different):
            such = ", ".join(map(str, ids_of(mapped.parts, different[:5]).tolist()))
            found.append(f"{len(different)} embeddings differ, such as those of the images {such}")
    return found


def _differing(model: EmbeddingModel, mapped: Mapped, rows: Rows) -> Rows:
    """Return those of these rows, ascending, that are missing or differ in the database."""
    parts = mapped.parts
    image_ids, moments = ids_of(parts, rows), moments_of(parts, rows)
    stored = read_embeddings(
        model,
        "e.image_id = ANY(%s) AND e.created_at <= %s",
        [np.unique(image_ids).tolist(), moment_of(mapped.manifest.watermark)],
    )
    if not len(stored.image_ids):
        return rows
    places = np.searchsorted(stored.image_ids, image_ids)
    places[places == len(stored.image_ids)] = 0
    same: NDArray[np.bool_] = stored.image_ids[places] == image_ids
    same &= stored.moments[places] == moments
    ours, theirs = vectors_of(parts, rows), stored.vectors[places]
    same &= (ours.view(np.int16) == theirs.view(np.int16)).all(axis=1)
    return rows[~same]
