"""The text of a large JSON file, as much of it at a time as is needed."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Final, NoReturn, Self

from core.files import open_regular
from retrieval.importing.records import ImportRefused

WINDOW: Final = 512 * 1024
"""Bytes that are read at once, more where one value is longer."""
LONGEST_VALUE: Final = 256 * 1024 * 1024
"""Letters of the longest value that is read outside the items of a list, and of one item."""

_BOM: Final = b"\xef\xbb\xbf"
_BLANKS: Final = re.compile(r"[ \t\n\r]*")


class Text:
    """The text from a place in a file on; what was taken from it is forgotten as it moves on.

    `text[at:]` is what was read and not taken yet; `base` letters went before `text`; `ended` says
    that the file's end is in it. Raises OSError when the file cannot be opened, and ImportRefused
    where it is no UTF-8.
    """

    def __init__(self, path: Path, offset: int = 0) -> None:
        self._path = path
        self._file = open_regular(path)
        if offset == 0 and self._file.read(len(_BOM)) == _BOM:
            offset = len(_BOM)
        self._file.seek(offset)
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._bytes_before = self._bytes_read = offset
        self._lines_before = self._letters_before = 0
        self.text = ""
        self.at = self.base = 0
        self.ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._file.close()

    @property
    def place(self) -> int:
        """How many letters lie before `at`."""
        return self.base + self.at

    @property
    def offset(self) -> int:
        """How many bytes of the file lie before `at`."""
        return self._bytes_before + _size(self.text, self.at)

    def more(self) -> None:
        """Read on, and forget what was taken."""
        rest = len(self.text) - self.at
        if rest > LONGEST_VALUE:
            raise ImportRefused(
                str(self._path),
                f"The file holds a value of more than {LONGEST_VALUE:,} letters. "
                "Nothing was imported.",
            )
        self._bytes_before += _size(self.text, self.at)
        lines = self.text.count("\n", 0, self.at)
        self._lines_before += lines
        last = self.text.rfind("\n", 0, self.at)
        self._letters_before = self.at - 1 - last if lines else self._letters_before + self.at
        self.base += self.at
        # As much again where a value is longer than a window: so its length counts but once.
        data = self._file.read(max(WINDOW, rest))
        try:
            decoded = self._decoder.decode(data, final=not data)
        except UnicodeDecodeError as error:
            broken = self._bytes_read + error.start - len(self._decoder.getstate()[0])
            raise ImportRefused(
                str(self._path),
                f"The file is not valid JSON: byte {broken + 1:,} is not UTF-8. "
                "Nothing was imported.",
            ) from error
        self._bytes_read += len(data)
        self.text = self.text[self.at :] + decoded
        self.at = 0
        self.ended = not data

    def peek(self) -> str:
        """Pass blanks and return the letter that comes then, "" at the file's end."""
        while True:
            found = _BLANKS.match(self.text, self.at)
            self.at = found.end() if found else self.at
            if self.at < len(self.text) or self.ended:
                return self.text[self.at : self.at + 1]
            self.more()

    def follows(self, end: int) -> str:
        """Return the first letter after `end` that is no blank, "" where none was read yet."""
        found = _BLANKS.match(self.text, end)
        after = found.end() if found else end
        return self.text[after : after + 1]

    def malformed(self, why: str, at: int | None = None) -> NoReturn:
        """Refuse the file, with the line and column of a place in the text, by default `at`."""
        at = self.at if at is None else at
        lines = self.text.count("\n", 0, at)
        before = at - 1 - self.text.rfind("\n", 0, at) if lines else self._letters_before + at
        raise ImportRefused(
            str(self._path),
            f"The file is not valid JSON: line {self._lines_before + lines + 1}, column "
            f"{before + 1}: {why}. Nothing was imported.",
        )


def _size(text: str, end: int) -> int:
    """The bytes of a text's first letters."""
    return end if text.isascii() else len(text[:end].encode())
