"""What becomes of an action on many things at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

MOST_AT_ONCE: Final = 5000


class Skipped(NamedTuple):
    """A thing that the action left as it is."""

    id: int
    why: str
    """For people."""


@dataclass(slots=True)
class BulkOutcome:
    """How many things an action changed, and those that it left as they are."""

    done: int = 0
    skipped: list[Skipped] = field(default_factory=list)

    def skip(self, ids: Iterable[int], why: str) -> None:
        """Report that these things are left as they are."""
        self.skipped += [Skipped(one, why) for one in ids]
