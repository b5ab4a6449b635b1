"""A large JSON object, read section by section without holding it.

Items of a list are decoded by the run, in C; where that fails, Python's json reads value by value,
and has the last word about what is valid and where the file is broken.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from retrieval.importing.json_text import Text
from retrieval.importing.records import ImportRefused

# Far beyond what any data set nests.
MAX_DEPTH: Final = 100
# Levels outside an item of a list: the file's object and the list.
_OUTSIDE: Final = 2
# Items that are read one by one and handed on together.
_ONE_BY_ONE: Final = 1000
# What seems to end, or to be wrong, this close to a window's end may only be cut short.
_MARGIN: Final = 64

Block = tuple[str, int | None, Any]
Told = Callable[[int, int], None]


class JsonFile:
    """A file with one JSON object, which is read once whole, and then again list by list.

    Raises ImportRefused, also while it is read, if the file cannot be read, is not valid JSON, is
    no object, is nested deeper than MAX_DEPTH, holds a single value longer than
    `json_text.LONGEST_VALUE`, or an integer of more digits than Python reads.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lists: dict[str, list[int]] = {}
        self._state = self._present_state()

    def blocks(self, told: Told | None = None) -> Iterator[Block]:
        """Yield what the top-level object holds, to the file's last byte.

        A list gives (name, None, []) when it opens, then (name, position of the first from 1,
        items) for each run of its items; anything else gives (name, None, value). `told(done,
        size)` hears of the bytes.
        """
        size = self._state[0]
        if told:
            told(0, size)
        with self._text(0) as text:
            reader = _Reader(self._path, text)
            reader.open_object()
            while (name := reader.next_name()) is not None:
                if not reader.opens_list():
                    yield name, None, reader.value(outside=1)
                    continue
                self._lists.setdefault(name, []).append(text.offset)
                yield name, None, []
                position = 1
                for items in reader.items():
                    yield name, position, items
                    position += len(items)
                    if told:
                        told(text.offset, size)
            reader.end()
        if told:
            told(size, size)

    def list_blocks(self, name: str) -> Iterator[list[Any]]:
        """Yield the runs of items of a top-level list again, after `blocks` went to the end."""
        for offset in self._lists.get(name, ()):
            if self._present_state() != self._state:
                self._refuse("The file has changed while it was read. Import it again.")
            with self._text(offset) as text:
                yield from _Reader(self._path, text).items()

    def _present_state(self) -> tuple[int, int, int]:
        try:
            found = os.stat(self._path)
        except OSError as error:
            self._refuse(f"The file cannot be read: {error.strerror}.", error)
        return found.st_size, found.st_mtime_ns, found.st_ino

    def _text(self, offset: int) -> Text:
        try:
            return Text(self._path, offset)
        except OSError as error:
            self._refuse(f"The file cannot be read: {error.strerror}.", error)

    def _refuse(self, reason: str, cause: Exception | None = None) -> NoReturn:
        raise ImportRefused(str(self._path), reason) from cause


class _Reader:
    """Takes values from a text, one after the other."""

    def __init__(self, path: Path, text: Text) -> None:
        self._path = path
        self._text = text
        self._first = True
        # How an item's end and the next one's begin look, such as "}, {", as last seen.
        self._between = ""
        # Up to this place a run could not be decoded.
        self._careful_to = -1

    def open_object(self) -> None:
        """Go past the brace that opens the file's object."""
        if self._text.peek() != "{":
            self.value(outside=0)
            raise ImportRefused(str(self._path), "The file holds no JSON object.")
        self._text.at += 1

    def next_name(self) -> str | None:
        """Return the name of the object's next member, colon passed, or None at the end."""
        found = self._text.peek()
        if found == "}":
            self._text.at += 1
            return None
        if not self._first:
            if found != ",":
                self._text.malformed("Expecting ',' delimiter")
            self._text.at += 1
            found = self._text.peek()
        self._first = False
        if found != '"':
            self._text.malformed("Expecting property name enclosed in double quotes")
        name: str = self.value(outside=1)
        if self._text.peek() != ":":
            self._text.malformed("Expecting ':' delimiter")
        self._text.at += 1
        return name

    def opens_list(self) -> bool:
        """Go past the bracket that opens a list, if one does."""
        if self._text.peek() != "[":
            return False
        self._text.at += 1
        return True

    def end(self) -> None:
        """Refuse the file if anything follows."""
        if self._text.peek():
            self._text.malformed("Extra data")

    def items(self) -> Iterator[list[Any]]:
        """Yield the items of a list, whose bracket has been passed, by the run, to its end."""
        if self._text.peek() == "]":
            self._text.at += 1
            return
        ended = False
        while not ended:
            run = self._run()
            if run is None:
                run, ended = self._one_by_one()
            yield run

    def _run(self) -> list[Any] | None:
        """Decode the items up to the last one that begins in the window, or None.

        Where items seem to meet, in the middle of a string or of a nested value, what lies before
        is no valid JSON; so what can be decoded does end there.
        """
        text, between = self._text, self._between
        if not between or text.place <= self._careful_to:
            return None
        cut = text.text.rfind(between, text.at)
        if cut < 0 and not text.ended:
            text.more()
            cut = text.text.rfind(between, text.at)
        if cut < 0:
            return None
        run = _decoded(text.text[text.at : cut + 1])
        if run is None:
            self._careful_to = text.base + cut
        else:
            text.at = cut + len(between) - 1
        return run

    def _one_by_one(self) -> tuple[list[Any], bool]:
        """Read items until a run may be tried again; and whether the list has ended."""
        text = self._text
        items = []
        while True:
            items.append(self.value(outside=_OUTSIDE))
            base, end = text.base, text.at
            found = text.peek()
            if found == "]":
                text.at += 1
                return items, True
            if found != ",":
                text.malformed("Expecting ',' delimiter")
            text.at += 1
            begins = text.peek()
            if begins == "{" and base == text.base and text.text[end - 1] == "}":
                self._between = text.text[end - 1 : text.at + 1]
            if len(items) == _ONE_BY_ONE or (self._between and text.place > self._careful_to):
                return items, False

    def value(self, *, outside: int) -> Any:
        """Read the value that comes next, which lies within so many levels."""
        text = self._text
        text.peek()
        while True:
            try:
                value, end = _EXACT.raw_decode(text.text, text.at)
            except json.JSONDecodeError as error:
                cut_short = (
                    error.msg.startswith("Unterminated string")
                    or error.pos > len(text.text) - _MARGIN
                )
                if text.ended or not cut_short:
                    text.malformed(error.msg, error.pos)
            except RecursionError:
                self._too_deep()
            except ValueError as error:
                if text.ended or len(text.text) - text.at > _MARGIN:
                    text.malformed(str(error).partition(";")[0])
            else:
                if text.ended or text.follows(end) in _AFTER or len(text.text) - end > _MARGIN:
                    text.at = end
                    if _deeper([value], MAX_DEPTH - outside):
                        self._too_deep()
                    return value
            text.more()

    def _too_deep(self) -> NoReturn:
        raise ImportRefused(
            str(self._path),
            f"The file is nested deeper than {MAX_DEPTH} levels. Nothing was imported.",
        )


# Letters that end a value; "" is none of them.
_AFTER: Final = frozenset(",:]}")


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits[:40]} is too large for a floating point number")
    return value


_EXACT: Final = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)
_FAST: Final = msgspec.json.Decoder()


def _decoded(run: str) -> list[Any] | None:
    """Decode items of a list; None where that fails or where they may be nested too deep."""
    try:
        items: list[Any] = _FAST.decode(f"[{run}]")
    except (msgspec.MsgspecError, RecursionError):
        return None
    levels = MAX_DEPTH - _OUTSIDE
    # With no more opening brackets than that, beside one for each item, none is nested so deep.
    if run.count("{") + run.count("[") - len(items) < levels - 1 and _are_objects(items):
        return items
    return None if _deeper(items, levels) else items


def _are_objects(items: list[Any]) -> bool:
    return set(map(type, items)) == {dict}


def _deeper(values: list[Any], levels: int) -> bool:
    """Tell whether any value holds lists and objects within each other more levels deep."""
    held = [value for value in values if type(value) in (dict, list)]
    for _ in range(levels):
        if not held:
            return False
        held = [
            inner
            for value in held
            for inner in (value.values() if type(value) is dict else value)
            if type(inner) in (dict, list)
        ]
    return bool(held)
