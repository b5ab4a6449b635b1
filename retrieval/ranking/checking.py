"""Comparing all of a matrix with the database."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.files import Manifest, Mapped, MatrixDamaged
from retrieval.ranking.opened import folder_of
from retrieval.ranking.reading import differing_rows
from retrieval.ranking.selection import ids_of
from retrieval.ranking.state import misfit, read_state, removed_rows

_AT_ONCE = 8192


def faults(model: EmbeddingModel, progress: Callable[[int, int], None]) -> list[str]:
    """What is wrong with a model's matrix, in words: damaged files, other embeddings than the
    database has, other vectors. Reads every file and every vector; `progress` is told how many rows
    of how many.
    """
    folder = folder_of(model)
    manifest = Manifest.load(folder)
    if manifest is None:
        return ["there is no matrix"]
    found = [f"{file.name} is damaged" for file in manifest.files if not file.whole(folder)]
    try:
        mapped = Mapped.open(folder, manifest)
    except MatrixDamaged as error:
        return [*found, str(error)]
    state = read_state(model, manifest)
    removed, fingerprint = removed_rows(mapped, state)
    if reason := misfit(mapped, state, removed, fingerprint):
        found.append(reason)
    live = np.setdiff1d(
        np.arange(manifest.rows, dtype=np.int64), np.union1d(mapped.removed, removed)
    )
    for start in range(0, len(live), _AT_ONCE):
        progress(start, len(live))
        different = differing_rows(model, mapped, live[start : start + _AT_ONCE])
        if len(different):
            images = ", ".join(map(str, ids_of(mapped.parts, different[:5]).tolist()))
            found.append(
                f"{len(different)} embeddings differ, such as those of the images {images}"
            )
    return found
