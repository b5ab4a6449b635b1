"""The lists in a large JSON object, read item by item without holding the file (ijson, yajl)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import ijson
import numpy as np

from core.files import open_regular
from retrieval.importing.records import ImportRefused

MAX_DEPTH: Final = 64
_CHUNK: Final = 256 * 1024
_BOM: Final = b"\xef\xbb\xbf"

OnBytes = Callable[[int], None]


def list_items(
    path: Path, name: str, on_bytes: OnBytes | None = None, *, check_depth: bool = True
) -> Iterator[Any]:
    """Yield the items of the list `name` of the file's object; nothing where there is no such list.

    The file is read to its end; `on_bytes` is called with the size of each part that is read.
    Raises ImportRefused if the file cannot be read, is not valid JSON (with the line), holds a
    number beyond 64 bits, or nests lists and objects more than MAX_DEPTH levels deep. Checking the
    depth takes a fifth of the time; it can be left out for a file that was read before.
    """
    yield from _parse(
        path, lambda file: ijson.items(file, f"{name}.item", **_OPTIONS), on_bytes, check_depth
    )


def value_kinds(path: Path) -> dict[str, str]:
    """Return the first event of ijson ("start_array", "null", "string" …) for each member of the
    file's object. Raises ImportRefused as `list_items`.
    """
    kinds: dict[str, str] = {}
    for prefix, event, _ in _parse(path, lambda file: ijson.parse(file, **_OPTIONS)):
        if prefix and "." not in prefix:
            kinds.setdefault(prefix, event)
    return kinds


# To follow the depth only quotes and brackets count; +1 for those that open, -1 for the others.
_NOT_A_MARK: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STRING: Final = re.compile(rb'"[^"]*"?')
_OPENS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_OPTIONS: Final[dict[str, Any]] = {"use_float": True, "buf_size": _CHUNK}


class _Blocks:
    """A file that reports how many bytes are read from it, and limits how deep they nest.

    ijson keeps the whole path of each open list and object: their memory grows with the square of
    the depth.
    """

    def __init__(
        self, path: Path, file: BinaryIO, on_bytes: OnBytes | None, check_depth: bool
    ) -> None:
        self._path = path
        self._file = file
        self._on_bytes = on_bytes
        self._check_depth = check_depth
        self._depth = 0
        self._in_string = False
        self._escape = b""

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if data and self._on_bytes:
            self._on_bytes(len(data))
        if self._check_depth and self._highest_depth(data) > MAX_DEPTH:
            raise ImportRefused(
                str(self._path),
                f"Lists and objects are nested more than {MAX_DEPTH} levels deep. "
                "Nothing was imported.",
            )
        return data

    def _highest_depth(self, data: bytes) -> int:
        """Return the greatest depth within the next block of the file."""
        if self._escape or b"\\" in data:
            data = (self._escape + data).replace(rb"\\", b"")
            self._escape = b"\\" if data.endswith(b"\\") else b""
            data = data.removesuffix(b"\\").replace(rb"\"", b"")
        marks = (b'"' * self._in_string + data).translate(None, _NOT_A_MARK)
        self._in_string = marks.count(b'"') % 2 == 1
        # Two quotes in a row leave what follows inside or outside a string, as it was.
        brackets = marks.replace(b'""', b"")
        if b'"' in brackets:
            brackets = _STRING.sub(b"", brackets)
        if not brackets:
            return self._depth
        opens = np.frombuffer(brackets.translate(_OPENS), np.int8)
        depths = self._depth + np.cumsum(opens)
        self._depth = int(depths[-1])
        return int(depths.max())


class _Lines:
    """A file that is read line by line, with a count of the lines."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._ended = True
        self.line = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.readline(size)
        if data:
            self.line += self._ended
            self._ended = data.endswith(b"\n")
        return data


def _parse(
    path: Path,
    parse: Callable[[Any], Iterator[Any]],
    on_bytes: OnBytes | None = None,
    check_depth: bool = True,
) -> Iterator[Any]:
    try:
        with _open(path) as file:
            yield from parse(_Blocks(path, file, on_bytes, check_depth))
    except ijson.JSONError as error:
        _refuse_json(path, error)
    except OSError as error:
        raise ImportRefused(str(path), f"The file cannot be read: {error.strerror}.") from error


def _open(path: Path) -> BinaryIO:
    file = open_regular(path)
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file


def _refuse_json(path: Path, error: Exception) -> NoReturn:
    """Refuse the file with the line at which it stops being JSON, found by reading it again."""
    with _open(path) as file:
        lines = _Lines(file)
        try:
            for _ in ijson.basic_parse(lines, **_OPTIONS):
                pass
        except ijson.JSONError:
            pass
    text = error.args[0]
    reason = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).strip()
    reason = reason.partition("\n")[0].partition(": ")[2].rstrip(".") or reason
    raise ImportRefused(
        str(path),
        f"The file is not valid JSON: line {max(lines.line, 1)}: {reason}. Nothing was imported.",
    ) from error
