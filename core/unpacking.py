"""ZIP archives that strangers send, unpacked within bounds of what really comes out."""

from __future__ import annotations

import lzma
import shutil
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from itertools import takewhile
from operator import attrgetter
from pathlib import Path
from typing import Final

from core.line_stream import GROWTH_FREE, MAX_GROWTH

Progress = Callable[[int, int], None]
"""Takes the numbers of files done since the last call and of further files to do."""

_BATCH: Final = 200
_BLOCK: Final = 1 << 20
# zipfile decompresses all that it reads at once of kinds other than deflate.
_SMALL_BLOCK: Final = 1 << 12
_WHOLE_KINDS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: Bytes before a packed file's name and data.
_LEAST_HEADER: Final = 30
_BROKEN: Final = (
    zipfile.BadZipFile, zlib.error, lzma.LZMAError, NotImplementedError, RuntimeError, OSError,
    EOFError, ValueError,
)  # fmt: skip


class UnpackRefused(Exception):
    """Why an archive isn't unpacked, as a sentence."""


@dataclass(slots=True)
class Bounds:
    """What archives may become: those that are unpacked together share one, which counts."""

    most_files: int
    """With folders."""
    most_size: int | None = None
    least_free: int = 0
    """Bytes of the disk that stay free."""
    files: int = 0
    size: int = 0
    excess: int = 0
    """Bytes that came out beyond MAX_GROWTH for each packed byte; at most GROWTH_FREE may."""

    def count_file(self, target: Path) -> None:
        """Count a file that will be written, and the folders that are made for it; one that is
        there is replaced. Raises UnpackRefused.
        """
        if target.exists():
            self.files -= 1
            self.size -= target.stat().st_size
        folders = sum(1 for _ in takewhile(lambda folder: not folder.exists(), target.parents))
        self.files += 1 + folders
        if self.files > self.most_files:
            raise UnpackRefused(f"It holds more than {self.most_files:,} files and folders.")

    def count_bytes(self, block: bytes, folder: Path) -> None:
        """Count bytes that will be written below a folder. Raises UnpackRefused."""
        self.size += len(block)
        if self.most_size is not None and self.size > self.most_size:
            raise UnpackRefused(f"More than {self.most_size:,} bytes come out of it.")
        if shutil.disk_usage(folder).free - len(block) < self.least_free:
            raise UnpackRefused("The disk has no room to unpack it.")


def unpack_zip(
    archive: Path,
    target_of: Callable[[str], Path | None],
    bounds: Bounds,
    progress: Progress = lambda done, more: None,
) -> None:
    """Write each file of an archive to `target_of` its name; None leaves it out.

    What comes out is counted while it does, whatever the archive says of it: it may be MAX_GROWTH
    times as large as what is packed, and GROWTH_FREE more. Raises UnpackRefused for an archive that
    is broken, that no program packs so, or that passes the bounds; what was written until then
    stays.
    """
    try:
        with zipfile.ZipFile(archive) as packed:
            _unpack(packed, target_of, bounds, progress)
    except _BROKEN as error:
        raise UnpackRefused(f"It can't be unpacked: {error}.") from None


def check_unpacked(archive: Path, bounds: Bounds) -> None:
    """Raise UnpackRefused for an archive that `unpack_zip` would refuse; nothing is written."""
    try:
        with zipfile.ZipFile(archive) as packed:
            for member in _members(packed, bounds):
                for block in _blocks(packed, member, bounds):
                    bounds.count_bytes(block, archive.parent)
    except _BROKEN as error:
        raise UnpackRefused(f"It can't be unpacked: {error}.") from None


def _members(packed: zipfile.ZipFile, bounds: Bounds) -> list[zipfile.ZipInfo]:
    """The files of an archive. Raises UnpackRefused where they are too many or overlap."""
    entries = packed.infolist()
    if len(entries) > bounds.most_files:
        raise UnpackRefused(f"It holds more than {bounds.most_files:,} files and folders.")
    if _overlap(entries):
        raise UnpackRefused("Files in it overlap, as no program packs them.")
    return [entry for entry in entries if not entry.is_dir()]


def _unpack(
    packed: zipfile.ZipFile,
    target_of: Callable[[str], Path | None],
    bounds: Bounds,
    progress: Progress,
) -> None:
    members = _members(packed, bounds)
    progress(0, len(members))
    for number, member in enumerate(members, start=1):
        if number % _BATCH == 0:
            progress(_BATCH, 0)
        if (target := target_of(member.filename)) is None:
            continue
        bounds.count_file(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            for block in _blocks(packed, member, bounds):
                bounds.count_bytes(block, target.parent)
                file.write(block)
    progress(len(members) % _BATCH, 0)


def _blocks(packed: zipfile.ZipFile, member: zipfile.ZipInfo, bounds: Bounds) -> Iterator[bytes]:
    """The bytes of a member. Raises UnpackRefused where it grows beyond all photos and tables."""
    usual, size = MAX_GROWTH * member.compress_size, 0
    with packed.open(member) as source:
        while block := source.read(
            _BLOCK if member.compress_type in _WHOLE_KINDS else _SMALL_BLOCK
        ):
            size += len(block)
            if bounds.excess + size - usual > GROWTH_FREE:
                raise UnpackRefused(
                    f"“{member.filename[:100]}” becomes more than {MAX_GROWTH} times as large as "
                    "it is packed, as no photos or tables do. Leave it out, or upload it unpacked."
                )
            yield block
    bounds.excess += max(0, size - usual)


def _overlap(entries: Collection[zipfile.ZipInfo]) -> bool:
    """Whether two entries of an archive share bytes, as in a ZIP bomb."""
    end = 0
    for entry in sorted(entries, key=attrgetter("header_offset")):
        if entry.header_offset < end:
            return True
        end = entry.header_offset + _LEAST_HEADER + entry.compress_size
    return False
