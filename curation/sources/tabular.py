"""Reading files of rows into tables of texts, counting what can't be read."""

from __future__ import annotations

import codecs
import csv
import gzip
import shutil
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import duckdb
from duckdb import DuckDBPyConnection as Connection

from core.unpacking import Bounds, UnpackRefused, unpack_zip
from curation.tables import CurationRefused, refuse

#: Of an archive, which may hold photos beside its tables.
_MOST_FILES: Final = 1_000_000
#: Bytes of the disk that unpacking leaves free.
_LEAST_FREE: Final = 1 << 29
COMMAS: Final[dict[str, Any]] = {"delimiter": ",", "quote": '"'}
Names = Mapping[str, Sequence[str]]
"""The names of each column of a table in sources, the preferred first."""


def text(value: str) -> str:
    """A text as an SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def quoted(name: str) -> str:
    """A column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def aliases(columns: str) -> Names:
    """The names of columns, from `column:one|another` or `column`."""
    pairs = (entry.partition(":") for entry in columns.split())
    return {column: (names or column).split("|") for column, _, names in pairs}


@contextmanager
def whole(connection: Connection, path: Path) -> Iterator[Path]:
    """Read a source whole or not at all; yields a folder to unpack to, beside DuckDB's spill."""
    if not path.exists():
        raise CurationRefused(path.name, "is not there")
    row = connection.execute("SELECT current_setting('temp_directory')").fetchone()
    parent = Path(row[0]) if row and Path(row[0]).is_absolute() else path.parent
    parent.mkdir(parents=True, exist_ok=True)
    connection.execute("SET preserve_insertion_order = true")  # the order of files counts
    connection.begin()
    try:
        with TemporaryDirectory(dir=parent, prefix="unpacked-") as name:
            yield Path(name)
        connection.commit()
    except BaseException as error:
        connection.rollback()
        if isinstance(error, (duckdb.InvalidInputException, duckdb.IOException)):
            raise CurationRefused(path.name, str(error).splitlines()[0]) from error
        raise
    finally:
        connection.execute("SET preserve_insertion_order = false")


def find(path: Path, *names: str) -> Path | None:
    """The first of these files in a folder, by name or with `.gz`, or None."""
    candidates = [candidate for name in names for candidate in (path / name, path / f"{name}.gz")]
    return next((candidate for candidate in candidates if candidate.is_file()), None)


def unpack(path: Path, into: Path, *endings: str) -> Path:
    """The folder of an archive's files: the path itself, or `into` with a zip's members that have
    these endings.
    """
    if path.is_dir():
        return path

    def target_of(name: str) -> Path | None:
        wanted = name.endswith(endings) and len(Path(name).parts) <= 2
        return into / Path(name).name if wanted else None

    if not zipfile.is_zipfile(path):
        raise CurationRefused(path.name, "neither a folder nor a zip archive")
    try:
        unpack_zip(path, target_of, Bounds(most_files=_MOST_FILES, least_free=_LEAST_FREE))
    except UnpackRefused as error:
        raise CurationRefused(path.name, f"isn't unpacked. {error}") from error
    return into


def in_utf8(path: Path, into: Path, encoding: str) -> Path:
    """The file, or, if it has another encoding, a copy in UTF-8 with the same name."""
    try:
        name = codecs.lookup(encoding).name
    except LookupError as error:
        raise CurationRefused(path.name, f"has an unknown encoding, {encoding}") from error
    if name in ("utf-8", "ascii"):
        return path
    copy = into / "utf-8" / path.name
    copy.parent.mkdir(exist_ok=True)
    opened = gzip.open if path.suffix == ".gz" else open
    with (
        opened(path, "rt", encoding=name, errors="replace", newline="") as source,
        opened(copy, "wt", encoding="utf-8", newline="") as target,
    ):
        shutil.copyfileobj(source, target, 1 << 20)
    return copy


def _first_row(path: Path, delimiter: str, quote: str) -> list[str]:
    reader = gzip.open if path.suffix == ".gz" else open
    try:
        with reader(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as lines:
            line = lines.readline(1 << 24).rstrip("\r\n")
    except (OSError, EOFError) as error:
        raise CurationRefused(path.name, f"can't be read: {error}") from error
    if not quote:
        return line.split(delimiter)
    return next(csv.reader([line], delimiter=delimiter, quotechar=quote), [])


def stage_text(
    connection: Connection, table: str, path: Path, wanted: Names, *, required: Sequence[str] = (),
    delimiter: str = "\t", quote: str = "", skip: int = 1,
    columns: Sequence[str] = (), defaults: Mapping[str, str] = {},
    missing: Sequence[str] = ("\\N", ""),
) -> None:  # fmt: skip
    """Read a text file, gzipped or not, into a table whose `rowid` has the file's order.

    `columns` are in the file's order, by default those of its first line. Rows of another number
    of columns, or in another encoding, are counted as refused.
    """
    first = _first_row(path, delimiter, quote)
    names = list(columns) or [name.strip() for name in first]
    unique = [f"{index} {name}" for index, name in enumerate([*names, *first[len(names) :]])]
    present = {
        name.lower(): quoted(column)
        for name, column in reversed([*zip(names, unique, strict=False)])
    }
    for name, value in defaults.items():
        present[name.lower()] = f"coalesce({present.get(name.lower(), 'NULL')}, {text(value)})"
    declared = ", ".join(f"{text(column)}: 'VARCHAR'" for column in unique)
    source = (
        f"read_csv({text(str(path))}, auto_detect = false, columns = {{{declared}}}, "
        f"header = false, skip = {skip:d}, delim = {text(delimiter)}, quote = {text(quote)}, "
        f"escape = {text(quote)}, nullstr = [{', '.join(map(text, missing))}], "
        "store_rejects = true, max_line_size = 16000000)"
    )
    _stage(connection, table, path.name, source, present, wanted, required)
    # A line is reported by its number, since it may hold people's names.
    connection.execute(
        "INSERT INTO refused SELECT ?, reason, count(*), 'line ' || min(line) FROM (SELECT line, "
        "'line refused: ' || lower(min(error_type::VARCHAR)) AS reason FROM reject_errors "
        "GROUP BY line) GROUP BY reason ORDER BY reason",
        [path.name],
    )
    connection.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")


def stage_parquet(
    connection: Connection, table: str, path: Path, wanted: Names, required: Sequence[str]
) -> None:
    """Read a Parquet file, or a folder of parts in the order of their names."""
    # GBIF's parts are called 000000 and so on, without an ending.
    parts = [path] if path.is_file() else [
        part for part in sorted(path.rglob("*")) if part.suffix == ".parquet" or part.name.isdigit()
    ]  # fmt: skip
    if not (parts := [part for part in parts if part.is_file()]):
        raise CurationRefused(path.name, "holds no Parquet files")
    source = f"read_parquet([{', '.join(text(str(part)) for part in parts)}], union_by_name = true)"
    present = {
        name.lower(): f"array_to_string({quoted(name)}, '|')"
        if kind == "VARCHAR[]"
        else quoted(name)
        for name, kind, *_ in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()
    }
    _stage(connection, table, path.name, source, present, wanted, required)


def _stage(
    connection: Connection, table: str, shown: str, source: str, present: Mapping[str, str],
    wanted: Names, required: Sequence[str],
) -> None:  # fmt: skip
    picked, missing = [], []
    for column, names in wanted.items():
        columns = [present[name.lower()] for name in names if name.lower() in present]
        if not columns and column in required:
            raise CurationRefused(shown, f"has no column {' or '.join(names)}")
        if not columns:
            missing.append(names[0])
        values = ", ".join(f"nullif(trim({value}::VARCHAR), '')" for value in [*columns, "NULL"])
        picked.append(f"coalesce({values}) AS {quoted(column)}")
    connection.execute(
        f"CREATE OR REPLACE TABLE {table} AS SELECT {', '.join(picked)} FROM {source}"
    )
    if missing:
        refuse(
            connection, file=shown, reason="columns that are not there", rows=0,
            example=", ".join(missing),
        )  # fmt: skip
