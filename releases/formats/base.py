"""The formats of a release: each has a writer of its own, which reads the snapshot alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from releases.snapshot.snapshot import Snapshot


class Access(StrEnum):
    """Who may have a file."""

    OPEN = "open"
    """Everyone who may see the release: it holds no label of the test split."""
    LABELS = "labels"
    """Reviewers and admins: it holds labels of the test split."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file that a writer made."""

    name: str
    """Its path within the release, with "/"."""
    access: Access


#: Reads an image's source file by its id, path and SHA-256 (empty where the snapshot doesn't know
#: it); None where the file isn't here.
ImageFiles = Callable[[int, str, str], bytes | None]


@dataclass(frozen=True, slots=True)
class Format:
    """One of the field's formats."""

    key: str
    title: str
    about: str
    """One sentence for the release's page."""
    write: Callable[[Snapshot, Path, ImageFiles], list[WrittenFile]]
    """`write(snapshot, directory, image_files)` makes files below the release's directory, equal
    bytes for equal snapshots, and returns which; none where the snapshot has nothing for it."""
