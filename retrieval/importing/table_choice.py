"""The files of a folder that a table lists, however it writes their names; and which of the files
is the table, and which of its sheets.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final

from core.files import is_below
from retrieval.importing.folder import IMAGE_SUFFIXES
from retrieval.importing.headers import field_of, fields_named, is_canonical
from retrieval.importing.records import ImportRefused
from retrieval.importing.sheets import SUFFIXES, Sheet, open_sheets

#: iNaturalist's id of an observation or a photo, or the address of a photo, in which its id is.
_ID: Final = re.compile(r"(\d{4,})|https?://\S*/photos/(\d{4,})(?:/\S*)?")
_SAMPLE: Final = 20
#: Folders of the splits of Hugging Face's imagefolder, and the tables in them.
_SPLITS: Final = (
    "train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval",
)  # fmt: skip
_METADATA: Final = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


class FileIndex:
    """The files below a folder, listed once a name isn't found as it is."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def found(self, name: str) -> list[str]:
        """The paths below the folder of the files that a cell means; more than one only for an
        observation's id. Compared are the path as it is, or in another Unicode form, then in any
        case and without its suffix, then the file's own name, where only one file has it; then ids
        in names of files.
        """
        forms = {name, unicodedata.normalize("NFC", name), unicodedata.normalize("NFD", name)}
        if is_below(name) and any(os.path.isfile(self.root / form) for form in forms):
            return [name]
        key = _key(name.strip())
        for wanted in (key, f"*/{key.rpartition('/')[2]}"):
            if len(paths := self._by_key.get(wanted, [])) == 1:
                return paths
        found = _ID.fullmatch(name.strip())
        return self._by_key.get(f"#{found[1] or found[2]}", []) if found else []

    def count(self, name: str) -> int:
        """How many images a cell may mean: those of an id, else one."""
        return max(1, len(self.found(name))) if _ID.fullmatch(name.strip()) else 1

    def share(self, cells: Sequence[str]) -> float:
        """The share of the cells that aren't blank that means files."""
        filled = [cell for cell in cells if cell.strip()]
        return sum(1 for cell in filled if self.found(cell)) / max(1, len(filled))

    @cached_property
    def _by_key(self) -> dict[str, list[str]]:
        """Paths by their keys, images' also without suffixes; by `*/` and those of the files' own
        names; by `#` and the numbers in these, which may be ids.
        """
        found = defaultdict[str, list[str]](list)
        for parent, folders, names in os.walk(self.root):
            folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
            below = Path(parent).relative_to(self.root)
            for path in ((below / name).as_posix() for name in sorted(names) if name[0] != "."):
                stem, suffix = os.path.splitext(key := _key(path))
                for one in (key, stem) if suffix in IMAGE_SUFFIXES else (key,):
                    found[one].append(path)
                    found[f"*/{one.rpartition('/')[2]}"].append(path)
                for number in set(re.findall(r"\d{4,}", stem.rpartition("/")[2])):
                    found[f"#{number}"].append(path)
        return dict(found)


def _key(path: str) -> str:
    return unicodedata.normalize("NFC", path.replace("\\", "/")).casefold().removeprefix("./")


@dataclass(frozen=True, slots=True)
class Part:
    """A table, and the files below its folder."""

    sheet: Sheet
    files: FileIndex
    names_files: bool
    """Whether a header says that it names files, or values of a column are files."""
    folder: str = ""
    """Relative to that of all tables."""

    def below(self, name: str) -> str:
        """The path of a file relative to the folder of all tables."""
        return f"{self.folder}/{name}" if self.folder else name


def parts_of(path: Path) -> list[Part]:
    """The tables of a data set: a file, or in a folder those of its splits. Raises ImportRefused
    for files that can't be read.
    """
    if path.is_dir():
        return [_part(table, table.parent.name) for table in split_tables(path)]
    return [_part(path)]


def split_tables(folder: Path) -> list[Path]:
    """The tables of the splits of Hugging Face's imagefolder, such as `train/metadata.csv`; none
    where the folder is laid out otherwise.
    """
    splits = (entry for entry in sorted(folder.iterdir()) if entry.name.lower() in _SPLITS)
    tables = ([split / name for name in _METADATA if (split / name).is_file()] for split in splits)
    return [found[0] for found in tables if found]


def _part(path: Path, folder: str = "") -> Part:
    """A file's sheet that names most of the files beside it, or else most fields."""
    files = FileIndex(path.parent)
    ranked = []
    for sheet in open_sheets(path):
        rows = [cells for _, cells, problem in islice(sheet.rows(), _SAMPLE) if not problem]
        share = max(map(files.share, zip(*rows, strict=True)), default=0.0)
        ranked.append(((share, fields_named(sheet.header)), sheet))
    (share, _), sheet = max(ranked, key=lambda one: one[0])
    says_so = len(sheet.header) > 1 and "file_name" in {field_of(one)[0] for one in sheet.header}
    return Part(sheet, files, share > 0 or says_so, folder)


def table_among(paths: Sequence[Path]) -> Path | None:
    """The table of images among files of one folder: that with the canonical header, else that
    whose header or values name files; None where there is none. Raises ImportRefused for several.
    """
    parts = []
    for path in paths:
        if path.suffix.lower() in SUFFIXES:
            with suppress(ImportRefused):
                parts.append(_part(path))
    found = [part.sheet.path for part in parts if is_canonical(part.sheet.header)]
    found = found or [part.sheet.path for part in parts if part.names_files]
    if len(found) > 1:
        raise several_tables(found)
    return found[0] if found else None


def several_tables(paths: Sequence[Path]) -> ImportRefused:
    """Say that several files of a folder may list its images."""
    names = ", ".join(path.name for path in paths[:5])
    return ImportRefused(
        paths[0].parent.name,
        f"It holds several tables ({names}). Leave only the one that lists the images.",
    )
