"""Ids as an address, a form, a body or a file writes them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

#: The largest number that a column of primary keys holds.
LARGEST_ID: Final = 2**63 - 1


class IdConverter:
    """`<id:pk>` in an address; a number that no column holds matches nothing (404)."""

    regex = "[0-9]+"

    def to_python(self, value: str) -> int:
        """Parse an id; ValueError if it is too large."""
        number = id_of(value)
        if number is None:
            raise ValueError("No id is so large.")
        return number

    def to_url(self, value: Any) -> str:
        """Format an id."""
        return str(value)


def id_of(text: Any) -> int | None:
    """The id from 0 to LARGEST_ID that a text is in plain digits, or None."""
    if not (isinstance(text, str) and text.isascii() and text.isdigit() and len(text) <= 19):
        return None
    number = int(text)
    return number if number <= LARGEST_ID else None


def ids_of(texts: Iterable[str]) -> list[int]:
    """Return the primary keys among texts, in their order; other texts are left out."""
    return [number for text in texts if (number := id_of(text)) is not None]
