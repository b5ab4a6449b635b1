"""A folder with one sub-folder of images per species."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from core.text import has_controls, printable
from retrieval.importing.choices import ImportChoices
from retrieval.importing.records import (
    ImageRecord,
    ImportRefused,
    RecordRefused,
    Refusal,
    SpeciesRecord,
)
from retrieval.importing.species_names import species_from_folder

MAX_FILE_NAME: Final = 500
# Suffixes of images, readable or not.
_IMAGE_SUFFIXES: Final = (
    ".avif", ".bmp", ".dib", ".gif", ".heic", ".heif", ".j2k", ".jfif", ".jp2", ".jpe", ".jpeg",
    ".jpg", ".jxl", ".pbm", ".pgm", ".png", ".pnm", ".ppm", ".svg", ".tif", ".tiff", ".webp",
)  # fmt: skip


class FolderSource:
    """Reads PATH/<species>/**/<image>.

    Hidden files, and files directly in PATH that are no images, are ignored. Images directly in
    PATH, and links to folders inside a species' folder, are refused. Raises ImportRefused if the
    folder has no sub-folder.
    """

    def __init__(
        self, root: Path, refuse: Callable[[Refusal], None], choices: ImportChoices
    ) -> None:
        self.root = root
        self.unused: list[str] = []
        self._choices = choices
        self._folders: list[tuple[Path, SpeciesRecord]] = []
        self._refuse = refuse
        entries = sorted(p for p in root.iterdir() if not p.name.startswith("."))
        folders = [p for p in entries if p.is_dir()]
        if not folders:
            raise ImportRefused(str(root), "This folder has no sub-folders, one per species.")
        for folder in folders:
            try:
                self._folders.append((folder, species_from_folder(folder.name)))
            except RecordRefused as error:
                self._refuse_path(folder.name, error.field, error.reason)
        for path in entries:
            if path.suffix.lower() in _IMAGE_SUFFIXES and not path.is_dir():
                self._refuse_path(
                    path.name,
                    "file_name",
                    "lies in no species folder. Move it into the folder of its species.",
                )

    @property
    def highest_id(self) -> int:
        """The highest preferred id: -1, since images of folders have none."""
        return -1

    def default_dataset(self) -> str:
        """Return the folder's name."""
        return self.root.resolve().name

    def species(self) -> list[SpeciesRecord]:
        """Return the species of the sub-folders."""
        return [species for _, species in self._folders]

    def count(self) -> int:
        """Count the files, and the links to folders, which are refused."""
        return sum(1 for folder, _ in self._folders for _ in _files(folder))

    def images(self) -> Iterator[ImageRecord]:
        """Yield the images in the order of their paths."""
        for folder, species in self._folders:
            for path in _files(folder):
                name = path.relative_to(self.root).as_posix()
                if len(name) > MAX_FILE_NAME or has_controls(name):
                    self._refuse_path(
                        name,
                        "file_name",
                        "must hold no control characters and be of at most "
                        f"{MAX_FILE_NAME} letters",
                    )
                    continue
                if path.is_dir():
                    self._refuse_path(
                        name,
                        "file_name",
                        "is a link to a folder, which is not followed. Put the folder itself here.",
                    )
                    continue
                yield ImageRecord(
                    source_id=name,
                    preferred_id=None,
                    file_name=name,
                    record="",
                    scientific_name=species.scientific_name,
                )

    def _refuse_path(self, name: str, field: str, reason: str) -> None:
        # A name may contain bytes that are no text.
        self._refuse(Refusal(printable(name), "", field, printable(reason)))


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, and links to folders, which are not followed."""
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        links = [f for f in folders if Path(parent, f).is_symlink()]
        for name in sorted([*names, *links]):
            if not name.startswith("."):
                yield Path(parent, name)
