"""The lists in a large JSON object, read item by item without holding the file (ijson, yajl)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import ijson

from core.files import open_regular
from retrieval.importing.records import ImportRefused

_CHUNK: Final = 256 * 1024
_BOM: Final = b"\xef\xbb\xbf"

OnBytes = Callable[[int], None]


def list_items(path: Path, name: str, on_bytes: OnBytes | None = None) -> Iterator[Any]:
    """Yield the items of the list `name` of the file's object; nothing where there is no such list.

    The file is read to its end; `on_bytes` is called with the size of each part that is read.
    Raises ImportRefused, which names the line, if the file cannot be read, is not valid JSON, or
    holds a number beyond 64 bits.
    """
    yield from _parsed(path, lambda file: ijson.items(file, f"{name}.item", **_OPTIONS), on_bytes)


def value_kinds(path: Path) -> dict[str, str]:
    """Return the first event of ijson ("start_array", "null", "string" …) for each member of the
    file's object. Raises ImportRefused as `list_items`.
    """
    kinds: dict[str, str] = {}
    for prefix, event, _ in _parsed(path, lambda file: ijson.parse(file, **_OPTIONS)):
        if prefix and "." not in prefix:
            kinds.setdefault(prefix, event)
    return kinds


_OPTIONS: Final[dict[str, Any]] = {"use_float": True, "buf_size": _CHUNK}


class _Counted:
    """A file that reports how many bytes are read from it."""

    def __init__(self, file: BinaryIO, on_bytes: OnBytes | None) -> None:
        self._file = file
        self._on_bytes = on_bytes

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._on_bytes and data:
            self._on_bytes(len(data))
        return data


class _Lines:
    """A file that is read line by line, and counts them."""

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


def _parsed(
    path: Path, parse: Callable[[Any], Iterator[Any]], on_bytes: OnBytes | None = None
) -> Iterator[Any]:
    try:
        with _opened(path) as file:
            yield from parse(_Counted(file, on_bytes))
    except ijson.JSONError as error:
        _refuse_json(path, error)
    except OSError as error:
        raise ImportRefused(str(path), f"The file cannot be read: {error.strerror}.") from error


def _opened(path: Path) -> BinaryIO:
    file = open_regular(path)
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file


def _refuse_json(path: Path, error: Exception) -> NoReturn:
    """Refuse the file with the line at which it stops being JSON, found by reading it again."""
    with _opened(path) as file:
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
