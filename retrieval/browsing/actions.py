"""What can be done with selected images: a list to which other apps' `AppConfig.ready` appends."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from core.access import Role, at_least
from retrieval.flags.models import ImageFlag


class Choices(NamedTuple):
    """A value that the person chooses, one of a few."""

    name: str
    """Its field in the request."""
    label: str
    options: list[tuple[Any, str]]
    """Values and their words."""


class ImageAction(NamedTuple):
    """Something that an endpoint does with many images.

    It takes a POST of {ids, …}, at most `core.bulk.MOST_AT_ONCE`, and answers {done, skipped},
    where `skipped` lists {id, why}.
    """

    name: str
    title: str
    about: str
    """One sentence of what it does."""
    role: Role
    """The least that may do it."""
    endpoint: str
    """Its address, with {query} in place of a query's id if it is done to one."""
    queries: str = ""
    """The address of the API by which a query is found: it takes a `search`, and answers `results`
    with `id` and `text`."""
    choices: Choices | None = None
    note: bool = False
    """Whether a note goes with it."""


IMAGE_ACTIONS: Final[list[ImageAction]] = [
    ImageAction(
        name="flag",
        title="Flag",
        about="A reviewer then decides on them.",
        role=Role.ANNOTATOR,
        endpoint="/api/images/flag-many/",
        choices=Choices("reason", "What is wrong", [*ImageFlag.Kind.choices]),
        note=True,
    ),
    ImageAction(
        name="withdraw",
        title="Withdraw",
        about="They leave search, new candidate lists and new releases, until they are restored.",
        role=Role.REVIEWER,
        endpoint="/api/images/withdraw-many/",
        note=True,
    ),
]


def actions_for(user: Any) -> list[dict[str, Any]]:
    """What the user may do with images, as the page reads it."""
    return [
        one._asdict() | {"choices": one.choices and one.choices._asdict()}
        for one in IMAGE_ACTIONS
        if at_least(user, one.role)
    ]
