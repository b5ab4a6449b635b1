"""What people do with the images that they have selected: a registry for the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from core.access import Role


@dataclass(frozen=True, slots=True)
class ImageAction:
    """An action on up to 5,000 images, by a POST of their `ids`; sent again it changes nothing."""

    key: str
    title: str
    roles: frozenset[Role]
    """Who may do it."""
    address: str
    """With {query} where it needs one, in whose place the query's primary key comes."""
    needs: tuple[str, ...]
    """What else it takes: "query", and by the names of its body "reason" (a kind of flag), "note"
    and "relevance"."""


EVERYBODY: Final = frozenset({Role.ANNOTATOR, Role.REVIEWER, Role.ADMIN})
DECIDING: Final = frozenset({Role.REVIEWER, Role.ADMIN})

ACTIONS: list[ImageAction] = [
    ImageAction("flag", "Flag …", EVERYBODY, "/api/images/flag-many/", needs=("reason", "note")),
    ImageAction("withdraw", "Withdraw …", DECIDING, "/api/images/withdraw-many/", needs=("note",)),
]
"""In the order of the page's buttons; later apps on the street append theirs."""
