"""Writers of formats, and the files that they make of a snapshot.

A writer is a function `write(snapshot, files)`. It writes what the snapshot holds, and knows
nothing of who may see it: `format_write` runs it on a release's open snapshot and on the whole one,
and gives each file its access by the run that wrote it. The names of the two runs' files differ:
that of a file of labels ends with `Files.labels` (judgments_val.csv, judgments.csv), that of a list
of images with `Files.images` (attribution.csv, attribution_all.csv), and that of a file of one
split has the split (qrels_test.txt).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, TextIO

from releases.formats.writing import csv_value
from releases.snapshot.open_snapshot import OpenSnapshot
from releases.snapshot.snapshot import Snapshot


class Access(StrEnum):
    """Who may have a file."""

    OPEN = "open"
    """Everyone who may see the release: it holds no label of the test split."""
    LABELS = "labels"
    """Reviewers and admins: it holds labels of the test split."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A file of a release."""

    name: str
    """Its path within the release, with "/"."""
    access: Access


#: Reads an image's source file by its id, path and SHA-256 (empty where the snapshot doesn't know
#: it); None where the file isn't here.
ImageFiles = Callable[[int, str, str], bytes | None]


@dataclass(slots=True)
class Files:
    """The files of one run of a writer, below the release's directory.

    A file that the run before has made stays as it is, and the iterator of its content isn't used.
    So pass lazy iterators.
    """

    directory: Path
    image_files: ImageFiles
    labels: str = ""
    """The suffix of a file of the labels of all labeled queries: "_val" where these are the
    validation queries alone."""
    images: str = ""
    """The suffix of a list of all images: "_all" where it has images that open lists don't have."""
    names: set[str] = field(default_factory=set)
    """The names of this run's files, written now or there already."""

    def new_path(self, name: str) -> Path | None:
        """The path of a file that is to be written; None where it is there already."""
        self.names.add(name)
        path = self.directory / name
        return None if path.exists() else path

    def text(self, name: str, parts: Iterable[str]) -> None:
        """Write a text as UTF-8, in parts that end their lines with LF."""
        if self.new_path(name):
            with self.opened(name) as file:
                file.writelines(parts)

    @contextmanager
    def opened(self, name: str) -> Iterator[TextIO]:
        """A new text file, for writers that write several at once."""
        self.names.add(name)
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8", newline="") as file:
            yield file

    def csv(self, name: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Write a CSV file from rows as they come: None is blank, True and False are 1 and 0.

        Texts are written verbatim. Where people will open the file as a spreadsheet, pass them
        through `spreadsheet_text` first.
        """
        lines = (values for part in ([header], rows) for values in part)
        self.text(name, (",".join(map(csv_value, values)) + "\n" for values in lines))

    def below(self, folder: str) -> list[str]:
        """The names of the files that exist in a folder."""
        return [name for name in self.written if name.startswith(f"{folder}/")]

    @property
    def written(self) -> set[str]:
        """The names whose file exists: one without rows may not be made."""
        return {name for name in self.names if (self.directory / name).exists()}


Writer = Callable[[Snapshot, Files], None]


@dataclass(frozen=True, slots=True)
class Format:
    """One of the field's formats."""

    key: str
    title: str
    about: str
    """One sentence for the release's page."""
    write: Writer
    """Makes its files, equal bytes for equal snapshots; none where the snapshot has nothing for it.
    """


def format_write(
    write: Writer, snapshot: OpenSnapshot, directory: Path, image_files: ImageFiles
) -> list[WrittenFile]:
    """Write the files of a format from an open snapshot and from the whole one; returns them by
    name.

    The files of the open run are open, all others hold labels. Where both runs have a file of one
    name, the first run writes it: the open run, or the whole's where the test labels are public.
    """
    hidden = snapshot.whole.header.test_labels == "hidden"
    open_files = Files(directory, image_files, labels="_val")
    files = Files(directory, image_files, images="_all" if hidden else "")
    if not hidden:
        write(snapshot.whole, files)
    write(snapshot, open_files)
    # Taken before the whole's run: any file that it adds holds labels.
    opened = open_files.written
    if hidden:
        write(snapshot.whole, files)
    return [
        WrittenFile(name, Access.OPEN if name in opened else Access.LABELS)
        for name in sorted(opened | files.written)
    ]
