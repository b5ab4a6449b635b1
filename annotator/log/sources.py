"""What the log reads: one source for each table that tells who did something, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin.models import LogEntry
from django.db.models import Model

from core.jobs.models import Job
from evaluation.runs.models import Run
from labeling.comments.models import Comment, Thread
from labeling.lifecycle.history import field_name
from labeling.queries.models import Query, QueryEdit, QueryTransition
from releases.models import Release
from retrieval.corpus.models import ImageTakedown, ImageWithdrawal
from retrieval.flags.models import ImageFlag

Values = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Source:
    """One kind of rows of the log, read from one table."""

    kind: str
    label: str
    """For people."""
    model: type[Model]
    at: str
    """The field of the time; rows without one are left out."""
    person: str
    what: Callable[[Values], str]
    """What was done, in words, of a row's `fields`."""
    thing: Callable[[Values], str]
    """To what."""
    fields: tuple[str, ...]
    address: tuple[str, str] | None = None
    """The page of the thing: its name, and the field of its primary key."""
    query: str | None = None
    """The lookup of its query's number; None where it has none."""


def _query(values: Values) -> str:
    return f"{values['query__query_id']}: {values['query__text']}"


def _image(values: Values) -> str:
    return f"Image {values['image_id']}"


def _in_thread(values: Values) -> str:
    image = values["thread__image_id"]
    query = f"{values['thread__query__query_id']}: {values['thread__query__text']}"
    return f"{query}, image {image}" if image else query


def _resolved(values: Values) -> str:
    return f"{_query(values)}, image {values['image_id']}" if values["image_id"] else _query(values)


def _changed_state(values: Values) -> str:
    if values["from_state"] == values["to_state"]:
        return "Handed in their part"
    return f"{Query.State(values['from_state']).label} → {Query.State(values['to_state']).label}"


def _edited(values: Values) -> str:
    return f"Changed {', '.join(field_name(name) for name, _, _ in values['changes'])}"


def _flag(verb: str) -> Callable[[Values], str]:
    return lambda values: f"{verb}: {ImageFlag.Kind(values['kind']).label}"


def _said(text: str) -> Callable[[Values], str]:
    return lambda _values: text


_OF_QUERY: Final = ("query_id", "query__query_id", "query__text")
_OF_THREAD: Final = (
    *("thread__image_id", "thread__query_id", "thread__query__query_id", "thread__query__text"),
)
_IMAGE_PAGE: Final = ("image-page", "image_id")
_NAMED: Final = {"datasetmark": "data set"}
_ADMIN: Final = {1: "Added", 2: "Changed", 3: "Deleted"}

#: In the order in which rows of one moment stand; judgments come before all.
SOURCES: list[Source] = [
    Source(
        "query", "Queries written", Query, "created_at", "created_by", _said("Wrote the query"),
        lambda v: f"{v['query_id']}: {v['text']}", ("query_id", "text"),
        ("query-detail", "pk"), "query_id",
    ),
    Source(
        "edit", "Queries changed", QueryEdit, "made_at", "made_by", _edited,
        _query, (*_OF_QUERY, "changes"), ("query-detail", "query_id"), "query__query_id",
    ),
    Source(
        "state", "Queries’ states", QueryTransition, "made_at", "made_by", _changed_state,
        _query, (*_OF_QUERY, "from_state", "to_state"),
        ("query-detail", "query_id"), "query__query_id",
    ),
    Source(
        "comment", "Comments", Comment, "made_at", "author", _said("Commented"),
        _in_thread, _OF_THREAD, ("query-detail", "thread__query_id"), "thread__query__query_id",
    ),
    Source(
        "resolved", "Comments resolved", Thread, "resolved_at", "resolved_by",
        _said("Resolved the comments"), _resolved, (*_OF_QUERY, "image_id"),
        ("query-detail", "query_id"), "query__query_id",
    ),
    Source(
        "flag", "Flags", ImageFlag, "raised_at", "raised_by", _flag("Flagged"),
        _image, ("image_id", "kind"), _IMAGE_PAGE,
    ),
    Source(
        "decision", "Flags decided", ImageFlag, "decided_at", "decided_by",
        lambda v: f"{ImageFlag.State(v['state']).label}: {ImageFlag.Kind(v['kind']).label}",
        _image, ("image_id", "kind", "state"), _IMAGE_PAGE,
    ),
    Source(
        "withdrawal", "Images withdrawn", ImageWithdrawal, "withdrawn_at", "withdrawn_by",
        _said("Withdrew the image"), _image, ("image_id",), _IMAGE_PAGE,
    ),
    Source(
        "restored", "Images restored", ImageWithdrawal, "restored_at", "restored_by",
        _said("Restored the image"), _image, ("image_id",), _IMAGE_PAGE,
    ),
    Source(
        "takedown", "Takedowns", ImageTakedown, "taken_down_at", "taken_down_by",
        _said("Took the image down"), _image, ("image_id",), _IMAGE_PAGE,
    ),
    Source(
        "job", "Jobs", Job, "created_at", "created_by", _said("Began the job"),
        lambda v: v["title"] or f"{v['kind']} {v['pk']}", ("title", "kind"), ("job", "pk"),
    ),
    Source(
        "release", "Releases", Release, "created_at", "created_by", _said("Made the release"),
        lambda v: f"{v['name']} {v['version']}", ("name", "version"), ("release", "pk"),
    ),
    Source(
        "run", "Runs", Run, "created_at", "owner", _said("Submitted the run"),
        lambda v: v["name"], ("name",), ("run", "pk"),
    ),
    Source(
        "admin", "People and admin", LogEntry, "action_time", "user",
        lambda v: v["change_message"] if v["change_message"][:1] not in ("", "[")
        else _ADMIN[v["action_flag"]],
        lambda v: f"{_NAMED.get(v['content_type__model'], v['content_type__model'] or '')} "
        f"{v['object_repr']}".strip(),
        ("content_type__model", "object_repr", "change_message", "action_flag"),
    ),
]  # fmt: skip
