"""Lines of a text file that strangers send: plain or gzip, in bounded memory."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Final

#: Decompressed bytes beyond which a file is read no further by default.
MAX_BYTES: Final = 1 << 31
#: Bytes of a line beyond which a file is read no further.
MAX_LINE: Final = 1 << 16
#: Blank lines beyond which a file is read no further.
MAX_BLANK_LINES: Final = 1000
#: How many times as large as the file what comes out of it may be. A run's ids and scores compress
#: less than twentyfold.
MAX_GROWTH: Final = 64
#: What may come out of a file however small it is.
GROWTH_FREE: Final = 1 << 24

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 16


class Unreadable(Exception):
    """Why a file is read no further; `line` is where, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


def chunks(file: IO[bytes], *, max_bytes: int = MAX_BYTES) -> Iterator[bytes]:
    """The bytes of a file, piece by piece. gzip is recognized by its first bytes, and may have
    several members. Unreadable: more than `max_bytes` decompressed bytes, more than GROWTH_FREE
    that are more than MAX_GROWTH for each byte read, or damaged gzip.
    """
    peeked = _PeekedFile(file)
    read = _reader(peeked)
    line, size = 1, 0
    while chunk := _chunk(read, line):
        size += len(chunk)
        most = min(max_bytes, max(GROWTH_FREE, MAX_GROWTH * peeked.taken))
        if size > most:
            message = f"the file holds more than {most} bytes of text, so it is read no further"
            raise Unreadable(line, message)
        yield chunk
        line += chunk.count(b"\n")


def text_lines(file: IO[bytes], *, max_bytes: int = MAX_BYTES) -> Iterator[tuple[int, str]]:
    """The lines of a file, as `lines_of`, with the limits of `chunks`."""
    return lines_of(chunks(file, max_bytes=max_bytes))


def lines_of(pieces: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """(line from 1, text with its end) of each line, without the byte order mark.

    Bytes that are not UTF-8 become replacement characters. At most a chunk and a line are held.
    Unreadable: more than MAX_BLANK_LINES blank lines, or a line of more than MAX_LINE bytes.
    """
    number, blank, rest = 0, 0, b""
    for chunk in pieces:
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            for line in whole.split(b"\n"):
                number += 1
                text = _text(line, number)
                if not text or text.isspace():
                    blank += 1
                    if blank > MAX_BLANK_LINES:
                        message = f"more than {MAX_BLANK_LINES} lines are blank"
                        raise Unreadable(number, message)
                yield number, text + "\n"
        _check_length(rest, number + 1)
    if rest:
        yield number + 1, _text(rest, number + 1)


def _check_length(line: bytes, number: int) -> None:
    if len(line) > MAX_LINE:
        raise Unreadable(number, f"the line is longer than {MAX_LINE} bytes")


def _text(line: bytes, number: int) -> str:
    _check_length(line, number)
    text = line.decode("utf-8", errors="replace")
    return text.removeprefix("\ufeff") if number == 1 else text


def _chunk(read: Callable[[int], bytes], line: int) -> bytes:
    try:
        return read(_CHUNK)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Unreadable(line, f"the gzip file is damaged or cut short: {error}") from error


def _reader(file: _PeekedFile) -> Callable[[int], bytes]:
    if file.first.startswith(_GZIP):
        return gzip.GzipFile(fileobj=file, mode="rb").read  # type: ignore[call-overload, no-any-return]
    return file.read


class _PeekedFile:
    """A file whose first bytes have been looked at, read from its beginning."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.first = file.read(_CHUNK)
        self._unread = self.first
        self.taken = len(self.first)

    def read(self, size: int) -> bytes:
        if self._unread:
            chunk, self._unread = self._unread[:size], self._unread[size:]
            return chunk
        chunk = self._file.read(size)
        self.taken += len(chunk)
        return chunk
