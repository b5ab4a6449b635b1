"""The lists in a large JSON object, read item by item without holding the file (ijson, yajl).

The file is gone through once to find where its lists begin and end, by its brackets and quotes
alone; then each list that is wanted is read by itself. Reading the whole file for each took twice
as long (`bench.loading`).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn

import ijson
import numpy as np

from core.files import open_regular
from retrieval.importing.records import ImportRefused

MAX_DEPTH: Final = 64
MOST_LISTS: Final = 1000
_CHUNK: Final = 256 * 1024
_BOM: Final = b"\xef\xbb\xbf"
_OPTIONS: Final[dict[str, Any]] = {"use_float": True, "buf_size": _CHUNK}

OnBytes = Callable[[int], None]


class JsonLists:
    """The members of a file's object, and the items of those that are lists.

    `on_bytes` is called with the size of each part that is gone through. Raises ImportRefused if
    the file cannot be read, is not valid JSON outside its lists (with the line), has more than
    MOST_LISTS of them, or nests lists and objects more than MAX_DEPTH levels deep.
    """

    def __init__(self, path: Path, on_bytes: OnBytes | None = None) -> None:
        self._path = path
        self.kinds: dict[str, str] = {}
        """The first event of ijson ("start_array", "null", "string" …) of each member."""
        self._spans: dict[str, list[range]] = defaultdict(list)
        with self._refusing(), _open(path) as file:
            begin = file.tell()
            spans = self._find(file, on_bytes)
            starts, stops = [begin, *(s.stop - 1 for s in spans)], [s.start + 1 for s in spans]
            without = map(range, starts, [*stops, file.tell()])
            self._read_members(_Parts(file, without), iter(spans))

    def items(self, name: str, on_bytes: OnBytes | None = None) -> Iterator[Any]:
        """Yield the items of the lists of this name; nothing where there is none.

        Raises ImportRefused if a list is not valid JSON or holds a number beyond 64 bits.
        """
        for span in self._spans.get(name, ()):
            with self._refusing(), open_regular(self._path) as file:
                yield from ijson.items(_Parts(file, [span], on_bytes), "item", **_OPTIONS)

    def _read_members(self, file: _Parts, spans: Iterator[range]) -> None:
        """Read an object whose lists are empty; they are at these places of the whole file."""
        depth, name = 0, ""
        for event, value in ijson.basic_parse(file, **_OPTIONS):
            if event in ("end_map", "end_array"):
                depth -= 1
                continue
            if event == "map_key" and depth == 1:
                name = value
            elif depth == 1:
                self.kinds.setdefault(name, event)
                if event == "start_array":
                    # One that isn't closed has no place; the end of the file will be refused.
                    self._spans[name].append(next(spans, range(0)))
            depth += event in ("start_map", "start_array")

    @contextmanager
    def _refusing(self) -> Iterator[None]:
        try:
            yield
        except ijson.JSONError as error:
            self._refuse_json(error)
        except OSError as error:
            self._refuse(f"The file cannot be read: {error.strerror}.", error)

    def _refuse(self, reason: str, error: Exception | None = None) -> NoReturn:
        raise ImportRefused(str(self._path), f"{reason} Nothing was imported.") from error

    def _refuse_json(self, error: Exception) -> NoReturn:
        """Refuse the file with the line at which it stops being JSON, found by reading it again."""
        with _open(self._path) as file:
            lines = _Lines(file)
            try:
                for _ in ijson.basic_parse(lines, **_OPTIONS):
                    pass
            except ijson.JSONError as whole:
                error = whole
        text = error.args[0]
        reason = (text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)).strip()
        reason = reason.partition("\n")[0].partition(": ")[2].rstrip(".") or reason
        self._refuse(f"The file is not valid JSON: line {max(lines.line, 1)}: {reason}.", error)

    def _find(self, file: BinaryIO, on_bytes: OnBytes | None) -> list[range]:
        """Return where the lists of the file's object are, with their brackets."""
        brackets = _Brackets()
        while data := file.read(_CHUNK):
            if on_bytes:
                on_bytes(len(data))
            start = file.tell() - len(data)
            if brackets.read(data, start) > MAX_DEPTH:
                self._refuse(f"Lists and objects are nested more than {MAX_DEPTH} levels deep.")
            if len(brackets.spans) > MOST_LISTS:
                self._refuse(f"The file's object has more than {MOST_LISTS} lists.")
        return brackets.spans


# Only quotes and brackets count; +1 for brackets that open, -1 for the others.
_NOT_A_MARK: Final = bytes(set(range(256)) - set(b'"[]{}'))
_STRING: Final = re.compile(rb'"[^"]*"?')
_OPENS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_MARKS: Final = re.compile(rb'"[^"]*"?|[][{}]')


class _Brackets:
    """The brackets of an object, block by block of its file: how deep they nest, and where the
    lists just below the object are.
    """

    def __init__(self) -> None:
        self.spans: list[range] = []
        self._depth = 0
        self._in_string = False
        self._escape = b""
        self._opened: int | None = None

    def read(self, data: bytes, start: int) -> int:
        """Return the greatest depth within the next block, which starts here in the file."""
        data, start = self._escape + data, start - len(self._escape)
        if b"\\" in data:
            data = data.replace(rb"\\", b"  ")
            self._escape = b"\\" if data.endswith(b"\\") else b""
            data = data.removesuffix(b"\\").replace(rb"\"", b"  ")
        else:
            self._escape = b""
        before, in_string = self._depth, self._in_string
        marks = (b'"' * in_string + data).translate(None, _NOT_A_MARK)
        self._in_string = marks.count(b'"') % 2 == 1
        # Two quotes in a row leave what follows inside or outside a string, as it was.
        brackets = marks.replace(b'""', b"")
        if b'"' in brackets:
            brackets = _STRING.sub(b"", brackets)
        if not brackets:
            return before
        depths = before + np.cumsum(np.frombuffer(brackets.translate(_OPENS), np.int8))
        self._depth = int(depths[-1])
        if min(before, depths.min()) <= 1:
            self._note_lists(b'"' * in_string + data, start - in_string, before)
        return int(depths.max())

    def _note_lists(self, data: bytes, start: int, depth: int) -> None:
        """Note the lists that begin or end within a block."""
        for mark in _MARKS.finditer(data):
            if mark[0] in (b"[", b"{"):
                depth += 1
                if depth == 2:
                    self._opened = start + mark.start() if mark[0] == b"[" else None
            elif mark[0] in (b"]", b"}"):
                depth -= 1
                if depth == 1 and mark[0] == b"]" and self._opened is not None:
                    self.spans.append(range(self._opened, start + mark.end()))


class _Parts:
    """Some parts of a file, one after the other."""

    def __init__(
        self, file: BinaryIO, parts: Iterable[range], on_bytes: OnBytes | None = None
    ) -> None:
        self._file, self._parts, self._on_bytes = file, iter(parts), on_bytes
        self._left = 0

    def read(self, size: int) -> bytes:
        while not self._left:
            if (part := next(self._parts, None)) is None:
                return b""
            self._file.seek(part.start)
            self._left = len(part)
        data = self._file.read(min(size, self._left))
        self._left -= len(data)
        if data and self._on_bytes:
            self._on_bytes(len(data))
        return data


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


def _open(path: Path) -> BinaryIO:
    file = open_regular(path)
    if file.read(len(_BOM)) != _BOM:
        file.seek(0)
    return file
