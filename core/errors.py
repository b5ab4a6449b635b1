"""What services refuse, in words for people; `annotator.web.problems` answers the API with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from core.csv_rows import RowError


class Conflict(Exception):
    """Well formed, but not possible in the state in which things are (HTTP 409)."""


class Forbidden(Exception):
    """Possible, but not for this person (HTTP 403)."""


class Invalid(Exception):
    """What was sent is wrong (HTTP 400); `by_field` says where and why."""

    def __init__(self, by_field: Mapping[str, Iterable[str]]) -> None:
        self.by_field = {field: list(messages) for field, messages in by_field.items()}
        super().__init__(" ".join(one for many in self.by_field.values() for one in many))


class LimitReached(Exception):
    """Somebody has used up what they may do in some time (HTTP 429)."""

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
