"""The files of an upload with its archives unpacked."""

from __future__ import annotations

import fcntl
import zipfile
from collections.abc import Container, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from django.conf import settings

from core import storage
from core.files import is_below
from core.unpacking import Bounds, Progress, UnpackRefused, unpack_zip
from retrieval.importing.folder import IMAGE_SUFFIXES
from retrieval.importing.records import ImportRefused
from retrieval.importing.sidecars import is_litter
from retrieval.uploads.pieces import MOST_FILES, pieces_gather
from retrieval.uploads.source import source_path
from retrieval.uploads.tables import table_place


def unpacked(folder: Path, progress: Progress = lambda done, more: None) -> Path:
    """The folder of an upload's files, with its archives unpacked. Raises ImportRefused."""
    files = folder / "files"
    files.mkdir(parents=True, exist_ok=True)
    # A job that was canceled may still be unpacking.
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if storage.is_shared():
            pieces_gather(folder)
        if archives := sorted(p for p in files.iterdir() if p.suffix.lower() == ".zip"):
            bounds = _bounds(files, besides=archives)
            _refuse_clashes(archives)
            for archive in archives:
                with (folder / "archives").open("a") as names:
                    names.write(f"{archive.stem}\n")
                _unpack(archive, files, bounds, progress)
        table_place(folder, files, lambda files: source_path(files)[0])
    return files


def _unpack(archive: Path, into: Path, bounds: Bounds, progress: Progress) -> None:
    """Unpack a ZIP archive into a folder and remove it. Raises ImportRefused for an archive that is
    broken, leads out of the folder, or passes the bounds. Some programs of Windows separate folders
    by backslashes alone.
    """

    def target_of(name: str) -> Path | None:
        if "/" not in name:
            name = name.replace("\\", "/")
        if not is_below(name):
            raise ImportRefused(archive.name, "A path in it leads out of its folder.")
        if name.endswith("/") or any(map(is_litter, PurePosixPath(name).parts)):
            return None
        if into / name == archive:
            raise ImportRefused(archive.name, "It holds a file of its own name.")
        return into / name

    try:
        unpack_zip(archive, target_of, bounds, progress)
    except UnpackRefused as error:
        raise ImportRefused(archive.name, str(error)) from None
    archive.unlink()


def _refuse_clashes(archives: Sequence[Path]) -> None:
    """Raise ImportRefused where two archives hold different images at one path."""
    seen: dict[str, tuple[int, str]] = {}
    for archive in archives if len(archives) > 1 else ():
        # What is broken is refused when it is unpacked.
        with suppress(zipfile.BadZipFile, ValueError), zipfile.ZipFile(archive) as packed:
            for entry in packed.infolist():
                if PurePosixPath(entry.filename).suffix.lower() not in IMAGE_SUFFIXES:
                    continue
                content, first = seen.setdefault(entry.filename, (entry.CRC, archive.name))
                if content != entry.CRC:
                    raise ImportRefused(
                        archive.name,
                        f"“{entry.filename[:100]}” is another image in {first}. Upload the files "
                        "one after the other, under two names.",
                    )


def _bounds(files: Path, *, besides: Container[Path]) -> Bounds:
    """What the archives of an upload may become together with its other files."""
    sizes = [path.stat().st_size for path in files.rglob("*") if path not in besides]
    return Bounds(
        most_files=MOST_FILES,
        most_size=settings.UPLOAD_MAX_BYTES,
        least_free=settings.DISK_MIN_FREE_BYTES,
        files=len(sizes),
        size=sum(sizes),
    )
