"""The matrices that this process has mapped."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.conf import settings

from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.files import MANIFEST, Manifest, Mapped, MatrixDamaged

# A writer may put other files in force between two looks.
_LOOKS: Final = 3


class MatrixUnusable(Exception):
    """A matrix can't answer, and the database must; the text says why."""

    def __init__(self, reason: str, *, missing: bool = False, rebuild: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing
        """There is none."""
        self.rebuild = rebuild
        """What it holds is wrong, though its files look as they were written."""


@dataclass(eq=False, slots=True)
class Opened:
    """A mapped matrix, and what this process found out about it."""

    mapped: Mapped
    key: tuple[int, int, int] = field(repr=False)
    as_database: bool | None = None
    """Whether the database computes scores as `arithmetic.exact_products` does; None: not yet
    known.
    """


_opened: dict[Path, Opened] = {}
_lock = threading.Lock()


def folder_of(model: EmbeddingModel) -> Path:
    """Where the files of a model's matrix lie."""
    return Path(settings.VAR_DIR) / "matrices" / str(model.identity)


def open_matrix(model: EmbeddingModel) -> Opened:
    """The model's matrix, mapped once a process and anew when its manifest is.

    Raises MatrixUnusable where there is none or its files were touched since they were written.
    """
    folder = folder_of(model)
    with _lock:
        for look in range(_LOOKS):
            try:
                return _current(model, folder)
            except MatrixDamaged as error:
                _opened.pop(folder, None)
                if look == _LOOKS - 1:
                    raise MatrixUnusable(str(error)) from error
    raise AssertionError("unreachable")


def _current(model: EmbeddingModel, folder: Path) -> Opened:
    try:
        found = os.stat(folder / MANIFEST)
    except FileNotFoundError:
        _opened.pop(folder, None)
        raise MatrixUnusable("it isn't packed", missing=True) from None
    key = (found.st_mtime_ns, found.st_ino, found.st_size)
    known = _opened.get(folder)
    if known is not None and known.key == key:
        touched = known.mapped.manifest.touched(folder)
        if touched:
            raise MatrixDamaged(f"Changed since it was written: {', '.join(touched)}.")
        return known
    manifest = Manifest.load(folder)
    if manifest is None:
        raise MatrixDamaged("its manifest can't be read")
    if manifest.identity != str(model.identity) or manifest.dimension != model.dimension:
        raise MatrixDamaged("its manifest is of another model")
    _opened[folder] = Opened(Mapped.open(folder, manifest), key)
    return _opened[folder]
