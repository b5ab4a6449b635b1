"""Errors of curation."""

from __future__ import annotations

from core.errors import Refused


class CurationRefused(Refused):
    """A source or a setting is refused as a whole."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__(f"{file}: {reason}")
        self.file = file
        self.reason = reason
