"""The files of an upload as they come: in pieces, of which those that came stay.

They lie in the upload's folder `files`. In a bucket the pieces are objects, with a list of each
request's pieces beside them, until a machine that needs the files puts them together in its own
folder.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
import time
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final, NamedTuple

from django.conf import settings

from core import storage
from core.errors import Conflict, Invalid
from core.files import is_below
from core.outages import free_bytes
from retrieval.importing.records import ImportRefused

MOST_FILES: Final = 500_000
_BUFFER: Final = 1 << 20
_BAD_NAME: Final = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
_PART: Final = ".part"


class Piece(NamedTuple):
    """What comes of a file of `size` bytes, from the byte `at` on."""

    path: str
    at: int
    size: int
    data: BinaryIO | Any


def pieces_store(*, folder: Path, pieces: Iterable[Piece]) -> None:
    """Store pieces of an upload's files, one after the other; the earlier stay if one is refused.

    A piece may come again; a file gets its name once all bytes are there. Raises Invalid for a path
    out of the folder and for a piece that leaves a gap or goes beyond the size, Conflict if the
    disk is full or there are MOST_FILES files.
    """
    renew(folder)
    stored = []
    try:
        for piece in pieces:
            _require_room(piece)
            store = _share if storage.is_shared() else _add
            stored.append((piece.path, piece.at, store(folder, piece)))
    finally:
        if stored and storage.is_shared():
            # Names sort by time: a file that is sent once more begins again.
            name = f"{time.time_ns():020}-{uuid.uuid4().hex}"
            with storage.writing(folder / "sent" / name) as file:
                file.write(json.dumps(stored).encode())


def _require_room(piece: Piece) -> None:
    path = piece.path
    hidden = any(part.startswith(".") for part in PurePosixPath(path).parts)
    if not path or len(path) > 500 or hidden or not is_below(path) or "\0" in path:
        raise Invalid({"path": ["must be a path below the upload's folder"]})
    if piece.size > settings.UPLOAD_MAX_BYTES:
        raise Conflict(f"A file may have at most {settings.UPLOAD_MAX_BYTES:,} bytes.")
    if piece.size > free_bytes() - settings.DISK_MIN_FREE_BYTES:
        raise Conflict("The server's disk has no room for this file.")


def _add(folder: Path, piece: Piece) -> int:
    """Add a piece to its file, and return where it ends."""
    files = folder / "files"
    target = files / piece.path
    part = target.with_name(f".{target.name}{_PART}")
    try:
        if piece.at == 0:
            _count(folder, files, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        clash = target.is_dir()
        part.touch()
    except OSError as error:
        if error.errno not in _BAD_NAME:
            raise
        clash = True
    if clash:
        raise Invalid({"path": ["is too long, or a file and a folder have the same name"]})
    with part.open("r+b") as file:
        file.seek(0, 2)
        if not 0 <= piece.at <= file.tell():
            raise Invalid({"at": [f"{file.tell()} bytes are there; the next piece begins there"]})
        file.seek(piece.at)
        file.truncate()
        while block := piece.data.read(_BUFFER):
            if file.tell() + len(block) > piece.size:
                raise Invalid({"size": ["the piece goes beyond it"]})
            file.write(block)
        end = file.tell()
    if end == piece.size:
        part.replace(target)
    return end


def _count(folder: Path, files: Path, target: Path) -> None:
    """Count a new file and its new folders: a byte each in the file `count`, so that none of half a
    million looks at all others. Raises Conflict.
    """
    paths = [path for path in (target, *target.parents) if files in path.parents]
    new = sum(not path.exists() for path in paths)
    with (folder / "count").open("ab") as count:
        if new and count.tell() >= MOST_FILES:
            raise Conflict(f"At most {MOST_FILES:,} files can be uploaded at once.")
        count.write(b"." * new)


def _share(folder: Path, piece: Piece) -> int:
    """Store a piece in the bucket, and return where it ends; gaps are noticed when the file is put
    together.
    """
    about = {"path": piece.path, "at": piece.at, "size": piece.size}
    path_hash = hashlib.sha256(piece.path.encode()).hexdigest()
    with storage.writing(folder / "pieces" / f"{piece.at:020}-{path_hash}") as file:
        file.write(json.dumps(about).encode() + b"\n")
        end = piece.at
        while block := piece.data.read(_BUFFER):
            end += file.write(block)
        if end > piece.size:
            raise Invalid({"size": ["the piece goes beyond it"]})
    return end


def files_there(folder: Path) -> dict[str, int]:
    """Return how many bytes are there of each file of an upload, by its path."""
    return _sent(folder) if storage.is_shared() else _stored(folder / "files")


def _stored(files: Path) -> dict[str, int]:
    there: dict[str, int] = {}
    for path in files.rglob("*"):
        # A part gets the file's name meanwhile.
        with suppress(FileNotFoundError):
            if not path.is_file():
                continue
            size = path.stat().st_size
            if path.name.startswith(".") and path.name.endswith(_PART):
                # What is sent anew doesn't count as the whole file that was there.
                whole = path.with_name(path.name[1 : -len(_PART)])
                there[whole.relative_to(files).as_posix()] = size
            else:
                there.setdefault(path.relative_to(files).as_posix(), size)
    return there


def _sent(folder: Path) -> dict[str, int]:
    there: dict[str, int] = {}
    for listed in sorted(storage.names_below(folder / "sent")):
        with storage.reading(listed) as file:
            for path, at, end in json.loads(file.read()):
                if at == 0 or at <= there.get(path, 0):
                    there[path] = end
    return there


def pieces_gather(folder: Path) -> None:
    """Put together the bucket's pieces that weren't yet. Raises ImportRefused if they don't fit."""
    files, gathered = folder / "files", folder / "gathered"
    gathered_names = set(gathered.read_text().split()) if gathered.exists() else set()
    # Names begin with the position in the file, so each piece follows the one before.
    for piece_path in sorted(storage.names_below(folder / "pieces")):
        if piece_path.name in gathered_names:
            continue
        with storage.reading(piece_path) as stored, tempfile.TemporaryFile(dir=folder) as data:
            storage.copied(stored, data)
            data.seek(0)
            about = json.loads(data.readline())
            try:
                # A complete file got this piece before a kill.
                if not (files / about["path"]).is_file():
                    _add(folder, Piece(**about, data=data))
            except (Invalid, Conflict) as error:
                raise ImportRefused("upload", f"{error} Upload the files again.") from None
        with gathered.open("a") as done:
            done.write(f"{piece_path.name}\n")


def used_at(folder: Path) -> float:
    """When an upload was begun or its last piece came. Raises FileNotFoundError."""
    if storage.is_shared():
        with suppress(FileNotFoundError):
            return storage.modified_at(folder / "owner").timestamp()
    return folder.stat().st_mtime


def renew(folder: Path) -> None:
    """Have the lifetime of an upload begin now."""
    if storage.is_shared():
        with storage.reading(folder / "owner") as file:
            owner = file.read()
        with storage.writing(folder / "owner") as file:
            file.write(owner)
    else:
        os.utime(folder)
