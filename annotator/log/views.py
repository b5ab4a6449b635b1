"""The log as a page and as CSV."""

from __future__ import annotations

import csv
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from tempfile import TemporaryFile
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.dateparse import parse_datetime
from django.views.decorators.http import require_safe

from annotator.log.selectors import KINDS, LogFilter, LogRow, Place, log_page, log_rows
from core.access import Role, require_role
from core.address_choices import chosen, chosen_id
from core.csv_rows import spreadsheet_text
from core.ids import id_of
from labeling.queries.files import MAX_QUERY_ID

ROWS_SHOWN = 100
FILTERS = ("person", "kind", "query", "since", "until")
COLUMNS = ("time", "person", "kind", "what", "object", "address")


@login_required
@require_safe
def log(request: HttpRequest) -> HttpResponse:
    """Who did what, the latest first (admins)."""
    wanted = _wanted(request)
    rows, following = log_page(wanted, after=_place(request.GET.get("after", "")), size=ROWS_SHOWN)
    given = {name: request.GET[name] for name in FILTERS if request.GET.get(name)}
    older = ""
    if following:
        place = f"{following.at.isoformat()},{following.source},{following.key}"
        older = urlencode(given | {"after": place})
    context = {
        "rows": rows,
        "filters": given,
        "wanted": wanted,
        "kinds": KINDS.items(),
        "people": get_user_model().objects.order_by("username"),
        "csv_filters": urlencode(given),
        "older": older,
        "first": not request.GET.get("after"),
    }
    return render(request, "account/log.html", context)


#: Held by the thread that writes the log into a file: one of a process, so that others are free.
_WRITING = threading.Lock()


@login_required
@require_safe
def log_csv(request: HttpRequest) -> HttpResponseBase:
    """All rows that pass the filters, the latest first, times in UTC (admins)."""
    lines = _lines(_wanted(request))
    if not _WRITING.acquire(blocking=False):
        messages.error(request, "Somebody else gets the log at the moment. Try again in a minute.")
        return redirect("log")
    try:
        # Whole before it is sent: however slowly it is read, that takes no thread.
        file = TemporaryFile()  # noqa: SIM115 (the answer closes it)
        file.writelines(line.encode() for line in lines)
    finally:
        _WRITING.release()
    file.seek(0)
    kind = "text/csv; charset=utf-8"
    return FileResponse(file, as_attachment=True, filename="log.csv", content_type=kind)


class _Echo:
    """A file for `csv.writer` that hands back each line."""

    def write(self, line: str) -> str:
        return line


def _lines(wanted: LogFilter) -> Iterator[str]:
    writer: Any = csv.writer(_Echo(), lineterminator="\n")
    yield writer.writerow(COLUMNS)
    for row in log_rows(wanted):
        yield writer.writerow([spreadsheet_text(text) for text in _fields(row)])


def _fields(row: LogRow) -> list[str]:
    at = row.place.at.isoformat()
    return [at, row.person, row.label, row.what, row.thing, row.address]


def _wanted(request: HttpRequest) -> LogFilter:
    """The filters of the address; Http404 for a value that none can have."""
    require_role(request.user, Role.ADMIN)
    number = chosen_id(request.GET, "query")
    if number is not None and number > MAX_QUERY_ID:
        raise Http404("No query has so large a number.")
    zone = ZoneInfo(request.user.time_zone)  # type: ignore[union-attr]
    until = _date(request, "until", zone)
    return LogFilter(
        person=chosen_id(request.GET, "person"),
        kind=chosen(request.GET, "kind", KINDS),
        query=number,
        since=_date(request, "since", zone),
        until=until + timedelta(days=1) if until else None,
    )


def _date(request: HttpRequest, name: str, zone: ZoneInfo) -> datetime | None:
    """The beginning of the day that a parameter names, in the person's time zone."""
    text = request.GET.get(name, "")
    if not text:
        return None
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=zone)
    except ValueError:
        raise Http404(f"“{text[:50]}” isn’t a date such as 2026-03-31.") from None
    if not 1900 < day.year < 3000:
        raise Http404("The log has no such year.")
    return day


def _place(text: str) -> Place | None:
    """The place in the log that an address names."""
    if not text:
        return None
    moment, *rest = text.split(",")
    try:
        at = parse_datetime(moment)
    except ValueError:
        at = None
    source = {"-1": -1}.get(rest[0], id_of(rest[0])) if len(rest) == 2 else None
    key = id_of(rest[1]) if len(rest) == 2 else None
    if (
        at is None
        or at.tzinfo is None
        or not 1900 < at.year < 3000
        or source is None
        or key is None
    ):
        raise Http404("There is no such place in the log.")
    return Place(at, source, key)
