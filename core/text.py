"""Control characters, which no name may contain."""

from __future__ import annotations

import unicodedata


def has_controls(value: str) -> bool:
    """Whether a text contains control characters or undecodable bytes.

    The joiners that Persian or Hindi names need are neither, though not “printable” either.
    """
    return not value.isprintable() and any(map(_is_control, value))


def printable(value: str) -> str:
    """Return the text with its control characters as Python writes them, "\\x1b" for escape."""
    if value.isprintable():
        return value
    return "".join(repr(one)[1:-1] if _is_control(one) else one for one in value)


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cs")
