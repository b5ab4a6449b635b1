"""Small pieces of Markdown."""

from __future__ import annotations

import re

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&])")


def plain(text: str) -> str:
    """The text on one line, with what Markdown and HTML take for markup escaped."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))


def share(part: int, whole: int) -> str:
    """ "1,234 of 5,000 (24.7 %)"; without a share of nothing."""
    if not whole:
        return "0 of 0"
    return f"{part:,} of {whole:,} ({100 * part / whole:.1f} %)"


def counted(count: int, one: str, many: str) -> str:
    """ "1 query" or "1,234 queries"."""
    return f"{count:,} {one if count == 1 else many}"


def percent(part: int, whole: int) -> str:
    """ "24.7 %"; "–" of nothing."""
    return f"{100 * part / whole:.1f} %" if whole else "–"
