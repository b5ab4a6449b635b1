"""A large JSON object, read section by section without holding it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import ijson
from ijson.common import ObjectBuilder

from retrieval.importing.records import ImportRefused

_BOM = b"\xef\xbb\xbf"
_SMALL = 64 * 1024 * 1024
_OPEN, _CLOSE = ("start_map", "start_array"), ("end_map", "end_array")


def sections(path: Path) -> Iterator[tuple[str, int | None, Any]]:
    """Yield what a JSON file's top-level object holds, to its last byte.

    A list gives (name, None, []) when it opens, then (name, position from 1, item) for each item;
    anything else gives (name, None, value). Raises ImportRefused if the file is not valid JSON or
    no object.
    """
    depth = base = position = 0
    name = ""
    builder: ObjectBuilder | None = None
    try:
        with _opened(path) as file:
            for event, value in ijson.basic_parse(file, use_float=True):
                if builder is None and depth == 0:
                    if event != "start_map":
                        raise ImportRefused(str(path), "The file holds no JSON object.")
                    depth = 1
                elif builder is None and (depth, event) == (1, "map_key"):
                    name = value
                elif builder is None and (depth, event) == (1, "start_array"):
                    depth, position = 2, 0
                    yield name, None, []
                elif builder is None and (depth, event) in ((1, "end_map"), (2, "end_array")):
                    depth -= 1
                else:
                    if builder is None:
                        builder, base = ObjectBuilder(), depth
                    builder.event(event, value)
                    depth += (event in _OPEN) - (event in _CLOSE)
                    if depth == base:
                        position += 1
                        yield name, position if base == 2 else None, builder.value
                        builder = None
    except ijson.JSONError as error:
        raise ImportRefused(str(path), _why_malformed(path, error)) from error
    except UnicodeDecodeError as error:
        raise ImportRefused(str(path), f"The file is not UTF-8: {error}.") from error


def items(path: Path, name: str) -> Iterator[Any]:
    """Yield the items of one top-level list of a file that `sections` has found valid."""
    with _opened(path) as file:
        yield from ijson.items(file, f"{name}.item", use_float=True)


def _opened(path: Path) -> BinaryIO:
    try:
        file = path.open("rb")
    except OSError as error:
        raise ImportRefused(str(path), f"The file cannot be read: {error.strerror}.") from error
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file


def _why_malformed(path: Path, error: Exception) -> str:
    """Name the line where a small file is broken; of a large one what the stream's parser says."""
    if path.stat().st_size <= _SMALL:
        try:
            json.loads(path.read_bytes())
        except json.JSONDecodeError as found:
            return (
                f"The file is not valid JSON: line {found.lineno}, column {found.colno}: "
                f"{found.msg}. Nothing was imported."
            )
        except ValueError:
            pass
    said = error.args[0] if error.args else ""
    if isinstance(said, bytes):
        said = said.decode("utf-8", "replace")
    first = str(said).strip().partition("\n")[0].rstrip(".")
    return f"The file is not valid JSON: {first or 'it cannot be read'}. Nothing was imported."
