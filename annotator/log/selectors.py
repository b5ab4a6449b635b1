"""Pages of the log, the latest first: a merge of the latest rows of each source."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import Q
from django.urls import reverse

from annotator.log.sources import SOURCES, Source
from core.sql import fetch_all
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import Query

JUDGMENTS: Final = "judgments"
#: Kind → what people read.
KINDS: Final = {JUDGMENTS: "Judgments", **{one.kind: one.label for one in SOURCES}}
#: Events that a page counts at least, so that none reads the whole table; hours stay whole.
EVENTS_READ: Final = 20_000
_HOUR: Final = timedelta(hours=1)
_EARLIEST: Final = datetime(1, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a row in the log; rows of one moment stand by source, then by key."""

    at: datetime
    source: int
    """Of SOURCES, from 0; -1 for judgments."""
    key: int


@dataclass(frozen=True, slots=True)
class LogRow:
    """Something that somebody did."""

    place: Place
    kind: str
    person: str
    """The name; empty for the application itself."""
    what: str
    thing: str
    address: str
    """Of the thing's page, from the root; empty where it has none."""

    @property
    def label(self) -> str:
        """The kind, for people."""
        return KINDS[self.kind]

    @property
    def order(self) -> tuple[datetime, int, int]:
        """Ascending from the earliest to the latest."""
        return (self.place.at, -self.place.source, self.place.key)


@dataclass(frozen=True, slots=True)
class LogFilter:
    """Which rows; None and empty for all."""

    person: int | None = None
    kind: str = ""
    query: int | None = None
    """Its number."""
    since: datetime | None = None
    until: datetime | None = None
    """Excluded."""


def log_page(
    wanted: LogFilter, *, after: Place | None = None, size: int
) -> tuple[list[LogRow], Place | None]:
    """At most `size` rows, the latest first, after a place in that order; and the place after which
    the next page begins, None on the last. One SQL statement for each source.
    """
    found: list[list[LogRow]] = []
    counted_from = _EARLIEST
    if wanted.kind in ("", JUDGMENTS):
        judged, counted_from = _judgments(wanted, after, size + 1)
        found.append(judged)
    for number, source in enumerate(SOURCES):
        of_query = wanted.query is None or source.query is not None
        if of_query and wanted.kind in ("", source.kind):
            found.append(_rows(number, source, wanted, after, size + 1))
    merged = heapq.merge(*found, key=lambda row: row.order, reverse=True)
    # Judgments before that hour aren't counted yet, so nothing before it can stand on this page.
    rows = [row for row in merged if row.place.at >= counted_from]
    more = len(rows) > size or counted_from > _EARLIEST
    return rows[:size], rows[:size][-1].place if more else None


def log_rows(wanted: LogFilter, *, size: int = 1000) -> Iterator[LogRow]:
    """All rows, the latest first, read page by page."""
    after: Place | None = None
    while True:
        rows, after = log_page(wanted, after=after, size=size)
        yield from rows
        if after is None:
            return


def _rows(
    number: int, source: Source, wanted: LogFilter, after: Place | None, limit: int
) -> list[LogRow]:
    at = source.at
    condition = Q(**{f"{at}__isnull": False})
    if wanted.person is not None:
        condition &= Q(**{source.person: wanted.person})
    if wanted.query is not None:
        condition &= Q(**{str(source.query): wanted.query})
    if wanted.since is not None:
        condition &= Q(**{f"{at}__gte": wanted.since})
    if wanted.until is not None:
        condition &= Q(**{f"{at}__lt": wanted.until})
    if after is not None:
        later = Q(**{f"{at}__lt": after.at})
        if number > after.source:
            later |= Q(**{at: after.at})
        elif number == after.source:
            later |= Q(**{at: after.at}, pk__lt=after.key)
        condition &= later
    name = f"{source.person}__{get_user_model().USERNAME_FIELD}"
    rows = source.model._default_manager.filter(condition).order_by(f"-{at}", "-pk")
    return [
        LogRow(
            place=Place(values[at], number, values["pk"]),
            kind=source.kind,
            person=values[name] or "",
            what=source.what(values),
            thing=source.thing(values),
            address=reverse(source.address[0], args=[values[source.address[1]]])
            if source.address
            else "",
        )
        for values in rows.values("pk", at, name, *source.fields)[:limit]
    ]


_EVENT: Final = JudgmentEvent._meta.db_table
_CHOSEN: Final = """made_at >= %(since)s
       AND (%(person)s::bigint IS NULL OR annotator_id = %(person)s)
       AND (%(query)s::bigint IS NULL OR query_id = %(query)s)"""
_JUDGMENTS: Final = f"""
WITH enough AS MATERIALIZED (
    SELECT date_trunc('hour', made_at, 'UTC') AS hour FROM {_EVENT}
     WHERE made_at < %(begun)s AND {_CHOSEN} ORDER BY made_at DESC OFFSET %(enough)s LIMIT 1
), counted AS (
    SELECT date_trunc('hour', made_at, 'UTC') AS hour, min(id) AS key, query_id, annotator_id,
           count(*) AS events
      FROM {_EVENT}
     WHERE made_at < %(until)s AND {_CHOSEN}
       AND made_at >= coalesce((SELECT hour FROM enough), %(since)s)
     GROUP BY 1, 3, 4
)
SELECT c.hour, c.key, c.events, p.{get_user_model().USERNAME_FIELD}, q.id, q.query_id, q.text,
       (SELECT hour FROM enough)
  FROM counted c JOIN {get_user_model()._meta.db_table} p ON p.id = c.annotator_id
  JOIN {Query._meta.db_table} q ON q.id = c.query_id
 WHERE (c.hour, c.key) < (%(hour)s, %(key)s)
 ORDER BY c.hour DESC, c.key DESC LIMIT %(limit)s
"""


def _judgments(wanted: LogFilter, after: Place | None, limit: int) -> tuple[list[LogRow], datetime]:
    """The judgments of a person for a query in an hour as a row, at the hour's beginning; and since
    which hour all are counted.
    """
    until, hour, key = wanted.until or _LATEST, _LATEST, 0
    begun = until
    if after is not None:
        # What is left of the hour in which the last page ended, and enough before it.
        begun = after.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        until = min(until, begun + _HOUR)
        hour, key = after.at, after.key if after.source < 0 else 0
    query: int | None = None
    if wanted.query is not None:
        numbers = Query.objects.filter(query_id=wanted.query).values_list("pk", flat=True)
        query = next(iter(numbers), 0)
    values: dict[str, Any] = {
        "until": until,
        "begun": begun,
        "enough": EVENTS_READ,
        "since": wanted.since or _EARLIEST,
        "person": wanted.person,
        "query": query,
        "hour": hour,
        "key": key,
        "limit": limit,
    }
    rows = fetch_all(_JUDGMENTS, values)
    counted_from = (rows[0][7] if rows else None) or _EARLIEST
    return [
        LogRow(
            place=Place(at, -1, row_key),
            kind=JUDGMENTS,
            person=name,
            what=f"{events:,} judgment{'' if events == 1 else 's'} within the hour",
            thing=f"{number}: {text}",
            address=reverse("query-detail", args=[pk]),
        )
        for at, row_key, events, name, pk, number, text, _ in rows
    ], counted_from
