"""Checking that a release comes out of its snapshot again, byte for byte."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark.releases.archive import file_sha256
from benchmark.releases.files import file_steps, files_write
from benchmark.releases.giving import ReleaseUnusable
from benchmark.releases.models import Release
from benchmark.releases.progress import Progress, Report
from benchmark.releases.selectors import SNAPSHOT_KEY
from benchmark.releases.snapshot.release_files import SNAPSHOT_FOLDER


@dataclass(frozen=True, slots=True)
class Finding:
    """A file that is not what it should be."""

    name: str
    problem: str


def release_verify(*, release: Release, report: Report | None = None) -> list[Finding]:
    """Check every stored file against its SHA-256, and write all files again from the snapshot to
    compare them byte for byte; what is wrong, by file, empty if nothing is.

    A damaged snapshot is named, and nothing is written from it. Raises ReleaseUnusable for a
    release that isn't made or has no snapshot.
    """
    if not release.files_ready:
        raise ReleaseUnusable(f"{release} isn't made yet.")
    if not any(entry.get("format") == SNAPSHOT_KEY for entry in release.file_list):
        raise ReleaseUnusable(
            f"{release} was made by a version without snapshots; only a new version can be checked."
        )
    listed = {entry["name"]: entry for entry in [*release.file_list, *_archives(release)]}
    found = {
        name: problem
        for name, entry in listed.items()
        if (problem := _stored_problem(release.directory / name, entry))
    }
    snapshot_damaged = any(listed[name].get("format") == SNAPSHOT_KEY for name in found)
    if not snapshot_damaged:
        for name, problem in _written_again(release, report).items():
            found.setdefault(name, problem)
    return [Finding(name, found[name]) for name in sorted(found)]


def _archives(release: Release) -> list[dict[str, Any]]:
    return [release.archive, release.archive["open"]] if release.archive else []


def _stored_problem(path: Path, entry: dict[str, Any]) -> str:
    if not path.is_file():
        return "is gone"
    return "" if file_sha256(path) == entry["sha256"] else "is not as it was made"


def _written_again(release: Release, report: Report | None) -> dict[str, str]:
    """What comes out differently from the snapshot, by file."""
    with tempfile.TemporaryDirectory(
        dir=release.directory.parent, prefix=f".{release.pk}.verifying-"
    ) as folder:
        directory = Path(folder)
        (directory / SNAPSHOT_FOLDER).symlink_to(release.snapshot_directory)
        progress = Progress(file_steps(), report)
        written = files_write(release=release, directory=directory, progress=progress)
    then = {entry["name"]: entry["sha256"] for entry in release.file_list}
    then |= {entry["name"]: entry["sha256"] for entry in _archives(release)}
    now = {entry["name"]: entry["sha256"] for entry in written.file_list}
    now |= {one["name"]: one["sha256"] for one in (written.archive, written.archive["open"])}
    found = {name: "is not written any more" for name in then if name not in now}
    found |= {name: "is written now, but wasn't then" for name in now if name not in then}
    found |= {
        name: "comes out differently from the snapshot"
        for name in then
        if name in now and then[name] != now[name]
    }
    return found
