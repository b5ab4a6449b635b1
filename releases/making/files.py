"""Writing a release's files from its snapshot: every format, the difference, croissant.json, the
manifest, the archives. `release_verify` writes them again by the same code."""

from __future__ import annotations

import hashlib
import shutil
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from releases.difference.difference import compare, without_test_labels
from releases.difference.text import markdown
from releases.formats.base import Access, WrittenFile, format_write
from releases.formats.croissant import (
    CROISSANT_FILE,
    OPEN_CROISSANT_FILE,
    write_croissant,
)
from releases.formats.registry import all_formats
from releases.making.images import released_image_bytes
from releases.making.progress import Progress
from releases.models import Release
from releases.selectors import RELEASE_KEY, SNAPSHOT_KEY
from releases.signals import versions_compared
from releases.snapshot.manifest import (
    MANIFEST_FILE,
    OPEN_MANIFEST_FILE,
    Counts,
    counts_of,
    write_manifest,
)
from releases.snapshot.open_snapshot import OpenSnapshot, write_open_snapshot
from releases.snapshot.release_files import SNAPSHOT_FOLDER
from releases.snapshot.snapshot import OPEN_FOLDER, Snapshot

#: Files that are compressed already: an archive stores them without compressing them again.
_STORED: Final = frozenset(
    {".parquet", ".jpg", ".jpeg", ".png", ".webp", ".gif", ".avif", ".gz", ".zip"}
)
#: The earliest date that an archive can hold, so that no clock gets into the bytes.
_NO_DATE: Final = (1980, 1, 1, 0, 0, 0)
_PERMISSIONS: Final = 0o100644
_CHUNK: Final = 1 << 20


def write_archive(
    path: Path,
    directory: Path,
    names: Iterable[str],
    *,
    root: str,
    written: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Write the named files of a directory into one archive, in a folder `root`; returns name, size
    and SHA-256 of the archive.

    Names are sorted, times and permissions fixed. Streams: memory doesn't grow with the files.
    `written` is called after each file.
    """
    with zipfile.ZipFile(path, "w") as archive:
        for name in sorted(names):
            source = directory / name
            entry = zipfile.ZipInfo(f"{root}/{name}", date_time=_NO_DATE)
            entry.create_system = 3
            entry.external_attr = _PERMISSIONS << 16
            stored = PurePosixPath(name).suffix.lower() in _STORED
            entry.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            # Known beforehand, so that small files need no ZIP64 record and large ones have it.
            entry.file_size = source.stat().st_size
            with source.open("rb") as file, archive.open(entry, "w") as member:
                shutil.copyfileobj(file, member, _CHUNK)
            written()
    return {"name": path.name, "size": path.stat().st_size, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


DIFFERENCE_FILE: Final = "difference.md"
#: The difference with the changed labels of the test split, where any changed.
TEST_DIFFERENCE_FILE: Final = "difference_test.md"

DIFFERENCE_STEP: Final = "What changed"
CHECKSUMS_STEP: Final = "Checksums"
ARCHIVE_STEP: Final = "Archives"

Entry = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Written:
    """What the row of a made release records."""

    file_list: list[Entry]
    archive: Entry
    difference: dict[str, Any]
    header: dict[str, Any]
    counts: Counts


def file_steps() -> tuple[str, ...]:
    """The titles of the steps of `files_write`, in order."""
    return (
        *(f"Format: {each.title}" for each in all_formats()),
        DIFFERENCE_STEP,
        CHECKSUMS_STEP,
        ARCHIVE_STEP,
    )


def files_write(*, release: Release, directory: Path, progress: Progress) -> Written:
    """Write everything of a release besides its snapshot, which lies in `directory` already.

    Equal snapshots give equal bytes.
    """
    snapshot = Snapshot(directory / SNAPSHOT_FOLDER)
    open_snapshot = OpenSnapshot(snapshot)
    hidden = snapshot.open is not snapshot
    if hidden:
        write_open_snapshot(open_snapshot)
    written: list[tuple[str, WrittenFile]] = []
    for each in all_formats():
        with progress.step(f"Format: {each.title}"):
            files = format_write(each.write, open_snapshot, directory, released_image_bytes)
            written += [(each.key, file) for file in files]
    with progress.step(DIFFERENCE_STEP):
        difference = _difference(release, snapshot)
        files = _difference_write(release, difference, directory, hidden=hidden)
        written += [(RELEASE_KEY, file) for file in files]
    folders = {SNAPSHOT_FOLDER: Access.LABELS} | ({OPEN_FOLDER: Access.OPEN} if hidden else {})
    written += [
        (SNAPSHOT_KEY, WrittenFile(f"{folder}/{path.name}", access))
        for folder, access in folders.items()
        for path in sorted((directory / folder).iterdir())
    ]
    # A release that an earlier version made lists its files in the order of that version.
    places = {entry["name"]: place for place, entry in enumerate(release.file_list)}
    written.sort(key=lambda pair: places.get(pair[1].name, len(places)))
    counts = counts_of(snapshot)
    # Where labels are hidden, there are also a Croissant file and a manifest of open files alone:
    # checksums and sizes of the others would show whether guessed labels are right.
    access = Access.LABELS if hidden else Access.OPEN
    descriptions = [(snapshot, access, CROISSANT_FILE, MANIFEST_FILE)]
    if hidden:
        descriptions.insert(
            0, (snapshot.open, Access.OPEN, OPEN_CROISSANT_FILE, OPEN_MANIFEST_FILE)
        )
    with progress.step(CHECKSUMS_STEP, len(written) + 2 * len(descriptions)) as count:
        entries = [_entry(directory, key, file, count) for key, file in written]

        def add(name: str, access: Access) -> None:
            entries.append(_entry(directory, RELEASE_KEY, WrittenFile(name, access), count))

        before = list(entries)
        for shown, access, name, _ in descriptions:
            listed = before if shown is snapshot else _open(before)
            write_croissant(directory / name, shown, listed)
            add(name, access)
        for shown, access, _, name in descriptions:
            write_manifest(
                directory / name,
                header=snapshot.header_data,
                counts=counts if shown is snapshot else counts_of(shown),
                options=release.options,
                files=entries if shown is snapshot else _open(entries),
                takedowns=release.takedowns_shown(hidden=shown is not snapshot),
            )
            add(name, access)
    with progress.step(ARCHIVE_STEP, len(entries) + len(_open(entries))) as count:
        archive = _archives(release, directory, entries, lambda: count(1))
    return Written(
        file_list=entries,
        archive=archive,
        difference=difference,
        header=snapshot.header.values,
        counts=counts,
    )


def _difference(release: Release, snapshot: Snapshot) -> dict[str, Any]:
    """The changes since the version before, as JSON; empty for a first version, and where the
    version before has no snapshot."""
    if release.previous is None:
        return {}
    before = Snapshot(release.previous.snapshot_directory)
    if not before.directory.is_dir():
        return {}
    difference = asdict(compare(before, snapshot))
    # A made release keeps its tables of runs, since runs come and go.
    difference["runs"] = (
        release.difference.get("runs", [])
        if release.files_ready
        else [
            table
            for _, tables in versions_compared.send(None, release=release, snapshot=snapshot)
            for table in tables or ()
        ]
    )
    return difference


def _difference_write(
    release: Release, difference: dict[str, Any], directory: Path, *, hidden: bool
) -> list[WrittenFile]:
    previous = str(release.previous) if release.previous else ""
    bare, whole = (
        markdown(content, title=str(release), previous=previous)
        for content in (without_test_labels(difference) if hidden else difference, difference)
    )
    (directory / DIFFERENCE_FILE).write_text(bare, encoding="utf-8")
    files = [WrittenFile(DIFFERENCE_FILE, Access.OPEN)]
    if whole != bare:
        (directory / TEST_DIFFERENCE_FILE).write_text(whole, encoding="utf-8")
        files.append(WrittenFile(TEST_DIFFERENCE_FILE, Access.LABELS))
    return files


def _entry(directory: Path, key: str, file: WrittenFile, count: Callable[[int], None]) -> Entry:
    path = directory / file.name
    count(1)
    return {
        "name": file.name,
        "size": path.stat().st_size,
        "sha256": file_sha256(path),
        "access": str(file.access),
        "format": key,
    }


def _archives(
    release: Release, directory: Path, entries: list[Entry], written: Callable[[], None]
) -> Entry:
    """Write an archive of all files, and one, under "open", of the files without labels of the test
    split."""
    root = release.slug
    archive, open_archive = (
        write_archive(
            directory / name,
            directory,
            [entry["name"] for entry in part],
            root=root,
            written=written,
        )
        for name, part in ((f"{root}.zip", entries), (f"{root}-open.zip", _open(entries)))
    )
    return {**archive, "open": open_archive}


def _open(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry["access"] == Access.OPEN]
