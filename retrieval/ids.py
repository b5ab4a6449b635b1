"""Primary keys as an address or a form writes them."""

from __future__ import annotations

from collections.abc import Iterable


def id_of(text: str) -> int | None:
    """The primary key that a text is in plain digits, or None; none has 19 digits or more."""
    fits = text.isascii() and text.isdigit() and len(text) < 19
    return int(text) if fits else None


def ids_of(texts: Iterable[str]) -> list[int]:
    """The primary keys among texts, in their order; what is none is left out."""
    return [number for text in texts if (number := id_of(text)) is not None]
