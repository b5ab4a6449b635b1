"""Packing a matrix from the database, chunk by chunk, and bringing one up to date.

What came since a matrix was packed is read into a run of its own. All is read anew where the files
don't fit the database, where there are many runs, or where many rows were removed. A run that is
being read goes on after its process was killed; the matrix in use stays until the next manifest.
"""

from __future__ import annotations

import json
import shutil
import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
from django.db import connection

from core.binary_copy import microseconds
from retrieval.embedding.embedding_models import embedding_model_freeze
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.arithmetic import Rows, padded
from retrieval.ranking.files import (
    BUILDING,
    FORMAT,
    MANIFEST,
    Manifest,
    Mapped,
    MatrixDamaged,
    Run,
    Stored,
    checksum_of,
    sole_writer,
    tidy,
    write_json,
)
from retrieval.ranking.opened import folder_of
from retrieval.ranking.reading import Chunk, newer_ids, read_after, read_images, some_differ
from retrieval.ranking.state import misfit, partition, read_state, removed_rows
from retrieval.ranking.writing import RunWriter

MOST_RUNS: Final = 16
"""More of them make each ranking slower."""
_REMOVED_SHARE: Final = 10
"""Read anew from every tenth row that was removed."""
_CHUNK_BYTES: Final = 32 << 20
_SPARE_BYTES: Final = 64 << 20


class MatrixRefused(Exception):
    """A matrix can't be packed; the text says why, for people."""


@dataclass(frozen=True, slots=True)
class Packing:
    """How far the packing of a matrix is."""

    rows: int
    """Rows read."""
    total: int
    """Rows to read, nearly: some may go meanwhile."""
    finished: bool = False
    busy: bool = False
    """Another process is at it."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A run that is to be read, and what it will be put beside."""

    identity: str
    watermark: int
    xmin: int
    total: int
    base: int | None
    """The checksum of the manifest that it extends; None for a matrix of its own."""
    run: int
    writer: dict[str, Any] | None = None
    """Where the writer stands."""
    format: int = FORMAT

    @classmethod
    def load(cls, folder: Path) -> Self | None:
        """The plan that a killed process left, if it still fits the manifest and its files."""
        try:
            plan = cls(**json.loads((folder / BUILDING).read_text()))
        except (OSError, ValueError, TypeError):
            return None
        known = Manifest.load(folder)
        if plan.format != FORMAT or (known is not None and plan.run < known.next_run):
            # Its run is in force already: it was killed before it could tidy up.
            return None
        if plan.base is None:
            return plan
        if known is None or plan.base != _manifest_key(folder) or known.touched(folder):
            return None
        return plan


def pack(model: EmbeddingModel, *, until: float | None = None, rebuild: bool = False) -> Packing:
    """Bring the model's matrix up to date; a chunk at least, then more until a moment of
    `time.monotonic`, where one is given.

    `rebuild` reads everything anew, whatever is there. Raises MatrixRefused.
    """
    folder = folder_of(model)
    with sole_writer(folder) as held:
        if not held:
            return Packing(0, 0, busy=True)
        plan = _Plan.load(folder)
        if plan is None or (rebuild and plan.base is not None):
            plan = _planned(model, folder, rebuild=rebuild)
            if plan is None:
                tidy(folder, keep=[])
                return Packing(0, 0, finished=True)
        return _carry_out(model, folder, plan, until)


def _planned(model: EmbeddingModel, folder: Path, *, rebuild: bool) -> _Plan | None:
    """What is to be read; None where the matrix is up to date."""
    base = None if rebuild else _trusted(model, folder)
    known = Manifest.load(folder)
    watermark = microseconds(embedding_model_freeze(model=model))
    with connection.cursor() as cursor:
        # Removals that aren't seen from here on have this number or a later one.
        cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
        xmin = cursor.fetchone()[0]
        if base is None:
            # Without statistics a look for what is newer would be planned as a scan.
            cursor.execute(f"ANALYZE {partition(model)} (model_id, image_id, created_at)")
    total = 0
    if base is not None:
        mapped = Mapped.open(folder, base)
        state = read_state(model, base)
        removed, fingerprint = removed_rows(mapped, state)
        gone = np.union1d(mapped.removed, removed)
        if (
            misfit(mapped, state, removed, fingerprint)
            or some_differ(model, mapped, gone)
            or len(base.runs) + bool(state.newer) > MOST_RUNS
            or len(gone) * _REMOVED_SHARE > base.rows
        ):
            base = None
        elif not state.newer and not len(removed):
            return None
        else:
            total = state.newer
    if base is None:
        total = _count(model)
    width = padded(model.dimension)
    needed = total * (2 * width + 16) + _SPARE_BYTES
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


def _trusted(model: EmbeddingModel, folder: Path) -> Manifest | None:
    """The manifest in force, if its files are what was written; their times are noted anew."""
    manifest = Manifest.load(folder)
    if manifest is None or (manifest.identity, manifest.dimension) != (
        str(model.identity),
        model.dimension,
    ):
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


def _carry_out(model: EmbeddingModel, folder: Path, plan: _Plan, until: float | None) -> Packing:
    base = Manifest.load(folder) if plan.base is not None else None
    name = f"{plan.run:06d}"
    tidy(folder, keep=[BUILDING, *RunWriter.names(name)])
    writer = RunWriter(folder, name, model.dimension, plan.writer)
    with writer:
        for chunk in _chunks(model, plan, base, writer.after):
            writer.append(chunk)
            if until is not None and time.monotonic() >= until:
                break
        else:
            run = writer.finish()
            _publish(model, folder, plan, base, run, writer.fingerprint)
            return Packing(writer.rows, max(plan.total, writer.rows), finished=True)
        write_json(folder / BUILDING, asdict(replace(plan, writer=writer.stand())))
    return Packing(writer.rows, plan.total)


def _chunks(
    model: EmbeddingModel, plan: _Plan, base: Manifest | None, after: int | None
) -> Iterator[Chunk]:
    """What is still to be read, by ascending image id."""
    size = max(256, _CHUNK_BYTES // (2 * padded(model.dimension)))
    if base is None:
        while chunk := read_after(model, after, until=plan.watermark, limit=size):
            yield chunk
            after = int(chunk.image_ids[-1])
        return
    wanted = newer_ids(model, base.watermark, plan.watermark)
    if after is not None:
        wanted = wanted[wanted > after]
    for start in range(0, len(wanted), size):
        chunk = read_images(
            model, wanted[start : start + size], since=base.watermark, until=plan.watermark
        )
        if chunk:
            yield chunk


def _publish(
    model: EmbeddingModel,
    folder: Path,
    plan: _Plan,
    base: Manifest | None,
    run: Run,
    fingerprint: int,
) -> None:
    """Put the run in force, beside those that it extends."""
    runs = (run,) if run.rows else ()
    live = run.rows
    if base is not None:
        mapped = Mapped.open(folder, base)
        removed, removed_fingerprint = removed_rows(mapped, read_state(model, base))
        kept = _with_removed(folder, mapped, removed, plan.run)
        runs = (*kept, *runs)
        live += base.live - len(removed)
        fingerprint += base.fingerprint - removed_fingerprint
    Manifest(
        identity=plan.identity,
        dimension=model.dimension,
        watermark=plan.watermark,
        xmin=plan.xmin,
        live=live,
        fingerprint=fingerprint,
        runs=runs,
        next_run=plan.run + 1,
    ).save(folder)
    tidy(folder, keep=[])


def _with_removed(folder: Path, mapped: Mapped, removed: Rows, number: int) -> tuple[Run, ...]:
    """The runs of a matrix, with rows that were removed noted beside them."""
    runs = []
    together = np.union1d(mapped.removed, removed)
    for run, part in zip(mapped.manifest.runs, mapped.parts, strict=True):
        first, last = np.searchsorted(together, [part.first, part.first + run.rows])
        own = together[first:last] - part.first
        if own.nbytes == (run.removed.size if run.removed else 0):
            runs.append(run)
            continue
        name = f"{Path(run.vectors.name).stem}-{number}.removed"
        RunWriter.write(folder / name, own.tobytes())
        runs.append(
            replace(run, removed=Stored.at(folder, name, checksum=zlib.crc32(own.tobytes())))
        )
    return tuple(runs)


def _count(model: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT embedded FROM retrieval_embeddingcount WHERE model_id = %s", [model.pk]
        )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def _manifest_key(folder: Path) -> int | None:
    path = folder / MANIFEST
    return checksum_of(path) if path.exists() else None
