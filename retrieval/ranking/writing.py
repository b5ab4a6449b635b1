"""Writing a run's files, by pieces, with their checksums."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np

from core.files import sync_path
from retrieval.ranking.arithmetic import padded
from retrieval.ranking.files import Run, Stored, checksum_of
from retrieval.ranking.reading import Chunk

_KINDS: Final = ("vectors", "ids", "moments")


class RunWriter:
    """The files of a run that is being written; goes on where `stand` says, if that is still so."""

    def __init__(
        self, folder: Path, name: str, dimension: int, stand: dict[str, Any] | None
    ) -> None:
        self._folder, self._name, self._dimension = folder, name, dimension
        self._sizes = {"vectors": 2 * padded(dimension), "ids": 8, "moments": 8}
        self.rows = 0
        self.after: int | None = None
        """The last image id that was written."""
        self.fingerprint = 0
        self._checksums = dict.fromkeys(_KINDS, 0)
        if stand is not None and self._stands(stand):
            self.rows, self.after = stand["rows"], stand["after"]
            self.fingerprint = stand["fingerprint"]
            self._checksums = dict(stand["checksums"])
        else:
            # Whoever has a file of that name mapped keeps it.
            for kind in _KINDS:
                self._path(kind).unlink(missing_ok=True)
        self._files = {kind: self._path(kind).open("ab") for kind in _KINDS}
        for kind, file in self._files.items():
            file.truncate(self.rows * self._sizes[kind])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for file in self._files.values():
            file.close()

    @staticmethod
    def names(name: str) -> list[str]:
        """The names of the files of a run."""
        return [f"{name}.{kind}" for kind in _KINDS]

    @staticmethod
    def write(path: Path, data: bytes) -> None:
        """Write a file that stays as it is, on the disk."""
        with path.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def append(self, chunk: Chunk) -> None:
        """Write rows behind the others; their image ids are greater."""
        rows = np.zeros((len(chunk.image_ids), padded(self._dimension)), np.float16)
        rows[:, : self._dimension] = chunk.vectors
        pieces: dict[str, np.ndarray] = {
            "vectors": rows,
            "ids": chunk.image_ids,
            "moments": chunk.moments,
        }
        for kind, piece in pieces.items():
            data = piece.view(np.uint8).data
            self._files[kind].write(data)
            self._checksums[kind] = zlib.crc32(data, self._checksums[kind])
        self.rows += len(rows)
        self.after = int(chunk.image_ids[-1])
        self.fingerprint += chunk.fingerprint

    def stand(self) -> dict[str, Any]:
        """Where it stands, with everything until there on the disk."""
        self._sync()
        return {
            "rows": self.rows,
            "after": self.after,
            "fingerprint": self.fingerprint,
            "checksums": self._checksums,
        }

    def finish(self) -> Run:
        """The run that was written, on the disk."""
        self._sync()
        sync_path(self._folder)
        files = {
            kind: Stored.at(self._folder, self._path(kind).name, checksum=self._checksums[kind])
            for kind in _KINDS
        }
        return Run(rows=self.rows, **files)

    def _sync(self) -> None:
        for file in self._files.values():
            file.flush()
            os.fsync(file.fileno())

    def _stands(self, stand: dict[str, Any]) -> bool:
        """Whether what was written until there is still what it was."""
        for kind in _KINDS:
            path, size = self._path(kind), stand["rows"] * self._sizes[kind]
            if not path.exists() or path.stat().st_size < size:
                return False
        # They were on the disk before `stand` was; reading all vectors again would take long.
        return all(
            checksum_of(self._path(kind), until=stand["rows"] * self._sizes[kind])
            == stand["checksums"][kind]
            for kind in ("ids", "moments")
        )

    def _path(self, kind: str) -> Path:
        return self._folder / f"{self._name}.{kind}"
