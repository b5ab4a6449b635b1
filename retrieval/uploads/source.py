"""What an upload's files are imported as: the file that lists its images, or else its folder."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final

from retrieval.importing.folder import IMAGE_SUFFIXES
from retrieval.importing.headers import is_canonical
from retrieval.importing.known_names import known_names
from retrieval.importing.records import ImportRefused
from retrieval.importing.sheets import SUFFIXES
from retrieval.importing.sidecars import is_litter
from retrieval.importing.species_names import taxon_of
from retrieval.importing.table_choice import several_tables, split_tables, table_among

_BUFFER: Final = 1 << 20


def source_path(files: Path) -> tuple[Path, str]:
    """What to import: a COCO file or a table at the top, the folder of the tables of splits, else a
    folder; and the names of folders above it that say something of the images.

    Descends into a single folder that holds everything, unless it is a species' own. The first of
    these is the folder that was chosen, or that a ZIP file was made of: its name says nothing but
    what the upload was called, unless it is a taxon's, and goes to the data set.
    """
    folder = files
    while True:
        entries = sorted(entry for entry in folder.iterdir() if not is_litter(entry.name))
        if listing := _listing(entries):
            return listing, ""
        if split_tables(folder):
            return folder, ""
        if not entries:
            raise ImportRefused("upload", "Nothing was uploaded.")
        if len(entries) > 1 or not _is_wrapper(entries[0]):
            return folder, _above(files, folder)
        folder = entries[0]


def unread_tables(path: Path) -> list[str]:
    """The names of the tables that lie beside what is imported."""
    folder = path if path.is_dir() else path.parent
    suffixes = [suffix for suffix in SUFFIXES if suffix != ".txt"]
    beside = (one for one in sorted(folder.iterdir()) if _is_table(one, suffixes))
    return [one.name for one in beside if one != path]


def _names_images(path: Path) -> bool:
    """Whether a file has what only a list of images has: a COCO file's key, or the canonical
    header of a table.
    """
    with path.open("rb") as file:
        if path.suffix.lower() != ".json":
            return is_canonical(file.readline(_BUFFER).decode("utf-8-sig", "replace").split(","))
        before = b""
        while block := file.read(_BUFFER):
            if b'"images"' in before + block:
                return True
            before = block[-16:]
    return False


def _lists(entries: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """The files of a folder that may list its images: JSON files, but those that describe images
    beside them, and tables.
    """
    objects = [entry for entry in entries if _is_table(entry, (".json",))]
    if objects:
        beside = objects[0].parent.rglob("*")
        if any(path.suffix.lower() in IMAGE_SUFFIXES for path in beside):
            objects = [path for path in objects if _names_images(path)]
    return objects, [entry for entry in entries if _is_table(entry, SUFFIXES)]


def _listing(entries: Sequence[Path]) -> Path | None:
    """The file of a folder that lists its images: a COCO file, else a table; None where there is
    none. Raises ImportRefused for several.
    """
    objects, tables = _lists(entries)
    usable = [path for path in objects if _names_images(path)]
    if usable:
        usable += [path for path in tables if _names_images(path)]
    elif table := table_among(tables):
        return table
    elif any(entry.is_dir() for entry in entries):
        # Tables beside folders of images are notes.
        usable = objects
    else:
        usable = [*objects, *(path for path in tables if path.suffix.lower() != ".txt")]
    if len(usable) > 1:
        raise several_tables(usable)
    return usable[0] if usable else None


def _is_table(path: Path, suffixes: Container[str]) -> bool:
    """Whether a file is a table by its name; not one that a program leaves beside an open one."""
    litter = path.name.startswith((".", "~$"))
    return path.suffix.lower() in suffixes and not litter and path.is_file()


def _is_wrapper(folder: Path) -> bool:
    """Whether a folder that is alone holds others or a list of images, and isn't a species' own."""
    if not folder.is_dir():
        return False
    inside = list(folder.iterdir())
    if any(_lists(inside)):
        return True
    return any(path.is_dir() for path in inside) and taxon_of(folder.name).species is None


def _above(files: Path, folder: Path) -> str:
    """The names of the folders down to one of an upload, without that of the upload itself."""
    names = list(folder.relative_to(files).parts)
    archives = files.with_name("archives")
    stems = archives.read_text().lower().splitlines() if archives.exists() else []
    if names and not taxon_of(names[0], known_names(by_form=False)).recognized:
        name = re.escape(names[0].lower())
        # Such as photos-001.zip, photos (1).zip.
        if not stems or any(re.match(rf"{name}(\W|_|$)", stem) for stem in stems):
            del names[0]
    return "/".join(names)
