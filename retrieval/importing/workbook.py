"""A program that writes the rows of a spreadsheet, a Parquet file or JSON lines as lines of JSON.

It runs as a process of its own with a bound on memory: a small file can claim billions of cells,
and the libraries that read it, which are no Python, end the process where memory doesn't suffice.

    python workbook.py PATH FOLDER     prints the sheets' names; files 0, 1 … have their rows as
                                       [row number, [cells]]
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final

_MOST_MEMORY: Final = 4 << 30
Table = tuple[str, Iterable[tuple[int, list[Any]]]]
"""A name, which only sheets have, and rows with their numbers."""


def _text(value: Any) -> str:
    """A cell's value as people would write it: whole numbers without a point, dates as ISO's."""
    if value is None or isinstance(value, str):
        return value or ""
    if isinstance(value, float):
        if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        # Three decimals alone could be read as thousands.
        return f"{value!r}0" if repr(value)[-4:-3] == "." else repr(value)
    if isinstance(value, datetime):
        return value.isoformat(" ", "seconds").removesuffix(" 00:00:00")
    return json.dumps(value, ensure_ascii=False, default=str).strip('"')


def _spreadsheet(path: str) -> Iterator[Table]:
    from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    workbook = CalamineWorkbook.from_path(path)
    for about in workbook.sheets_metadata:
        if (about.typ, about.visible) == (SheetTypeEnum.WorkSheet, SheetVisibleEnum.Visible):
            rows = workbook.get_sheet_by_name(about.name).iter_rows()
            yield about.name, enumerate(rows, start=1)


def _parquet(path: str) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(1)
    file = pq.ParquetFile(path)
    # The images themselves may lie in it, as bytes or as structs of bytes and a path.
    names = [one.name for one in file.schema_arrow if "binary" not in str(one.type)]
    batches = file.iter_batches(batch_size=500, columns=names)
    rows = (list(row.values()) for batch in batches for row in batch.to_pylist())
    yield "", enumerate(chain([names], rows))


def _json_lines(path: str) -> Iterator[Table]:
    """The table's columns are all keys that occur."""

    def objects() -> Iterator[tuple[int, dict[str, Any]]]:
        with open(path, "rb") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    read = json.loads(line)
                    if not isinstance(read, dict):
                        raise ValueError(f"line {number} isn't a JSON object")
                    yield number, read

    keys = list(dict.fromkeys(key for _, one in objects() for key in one))
    rows = ((number, [one.get(key) for key in keys]) for number, one in objects())
    yield "", chain([(0, keys)], rows)


def main(path: str, folder: str) -> None:
    """Write the rows that aren't blank."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    readers = {".parquet": _parquet, ".jsonl": _json_lines}
    for at, (name, rows) in enumerate(readers.get(Path(path).suffix.lower(), _spreadsheet)(path)):
        print(json.dumps(name))
        with open(f"{folder}/{at}", "w", encoding="utf-8") as file:
            for number, cells in rows:
                texts = [_text(cell) for cell in cells]
                if any(map(str.strip, texts)):
                    print(json.dumps([number, texts]), file=file)


if __name__ == "__main__":
    main(*sys.argv[1:])
