"""The file of a backup: a tar that is written and read as a stream.

    backup.json          what it holds; first, so that a reader learns it at once
    files …              paths below VAR_DIR
    database/000000 …    the database as pg_dump writes it, in pieces whose size is known beforehand
    SHA256SUMS           of every member before it, in their order; without it the file is cut off

Memory grows neither with the files nor with their number.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from django.core.files.base import File

from core.storage import storage_of

HEADER: Final = "backup.json"
SUMS: Final = "SHA256SUMS"
DATABASE: Final = "database/"
FORMAT: Final = 1
PIECE_BYTES: Final = 32 * 2**20


class BackupDamaged(ValueError):
    """The file is no whole backup; the text says why."""


class ArchiveWriter:
    """Adds members to an archive; `archive_writer` makes one."""

    def __init__(self, tar: tarfile.TarFile, sums: IO[bytes]) -> None:
        self._tar = tar
        self._sums = sums

    def add_file(self, name: str, file: File[bytes]) -> str:
        """Add an open file; its SHA-256. Raises OSError where it can't be read whole."""
        return self._add(name, file.size, file)

    def add_bytes(self, name: str, data: bytes) -> str:
        """Add a member with these bytes; their SHA-256."""
        return self._add(name, len(data), io.BytesIO(data))

    def add_database(self, dump: IO[bytes]) -> None:
        """Add the bytes of a dump to its end, in pieces."""
        for number, piece in enumerate(iter(lambda: dump.read(PIECE_BYTES), b"")):
            self.add_bytes(f"{DATABASE}{number:06}", piece)

    def _add(self, name: str, size: int, file: IO[bytes]) -> str:
        hashed = _Hashed(file)
        self._tar.addfile(_member(name, size), hashed)
        # tarfile keeps a record of each, which nothing here reads.
        self._tar.members.clear()  # type: ignore[attr-defined]
        sha256 = hashed.digest.hexdigest()
        self._sums.write(_line(sha256, name))
        return sha256


@contextmanager
def archive_writer(file: BinaryIO, header: dict[str, Any]) -> Iterator[ArchiveWriter]:
    """Write an archive to `file`; its checksums and its end follow the block."""
    with (
        tempfile.TemporaryFile() as sums,
        tarfile.open(fileobj=file, mode="w|", format=tarfile.PAX_FORMAT) as tar,
    ):
        writer = ArchiveWriter(tar, sums)
        writer.add_bytes(HEADER, json.dumps({"format": FORMAT, **header}).encode())
        yield writer
        size = sums.tell()
        sums.seek(0)
        tar.addfile(_member(SUMS, size), sums)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an archive while it is read."""

    name: str
    file: IO[bytes]


def archive_header(path: Path | str) -> dict[str, Any]:
    """What an archive, a path or s3://bucket/prefix/name, says of itself. Raises BackupDamaged,
    OSError.
    """
    for member in members(path):
        if member.name != HEADER:
            break
        header: dict[str, Any] = json.load(member.file)
        if header.get("format") != FORMAT:
            raise BackupDamaged(f"{path} is of another version of backups: {header.get('format')}.")
        return header
    raise BackupDamaged(f"{path} is no backup.")


def members(path: Path | str) -> Iterator[Member]:
    """The members of an archive in their order, each to be read before the next is asked for.

    Raises BackupDamaged where the file ends early or is no archive, OSError.
    """
    storage, name = storage_of(path)
    with (
        _readable(path),
        storage.reading(name) as stored,
        tarfile.open(fileobj=stored, mode="r|") as tar,
    ):
        while (info := tar.next()) is not None:
            tar.members.clear()  # type: ignore[attr-defined]
            file = tar.extractfile(info)
            if file is None:
                raise BackupDamaged(f"{path} holds {info.name!r}, which is no file.")
            yield Member(info.name, file)


@contextmanager
def _readable(path: Path | str) -> Iterator[None]:
    """Raise BackupDamaged where the block can't read the archive."""
    try:
        yield
    except (tarfile.TarError, EOFError) as error:
        raise BackupDamaged(f"{path} is cut off or is no backup ({error}).") from error


def archive_verify(path: Path | str) -> int:
    """Compare every member with its checksum; returns how many there are.

    Raises BackupDamaged, with the first member that differs, and OSError.
    """
    archive_header(path)
    count = 0
    whole = False
    with _readable(path), tempfile.TemporaryFile() as found:
        for member in members(path):
            if whole:
                raise BackupDamaged(f"{path} goes on after its checksums.")
            if member.name == SUMS:
                found.seek(0)
                for line in member.file:
                    if line != (seen := found.readline()):
                        name = _name(seen) or _name(line)
                        raise BackupDamaged(f"{name} in {path} is not as it was written.")
                whole = not found.readline()
                continue
            digest = hashlib.file_digest(member.file, "sha256")  # type: ignore[arg-type]
            found.write(_line(digest.hexdigest(), member.name))
            count += 1
    if not whole:
        raise BackupDamaged(f"{path} is cut off: its checksums are missing.")
    return count


class _Hashed:
    """A file that is hashed while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size = size
    member.mode = 0o600
    return member


def _line(sha256: str, name: str) -> bytes:
    return f"{sha256}  {name}\n".encode()


def _name(line: bytes) -> str:
    return line.decode(errors="replace").partition("  ")[2].strip()
