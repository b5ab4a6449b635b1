"""What extras add to the pages and files of the apps: plain lists that an extra's
`AppConfig.ready` appends to. Kinds of jobs have `core.jobs.kinds.job_handler`, formats of a release
`releases.formats.registry.FORMATS`, blind queues `labeling.judging.blind.BLIND_KINDS`, settings of
a benchmark `labeling.lifecycle.benchmarks.SETTING_FIELDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum, auto
from pathlib import Path
from typing import Any, NamedTuple


class Link(NamedTuple):
    """A link to a page."""

    title: str
    address: str


class LinkPlace(Enum):
    """Where links of extras stand, and what their functions take."""

    QUERY = auto()
    """The head of a query's page: the user and the query."""
    CORPUS = auto()
    """The head of the images' page."""
    FLAGS = auto()
    """The page of flagged images: pages on which other reports on images are decided."""
    LEADERBOARD = auto()
    """The tabs of a leaderboard beside its tasks: the user and the release."""
    ANALYSIS = auto()
    """The page of a leaderboard's analyses: the user, the release and what is chosen (`task`, and
    `split` where its labels may be seen)."""


class Confusions(NamedTuple):
    """What is known of which species are taken for which."""

    times: Callable[[list[int]], dict[int, dict[int, int]]]
    """Takes ids of species, and returns for each the ids of those that it is confused with, and how
    often either is taken for the other, the most often first."""
    dialog: str
    """The template of a dialog on the labeling page, whose `data-compare` is an address below which
    `ID/ID/?part` shows two species side by side."""


class BackupFolder(NamedTuple):
    """A folder below VAR_DIR whose files a backup takes."""

    name: str
    files: Callable[[], Iterable[Path]]
    """Those that the database names."""


class QueryTask(NamedTuple):
    """What annotators do with queries besides labeling them."""

    title: str
    page: str
    """The name of its address, which has the query's primary key."""
    queries: Callable[[], Any]
    """Gives the condition, a Q, on the queries that they see for it, whatever their state."""


class FirstStep(NamedTuple):
    """A step on the way from an empty installation to the first release."""

    title: str
    about: str
    address: Callable[[], str]
    """The page on which it is done."""
    done: Callable[[], bool]
    last: bool = False
    """Once it is done, the steps stand under Help alone."""


class SnapshotTable(NamedTuple):
    """A table of a release's snapshot. It has labels: of a hidden test split nothing is open."""

    name: str
    row: type
    """A dataclass with the column `query_id`."""
    rows: Callable[[Any], Iterable[Any]]
    """Those of a benchmark, by query id."""


class ImageUse(NamedTuple):
    """Rows or files that name images, which are not removed while they do."""

    words: str
    """What they are, in the plural."""
    names_any: Callable[[Sequence[int]], bool]
    """Whether any of the images with these ids is named."""


Panel = Callable[[Any, Any], str | None]
"""Takes a request and a subject that its user may see, and returns a card of the subject's page,
safe HTML with nothing that the user may not know, or None."""

LINKS: list[tuple[LinkPlace, Callable[..., Link | None]]] = []
QUERY_PANELS: list[Panel] = []
"""Cards of a query's page."""
IMAGE_USES: list[ImageUse] = []
"""Later apps on the street add theirs too."""
IMAGE_PANELS: list[Panel] = []
"""Cards of an image's page. Later apps on the street add theirs too."""
DATASET_PANELS: list[Panel] = []
"""Cards of a data set's page, whose subject is its name. Later apps on the street add theirs."""
QUERY_TASKS: list[QueryTask] = []
LATER_STEPS: list[FirstStep] = []
"""The steps after the labels, in order; later apps append theirs."""
CONFUSIONS: list[Confusions] = []
SNAPSHOT_FACTS: list[Callable[[], dict[str, Any]]] = []
"""Each returns fields of a snapshot's header, as of the moment when it is taken."""
SNAPSHOT_TABLES: list[SnapshotTable] = []
BACKUP_FOLDERS: list[BackupFolder] = []


def links(place: LinkPlace, *about: Any) -> list[Link]:
    """The links of all extras at a place; `about` is what their functions take."""
    return [link for at, make in LINKS if at is place and (link := make(*about))]


def cards(panels: list[Panel], request: Any, subject: Any) -> list[str]:
    """What the panels of a page have to say of its subject."""
    return [card for panel in panels if (card := panel(request, subject))]
