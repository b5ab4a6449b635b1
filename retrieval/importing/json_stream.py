"""A large JSON object, read section by section without holding it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, Final, TypeVar

import ijson
from ijson.common import ObjectBuilder

from retrieval.importing.records import ImportRefused

_BOM = b"\xef\xbb\xbf"
_SMALL = 64 * 1024 * 1024
# Far beyond what any data set nests; the parser's cost grows with the square of it.
MAX_DEPTH: Final = 100
# The parser in C stops at integers beyond 64 bits, which JSON allows; Python's is 20 times slower.
_EXACT: Final = ijson.get_backend("python")
T = TypeVar("T")
_OPEN, _CLOSE = ("start_map", "start_array"), ("end_map", "end_array")


def sections(path: Path) -> Iterator[tuple[str, int | None, Any]]:
    """Yield what a JSON file's top-level object holds, to its last byte.

    A list gives (name, None, []) when it opens, then (name, position from 1, item) for each item;
    anything else gives (name, None, value). Raises ImportRefused if the file is not valid JSON, no
    object, nested deeper than MAX_DEPTH, or holds an integer of more digits than Python reads.
    """
    try:
        yield from _exact_if_needed(lambda parser: _sections(path, parser))
    except ijson.JSONError as error:
        raise ImportRefused(str(path), _why_malformed(path, error)) from error
    except UnicodeDecodeError as error:
        raise ImportRefused(str(path), f"The file is not UTF-8: {error}.") from error


def items(path: Path, name: str) -> Iterator[Any]:
    """Yield the items of one top-level list of a file that `sections` has found valid."""
    yield from _exact_if_needed(lambda parser: _items(path, name, parser))


def _exact_if_needed(read: Callable[[ModuleType], Iterator[T]]) -> Iterator[T]:
    """Yield what the fast parser gives and, where an integer is too large, Python's the rest."""
    done = 0
    try:
        for found in read(ijson):
            yield found
            done += 1
    except ijson.JSONError as error:
        if "integer overflow" not in _first_line(error):
            raise
        yield from islice(read(_EXACT), done, None)


def _sections(path: Path, parser: ModuleType) -> Iterator[tuple[str, int | None, Any]]:
    depth = base = position = 0
    name = ""
    builder: ObjectBuilder | None = None
    with _opened(path) as file:
        for event, value in parser.basic_parse(file, use_float=True):
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
                if depth > MAX_DEPTH:
                    raise ImportRefused(
                        str(path),
                        f"The file is nested deeper than {MAX_DEPTH} levels. Nothing was imported.",
                    )
                if depth == base:
                    position += 1
                    yield name, position if base == 2 else None, builder.value
                    builder = None


def _items(path: Path, name: str, parser: ModuleType) -> Iterator[Any]:
    with _opened(path) as file:
        yield from parser.items(file, f"{name}.item", use_float=True)


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
        except (ValueError, RecursionError):
            pass
    said = _first_line(error)[:200] or "it cannot be read"
    return f"The file is not valid JSON: {said}. Nothing was imported."


def _first_line(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    if isinstance(said, bytes):
        said = said.decode("utf-8", "replace")
    return str(said).strip().partition("\n")[0].rstrip(".")
