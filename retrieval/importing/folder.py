"""A folder with one sub-folder of images per species."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from retrieval.importing.fields import has_controls
from retrieval.importing.records import (
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.species_names import species_from_folder

MAX_FILE_NAME = 500


class FolderSource:
    """Reads PATH/<species>/**/<image>. Hidden files are passed over; links are not followed out.

    Raises ImportRefused if the folder has no sub-folder at all.
    """

    def __init__(self, root: Path, refuse: Callable[[Refusal], None]) -> None:
        self.root = root
        self._folders: list[tuple[Path, SpeciesRecord]] = []
        self._refuse = refuse
        folders = sorted(p for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
        if not folders:
            raise ImportRefused(str(root), "This folder has no sub-folders, one per species.")
        for folder in folders:
            try:
                self._folders.append((folder, species_from_folder(folder.name)))
            except RecordRefused as error:
                refuse(Refusal(folder.name, "", error.field, error.reason))

    @property
    def highest_id(self) -> int:
        """The highest id that a record asks for: here none does."""
        return -1

    def default_dataset(self) -> str:
        """Return the folder's name: the same on every run."""
        return self.root.resolve().name

    def species(self) -> list[SpeciesRecord]:
        """Return the species that the sub-folders name."""
        return [species for _, species in self._folders]

    def count(self) -> int:
        """Count the images' files."""
        return sum(1 for folder, _ in self._folders for _ in _files(folder))

    def images(self) -> Iterator[ImageRecord]:
        """Yield the images in the order of their paths."""
        for folder, species in self._folders:
            for path in _files(folder):
                name = path.relative_to(self.root).as_posix()
                if len(name) > MAX_FILE_NAME or has_controls(name):
                    self._refuse(
                        Refusal(
                            name.encode("utf-8", "backslashreplace").decode(),
                            "",
                            "file_name",
                            f"The path must be printable and of at most {MAX_FILE_NAME} letters.",
                        )
                    )
                    continue
                yield ImageRecord(
                    source_id=name,
                    wanted_id=None,
                    file_name=name,
                    record="",
                    scientific_name=species.scientific_name,
                )


def _files(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield Path(parent, name)
