"""A program that writes the rows of a spreadsheet or a Parquet file as lines of JSON.

It runs as a process of its own with a bound on memory: a small file can claim billions of cells,
and the libraries that read it, which are no Python, end the process where memory doesn't suffice.

    python workbook.py PATH     {"sheet": name, "hidden": false}, then [row number, [cells]] …
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, Final

_MOST_MEMORY: Final = 4 << 30
_BATCH: Final = 500
Row = tuple[int, Sequence[Any]]


def _text(value: Any) -> str:
    """A cell's value as people would write it: whole numbers without a point, dates as ISO's."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer() and abs(value) < 1e15:
            return str(int(value))
        case float():
            # Three decimals alone could be read as thousands.
            text = repr(value)
            return f"{text}0" if text[-4:-3] == "." else text
        case datetime():
            whole_day = not (value.hour or value.minute or value.second)
            return value.date().isoformat() if whole_day else value.isoformat(" ", "seconds")
        case date():
            return value.isoformat()
        case dict() | list():
            return json.dumps(value, ensure_ascii=False, default=str)
    return str(value)


def _spreadsheet(path: str) -> Iterator[dict[str, Any] | Row]:
    from python_calamine import CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

    workbook = CalamineWorkbook.from_path(path)
    for about in workbook.sheets_metadata:
        if about.typ is SheetTypeEnum.WorkSheet:
            yield {"sheet": about.name, "hidden": about.visible is not SheetVisibleEnum.Visible}
            sheet = workbook.get_sheet_by_name(about.name)
            yield from enumerate(sheet.iter_rows(), start=1)


def _parquet(path: str) -> Iterator[dict[str, Any] | Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(path)
    # The images themselves may lie in it, as bytes or as structs of bytes and a path.
    names = [one.name for one in file.schema_arrow if "binary" not in str(one.type)]
    yield {"sheet": "", "hidden": False}
    yield 0, names
    number = 0
    pa.set_cpu_count(1)
    for batch in file.iter_batches(batch_size=_BATCH, columns=names):
        for row in batch.to_pylist():
            number += 1
            yield number, [row[name] for name in names]


def main(path: str) -> None:
    """Write the rows that aren't blank."""
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
    read = _parquet if path.lower().endswith(".parquet") else _spreadsheet
    for one in read(path):
        if isinstance(one, dict):
            print(json.dumps(one))
        else:
            number, cells = one
            texts = [_text(cell) for cell in cells]
            if any(map(str.strip, texts)):
                print(json.dumps([number, texts]))


if __name__ == "__main__":
    main(sys.argv[1])
