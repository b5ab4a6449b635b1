"""Packing a matrix from the database, chunk by chunk.

An update reads the embeddings since the last one into a new run. Everything is read again if the
files don't match the database, if there are many runs, or if many rows were removed. The present
matrix is used until the next manifest; what a killed process leaves is deleted, and read again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import numpy as np
from django.db import connection
from numpy.typing import NDArray

from core.binary_copy import microseconds, moment_of
from core.errors import Conflict
from core.files import whole_file
from retrieval.embedding.embedding_models import embedding_model_freeze
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.current import MatrixState, read_state
from retrieval.ranking.files import (
    KINDS,
    Manifest,
    MappedMatrix,
    MatrixDamaged,
    MatrixUnusable,
    Run,
    StoredFile,
    folder_of,
    sole_writer,
    tidy,
)
from retrieval.ranking.reading import (
    Chunk,
    Span,
    id_range_condition,
    partition_name,
    read_embeddings,
    read_ids,
)
from retrieval.ranking.scan import Rows, ids_of, moments_of, vectors_of

MOST_RUNS: Final = 16
"""More runs make each ranking slower."""
_REBUILD_DIVISOR: Final = 10
"""Rebuild when more than one row in so many was removed."""
CHUNK_BYTES: Final = 32 << 20
_SPARE_BYTES: Final = 64 << 20
_CHECKED: Final = 8192

GoOn = Callable[[int, int], bool]
"""Takes the rows read and about how many there are; returns whether to read on."""


class MatrixRefused(Conflict):
    """A matrix can't be packed; the message is for people."""


class _PackingStopped(Exception):
    """The caller ended the packing."""


def pack(
    model: EmbeddingModel,
    *,
    images: Span | None = None,
    rebuild: bool = False,
    go_on: GoOn = lambda rows, total: True,
) -> int | None:
    """Update the model's matrix, or that of these images; `rebuild` reads everything again.

    Returns how many embeddings were read; None where another process packs this matrix, or `go_on`,
    which is called after each chunk, ended the packing: nothing has changed then. Raises
    MatrixRefused.
    """
    folder = folder_of(model, images)
    with sole_writer(folder) as held:
        if not held:
            return None
        tidy(folder)
        base = None if rebuild else _open_present(model, images, folder)
        watermark = microseconds(embedding_model_freeze(model=model))
        with connection.cursor() as cursor:
            # Removals that aren't visible yet have this transaction id or a later one.
            cursor.execute("SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint")
            xmin = cursor.fetchone()[0]
        state = None if base is None else read_state(model, base)
        if base is None or state is None or _needs_rebuild(base, state):
            base = state = None
        elif not state.newer and not len(state.removed):
            return 0
        total = _count(model, images) if state is None else state.newer
        _require_room(model, folder, total)
        earlier = Manifest.load(folder)
        number = 1 if earlier is None else earlier.next_run
        chunks = _chunks(model, images, None if base is None else base.manifest, watermark)
        try:
            run, fingerprint = _write_run(folder, number, chunks, total, go_on)
        except _PackingStopped:
            return None
        runs, removed, live = (run,) if run.rows else (), None, run.rows
        if base is not None and state is not None:
            runs = (*base.manifest.runs, *runs)
            removed = _write_removed(folder, number, np.union1d(base.removed, state.removed))
            live += base.manifest.live - len(state.removed)
            fingerprint += base.manifest.fingerprint - state.removed_fingerprint
        Manifest(
            identity=str(model.identity),
            dimension=model.dimension,
            watermark=watermark,
            xmin=xmin,
            live=live,
            fingerprint=fingerprint,
            runs=runs,
            removed=removed,
            next_run=number + 1,
            images=images,
        ).save(folder)
        tidy(folder)
        return run.rows


def _open_present(model: EmbeddingModel, images: Span | None, folder: Path) -> MappedMatrix | None:
    """The matrix in the folder; None where there is none of these images, or its files changed."""
    manifest = Manifest.load(folder)
    if manifest is None or not manifest.is_of(model, images):
        return None
    try:
        return MappedMatrix.open(folder, manifest)
    except MatrixDamaged:
        return None


def _needs_rebuild(base: MappedMatrix, state: MatrixState) -> bool:
    """Whether a matrix is to be read again rather than extended."""
    removed = len(base.removed) + len(state.removed)
    runs = len(base.manifest.runs) + bool(state.newer)
    return bool(state.misfit) or runs > MOST_RUNS or removed * _REBUILD_DIVISOR > base.manifest.rows


def _require_room(model: EmbeddingModel, folder: Path, total: int) -> None:
    needed = total * (2 * model.dimension + 16) + _SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise MatrixRefused(
            f"The matrix of {model.name} needs {needed / 1e9:.1f} GB more under {folder.parent}, "
            f"where {free / 1e9:.1f} GB are free."
        )


def _chunks(
    model: EmbeddingModel, images: Span | None, base: Manifest | None, watermark: int
) -> Iterator[Chunk]:
    """Yield what was stored up to the watermark, since that of `base`, by ascending image id."""
    size = max(256, CHUNK_BYTES // (2 * model.dimension))
    inside, span = id_range_condition(images)
    where, values = f"e.created_at <= %s{inside}", [moment_of(watermark), *span]
    if base is None:
        # Without statistics the search for newer rows would be planned as a scan.
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {partition_name(model)} (model_id, image_id, created_at)")
        chunk = read_embeddings(model, where, values, limit=size)
        while len(chunk.image_ids):
            yield chunk
            after = int(chunk.image_ids[-1])
            chunk = read_embeddings(
                model, f"{where} AND e.image_id > %s", [*values, after], limit=size
            )
        return
    where, values = f"{where} AND e.created_at > %s", [*values, moment_of(base.watermark)]
    query = f"SELECT e.image_id FROM {partition_name(model)} e WHERE {where}"
    ids = np.sort(read_ids(query, values))
    for start in range(0, len(ids), size):
        batch = ids[start : start + size].tolist()
        chunk = read_embeddings(model, f"{where} AND e.image_id = ANY(%s)", [*values, batch])
        if len(chunk.image_ids):
            yield chunk


def _write_run(
    folder: Path, number: int, chunks: Iterator[Chunk], total: int, go_on: GoOn
) -> tuple[Run, int]:
    """Write the files of a run; returns it with the sum of its rows' marks.

    Raises _PackingStopped.
    """
    names = {kind: f"{number:06d}.{kind}" for kind in KINDS}
    rows = fingerprint = 0
    with ExitStack() as stack:
        files = {kind: stack.enter_context(whole_file(folder / names[kind])) for kind in KINDS}
        for chunk in chunks:
            files["vectors"].write(chunk.vectors.view(np.uint8).data)
            files["ids"].write(chunk.image_ids.data)
            files["moments"].write(chunk.moments.data)
            rows += len(chunk.image_ids)
            fingerprint += chunk.fingerprint
            if not go_on(rows, max(total, rows)):
                raise _PackingStopped
    written = {kind: StoredFile.at(folder, name) for kind, name in names.items()}
    return Run(rows, **written), fingerprint


def _write_removed(folder: Path, number: int, rows: Rows) -> StoredFile | None:
    """Write which rows of the whole matrix were removed; None for none."""
    if not len(rows):
        return None
    name = f"{number:06d}.removed"
    with whole_file(folder / name) as file:
        file.write(rows.data)
    return StoredFile.at(folder, name)


def _count(model: EmbeddingModel, images: Span | None) -> int:
    inside, span = id_range_condition(images)
    with connection.cursor() as cursor:
        if span:
            table = partition_name(model)
            cursor.execute(f"SELECT count(*) FROM {table} e WHERE true{inside}", span)
        else:
            cursor.execute(
                "SELECT embedded FROM retrieval_embeddingcount WHERE model_id = %s", [model.pk]
            )
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def verify_matrix(
    model: EmbeddingModel, progress: Callable[[int, int], None], images: Span | None = None
) -> list[str]:
    """Return what is wrong with a model's matrix, or that of these images, for people: changed
    files, or embeddings or vectors that differ from the database. Reads all files; calls
    `progress(rows done, rows)`.
    """
    folder = folder_of(model, images)
    manifest = Manifest.load(folder)
    if manifest is None:
        return ["there is no matrix"]
    try:
        mapped = MappedMatrix.open(folder, manifest)
        state = read_state(model, mapped)
    except (MatrixDamaged, MatrixUnusable) as error:
        return [str(error)]
    stored = _count(model, images)
    problems = [state.misfit] if state.misfit else []
    if images and state.embedded != stored:
        problems.append(f"it holds {state.embedded} embeddings where the database has {stored}")
    removed = np.union1d(mapped.removed, state.removed)
    live = np.setdiff1d(np.arange(manifest.rows), removed, assume_unique=True)
    for start in range(0, len(live), _CHECKED):
        progress(start, len(live))
        different = _different_rows(model, mapped, live[start : start + _CHECKED])
        if len(different):
            some = ", ".join(map(str, ids_of(mapped.parts, different[:5]).tolist()))
            problems.append(
                f"{len(different)} embeddings differ, such as those of the images {some}"
            )
    return problems


def _different_rows(model: EmbeddingModel, mapped: MappedMatrix, rows: Rows) -> Rows:
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
    at = np.searchsorted(stored.image_ids, image_ids)
    at[at == len(stored.image_ids)] = 0
    same: NDArray[np.bool_] = stored.image_ids[at] == image_ids
    same &= stored.moments[at] == moments
    ours, theirs = vectors_of(parts, rows), stored.vectors[at]
    same &= (ours.view(np.int16) == theirs.view(np.int16)).all(axis=1)
    return rows[~same]
