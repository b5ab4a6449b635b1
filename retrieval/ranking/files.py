"""The files of packed matrices: runs that are written once, and a manifest that names them.

VAR_DIR/matrices/<identity of the model>/, or of some images <first id>-<last> in it, holds

    manifest.json               what is in use; replaced as a whole
    <run>.vectors               (rows, d) float16
    <run>.ids                   (rows,) int64, the images, ascending
    <run>.moments               (rows,) int64, when each was stored, microseconds from the year 2000
    <run>.removed               (n,) int64, rows of all runs that were removed from the database
    lock                        held by the one process that writes

A file's size, times and place on the disk stand in the manifest, so that a file that was touched
since isn't used: the matrix is packed anew.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.conf import settings

from core.files import whole_file
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.reading import Span
from retrieval.ranking.scan import Part, Rows

FORMAT: Final = 3
MANIFEST: Final = "manifest.json"
LOCK: Final = "lock"
KINDS: Final = ("vectors", "ids", "moments")
# A writer may put other files in force between two attempts to open them.
_ATTEMPTS: Final = 3


class MatrixDamaged(Exception):
    """Files differ from the manifest; the message says which."""


class MatrixUnusable(Exception):
    """A matrix can't be used, so the database must rank; the message says why."""

    def __init__(self, reason: str, *, missing: bool = False) -> None:
        super().__init__(reason)
        self.missing = missing
        """There is no matrix."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file that was written once."""

    name: str
    size: int
    stamp: tuple[int, int, int]
    """Its times of change and its inode; others mean that it was touched."""

    @classmethod
    def at(cls, folder: Path, name: str) -> StoredFile:
        """Describe a file as it is now."""
        status = os.stat(folder / name)
        stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_ino)
        return cls(name, status.st_size, stamp)

    def untouched(self, folder: Path) -> bool:
        """Whether its size and times are unchanged."""
        try:
            return StoredFile.at(folder, self.name) == self
        except FileNotFoundError:
            return False

    @classmethod
    def read(cls, fields: dict[str, Any]) -> StoredFile:
        """A file as the manifest describes it."""
        return cls(**{**fields, "stamp": tuple(fields["stamp"])})


@dataclass(frozen=True, slots=True)
class Run:
    """Rows that were read from the database together, by ascending image id."""

    rows: int
    vectors: StoredFile
    ids: StoredFile
    moments: StoredFile

    @classmethod
    def read(cls, fields: dict[str, Any]) -> Run:
        """A run as the manifest describes it."""
        return cls(fields["rows"], **{kind: StoredFile.read(fields[kind]) for kind in KINDS})


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the files hold, and of which moment of the database."""

    identity: str
    dimension: int
    watermark: int
    """Every embedding stored by then was committed when it was read, and later ones came after:
    microseconds from the year 2000.
    """
    xmin: int
    """Removals by this transaction and later ones may be missing from the files."""
    live: int
    """Rows that aren't removed, by the files."""
    fingerprint: int
    """The sum of `retrieval_embedding_mark` over them."""
    runs: tuple[Run, ...]
    removed: StoredFile | None
    """Which rows were removed; None where none were."""
    next_run: int
    format: int = FORMAT
    images: Span | None = None
    """The range of images whose embeddings it holds; None for all."""

    @property
    def rows(self) -> int:
        """Rows of all runs, removed ones too."""
        return sum(run.rows for run in self.runs)

    @property
    def files(self) -> list[StoredFile]:
        """The files of all runs, and that of the removed rows."""
        of_runs = [file for run in self.runs for file in (run.vectors, run.ids, run.moments)]
        return of_runs + ([self.removed] if self.removed else [])

    @classmethod
    def load(cls, folder: Path) -> Manifest | None:
        """The manifest in a folder, or None where there is none that this version writes."""
        try:
            fields = json.loads((folder / MANIFEST).read_text())
            if fields["format"] != FORMAT:
                return None
            images, removed = fields["images"], fields["removed"]
            read = {
                "runs": tuple(Run.read(run) for run in fields["runs"]),
                "removed": removed and StoredFile.read(removed),
                "images": images and Span(*images),
            }
            return cls(**fields | read)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def is_of(self, model: EmbeddingModel, images: Span | None) -> bool:
        """Whether it is of this model's embeddings of these images."""
        held = (self.identity, self.dimension, self.images)
        return held == (str(model.identity), model.dimension, images)

    def save(self, folder: Path) -> None:
        """Write it to the folder; the files that it names must be on the disk."""
        with whole_file(folder / MANIFEST) as file:
            file.write(json.dumps(asdict(self), indent=1).encode())

    def touched(self, folder: Path) -> list[str]:
        """The names of files that were touched since they were written."""
        return [file.name for file in self.files if not file.untouched(folder)]


@dataclass(eq=False, slots=True)
class MappedMatrix:
    """A manifest with its files mapped into memory; nothing can be written through them."""

    manifest: Manifest
    parts: tuple[Part, ...]
    removed: Rows
    """(n,) rows of the whole matrix that were removed, ascending."""
    tail: Any = None
    """The embeddings since then, as `retrieval.ranking.current` has read them."""

    @classmethod
    def open(cls, folder: Path, manifest: Manifest) -> MappedMatrix:
        """Map the files. Raises MatrixDamaged where one is missing, touched or of another size."""
        touched = manifest.touched(folder)
        if touched:
            raise MatrixDamaged(f"Changed since it was written: {', '.join(touched)}.")
        parts, removed, first = [], np.empty(0, np.int64), 0
        for run in manifest.runs:
            sizes = (run.vectors.size, run.ids.size, run.moments.size)
            if sizes != (run.rows * manifest.dimension * 2, run.rows * 8, run.rows * 8):
                raise MatrixDamaged(f"{run.vectors.name} is of another size than its rows.")
            ids = _map(folder / run.ids.name, np.int64)
            moments = _map(folder / run.moments.name, np.int64)
            vectors = _map(folder / run.vectors.name, np.float16).reshape(-1, manifest.dimension)
            parts.append(Part(first, ids, moments, vectors))
            first += run.rows
        if manifest.removed is not None:
            removed = _map(folder / manifest.removed.name, np.int64)
        return cls(manifest, tuple(parts), removed)


def _map(path: Path, kind: type) -> np.ndarray:
    try:
        return np.asarray(np.memmap(path, dtype=kind, mode="r"))
    except (OSError, ValueError) as error:
        raise MatrixDamaged(f"{path.name} can't be mapped: {error}") from error


_opened: dict[Path, tuple[tuple[int, int, int], MappedMatrix]] = {}
_opening = threading.Lock()


def folder_of(model: EmbeddingModel, images: Span | None = None) -> Path:
    """The folder of a model's matrix, or of that of these images."""
    whole = Path(settings.VAR_DIR) / "matrices" / str(model.identity)
    return whole if images is None else whole / f"{images.first}-{images.last}"


def open_matrix(model: EmbeddingModel, images: Span | None = None) -> MappedMatrix:
    """The model's matrix, or that of these images; each process maps it once, and again when there
    is another manifest.

    Raises MatrixUnusable where there is none, its files were touched since they were written, or
    matrices are switched off.
    """
    if not settings.MATRIX:
        raise MatrixUnusable("matrices are switched off")
    folder = folder_of(model, images)
    with _opening:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return _open(model, images, folder)
            except MatrixDamaged as error:
                _opened.pop(folder, None)
                if attempt == _ATTEMPTS:
                    raise MatrixUnusable(str(error)) from error
    raise AssertionError("unreachable")


def _open(model: EmbeddingModel, images: Span | None, folder: Path) -> MappedMatrix:
    try:
        status = os.stat(folder / MANIFEST)
    except FileNotFoundError:
        _opened.pop(folder, None)
        raise MatrixUnusable("it isn't packed", missing=True) from None
    key = (status.st_mtime_ns, status.st_ino, status.st_size)
    opened_key, mapped = _opened.get(folder, (None, None))
    if mapped is not None and opened_key == key:
        touched = mapped.manifest.touched(folder)
        if touched:
            raise MatrixDamaged(f"Changed since it was written: {', '.join(touched)}.")
        return mapped
    manifest = Manifest.load(folder)
    if manifest is None:
        raise MatrixDamaged("its manifest can't be read")
    if not manifest.is_of(model, images):
        raise MatrixDamaged("its manifest is of another model")
    mapped = MappedMatrix.open(folder, manifest)
    _opened[folder] = key, mapped
    return mapped


def tidy(folder: Path) -> None:
    """Delete files that the manifest doesn't name; mapped ones stay readable."""
    manifest = Manifest.load(folder)
    named = {MANIFEST, LOCK, *(file.name for file in (manifest.files if manifest else []))}
    for path in folder.iterdir():
        # A folder is that of some images' matrix.
        if path.name not in named and not path.is_dir():
            path.unlink(missing_ok=True)


@contextmanager
def sole_writer(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock if it is free; yields whether it was. A process that dies frees it."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        yield True
