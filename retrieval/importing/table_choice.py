"""Which of a folder's files is the table that lists its images."""

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
    """A table, and the folder that its files lie below, relative to that of all tables."""

    sheet: Sheet
    folder: str = ""


def parts_of(path: Path) -> list[Part]:
    """The tables of a data set: the file's sheet that names most files, or in a folder those of its
    splits. Raises ImportRefused for files that can't be read.
    """
    if path.is_dir():
        return [Part(_best_sheet(table), table.parent.name) for table in split_tables(path)]
    return [Part(_best_sheet(path))]


def split_tables(folder: Path) -> list[Path]:
    """The tables of the splits of Hugging Face's imagefolder, such as `train/metadata.csv`; none
    where the folder is laid out otherwise.
    """
    splits = (entry for entry in sorted(folder.iterdir()) if entry.name.lower() in _SPLITS)
    tables = ([split / name for name in _METADATA if (split / name).is_file()] for split in splits)
    return [found[0] for found in tables if found]


def _best_sheet(path: Path) -> Sheet:
    """The sheet of a file that names most of the files beside it."""
    files = FileIndex(path.parent)
    sheets = open_sheets(path)
    best = max(
        sheets, key=lambda one: (_share(one, files), fields_named(one.header), not one.hidden)
    )
    # A header that names a file, with its suffix, is a row like the others.
    has_file = any("." in header and files.found(header) for header in best.header)
    return best.without_header() if has_file else best


def _share(sheet: Sheet, files: FileIndex) -> float:
    """The largest share that a column's values have in names of files."""
    rows = [cells for _, cells in islice(sheet.rows(), _SAMPLE)]
    columns = ([cell for cell in cells if cell.strip()] for cells in zip(*rows, strict=True))
    return max(
        (sum(1 for cell in cells if files.found(cell)) / len(cells) for cells in columns if cells),
        default=0.0,
    )


def table_among(paths: Sequence[Path]) -> Path | None:
    """The table of images among files of one folder: of those with the canonical header, else of
    those whose header or values name files, the one that names most files that are there, by a
    header that says so if there is one.

    Returns None where there is none. Raises ImportRefused where several name as many.
    """
    scored: list[tuple[bool, bool, float, Path]] = []
    for path in paths:
        if path.suffix.lower() not in SUFFIXES:
            continue
        try:
            sheet = _best_sheet(path)
        except ImportRefused:
            continue
        canonical = is_canonical(sheet.header)
        share = _share(sheet, FileIndex(path.parent))
        named = any(field_of(header)[0] == "file_name" for header in sheet.header)
        if canonical or share or (named and len(sheet.header) > 1):
            scored.append((canonical, named and share > 0, share, path))
    if not scored:
        return None
    best = max(scored)[:-1]
    first = [path for *score, path in scored if tuple(score) == best]
    if len(first) > 1:
        raise several_tables(first)
    return first[0]


def several_tables(paths: Sequence[Path]) -> ImportRefused:
    """Say that several files of a folder may list its images."""
    names = ", ".join(path.name for path in paths[:5])
    return ImportRefused(
        paths[0].parent.name,
        f"It holds several tables ({names}). Leave only the one that lists the images.",
    )
