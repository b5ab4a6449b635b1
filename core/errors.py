"""What services refuse, in words for people.

Each way in answers any refusal in one place: `annotator.web.problems` the API, `core.pages` a page,
`core.jobs.services` a job, `core.commands` a command.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from http import HTTPStatus

from core.csv_rows import RowError


class Refused(Exception):
    """A request is not carried out; the text says why. `status` is that of the API's answer."""

    status = HTTPStatus.CONFLICT
    wait: float | None = None
    """Seconds until it may be sent again, where that helps."""


class Conflict(Refused):
    """Well formed, but not possible in the state in which things are."""


class Forbidden(Refused):
    """Possible, but not for this person."""

    status = HTTPStatus.FORBIDDEN


class Missing(Refused):
    """There is no such thing."""

    status = HTTPStatus.NOT_FOUND


class Unavailable(Refused):
    """The server can't do it now: its model can't be loaded, or a search takes too long."""

    status = HTTPStatus.SERVICE_UNAVAILABLE


class Invalid(Refused):
    """What was sent is wrong; `by_field` says where and why."""

    status = HTTPStatus.BAD_REQUEST

    def __init__(self, by_field: Mapping[str, Iterable[str]]) -> None:
        self.by_field = {field: list(messages) for field, messages in by_field.items()}
        super().__init__(" ".join(one for many in self.by_field.values() for one in many))


class LimitReached(Refused):
    """Somebody has used up what they may do in some time."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, text: str, *, wait: float | None) -> None:
        """`wait`: seconds until they may do it again; None where that never comes."""
        super().__init__(text)
        self.wait = wait


class FileRefused(Invalid):
    """Nothing of a file was taken; `errors` says why, by file, line and field."""

    def __init__(self, errors: Iterable[RowError]) -> None:
        self.errors = list(errors)
        by_field: defaultdict[str, list[str]] = defaultdict(list)
        for error in self.errors:
            where = f"{error.file}, line {error.line}"
            by_field[error.field or "file"].append(f"{where}: {error.message}")
        super().__init__(by_field)

    def __str__(self) -> str:
        return "\n".join(map(str, self.errors))


class QueryGone(Conflict):
    """The query was deleted while somebody was at it."""
