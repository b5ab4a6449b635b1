"""Which databases this version can upgrade: those of version 0.2.0 and later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: An app that no version has had since: its migrations tell an older database.
_FORMER_APP: Final = "benchmark"
TOO_OLD: Final = (
    "is of a version before 0.2.0, which no later version can read: install inquire-annotator "
    "0.1.0, export its releases there, and import them here (`import_benchmark`)"
)


def is_too_old(apps: Iterable[str]) -> bool:
    """Whether a database, by the labels of the apps whose migrations were applied to it, is of a
    version before 0.2.0."""
    return _FORMER_APP in set(apps)
