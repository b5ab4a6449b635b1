"""Giving a release's files out to a directory, as they were made."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.exceptions import ValidationError

from benchmark.releases import selectors
from benchmark.releases.archive import file_sha256
from benchmark.releases.making import release_make
from benchmark.releases.models import Release
from benchmark.releases.progress import Report
from benchmark.releases.requests import release_claim
from benchmark.releases.snapshot.manifest import listed_names
from benchmark.releases.snapshot.release_files import RELEASE_FILES
from core.files import atomic_directory


class ReleaseUnusable(Exception):
    """A release's files can't be given out; the text says why and what to do."""


def release_export(
    *,
    name: str,
    directory: Path,
    replace: bool = False,
    new: bool = False,
    options: Mapping[str, Any] | None = None,
    report: Report | None = None,
) -> Release:
    """Write a release's files to `directory`.

    `new` makes the next version of the name, of this moment and with the options of
    `services.release_create`; else `name` is as for `selectors.release_named`, and the files are
    copied as they were made, since a release never changes. `replace` replaces a directory that
    holds a release and nothing else. Raises `selectors.UnknownRelease`, ValidationError for an
    impossible name or option, `directories.TargetRefused` for an impossible directory,
    ReleaseUnusable for lost or damaged files, and JobFailed where the fixed lists can't be made.
    """
    replaceable = listed_names(directory) | set(RELEASE_FILES)
    with atomic_directory(directory, replace=replace, replaceable=replaceable) as partial:
        if new:
            claimed = release_claim(name=name, created_by=None, options=options)
            release = release_make(release=claimed, report=report)
        else:
            release = selectors.release_named(name)
            if options:
                raise ValidationError(
                    f"{release} is made and never changes; options are for a new version."
                )
        release_copy(release=release, directory=partial)
    return release


def release_copy(*, release: Release, directory: Path) -> None:
    """Copy a release's files, refusing any that is not what was made (ReleaseUnusable)."""
    for entry in release.file_list:
        source, target = release.directory / entry["name"], directory / entry["name"]
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copyfile(source, target)
        except FileNotFoundError:
            raise ReleaseUnusable(
                f"{source} is gone: restore it from a backup, or make a new version."
            ) from None
        if file_sha256(target) != entry["sha256"]:
            raise ReleaseUnusable(
                f"{source} is not as it was made (its SHA-256 differs): restore it from a backup, "
                "or make a new version."
            )
