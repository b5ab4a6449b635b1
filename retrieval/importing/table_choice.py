"""Which of a folder's files is the table that lists its images, and which of its sheets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from retrieval.importing.file_index import FileIndex
from retrieval.importing.headers import field_of, fields_named, is_canonical
from retrieval.importing.records import ImportRefused
from retrieval.importing.sheets import SUFFIXES, Sheet, open_sheets

_SAMPLE: Final = 20
#: Folders of the splits of Hugging Face's imagefolder, and the tables in them.
_SPLITS: Final = (
    "train", "training", "test", "testing", "val", "valid", "validation", "dev", "eval",
    "evaluation",
)  # fmt: skip
_METADATA: Final = ("metadata.csv", "metadata.jsonl", "metadata.parquet")


@dataclass(frozen=True, slots=True)
class Part:
    """A table, and the files below its folder."""

    sheet: Sheet
    files: FileIndex
    names_files: bool
    """Whether a column has values that are files."""
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
    return Part(sheet, files, share > 0, folder)


def table_among(paths: Sequence[Path]) -> Path | None:
    """The table of images among files of one folder: that with the canonical header, else that
    whose header or values name files; None where there is none. Raises ImportRefused for several.
    """
    canonical, others = [], []
    for path in paths:
        try:
            part = _part(path) if path.suffix.lower() in SUFFIXES else None
        except ImportRefused:
            continue
        header = part.sheet.header if part else ()
        if is_canonical(header):
            canonical.append(path)
        elif part and (
            part.names_files
            or (len(header) > 1 and any(field_of(one)[0] == "file_name" for one in header))
        ):
            others.append(path)
    found = canonical or others
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
