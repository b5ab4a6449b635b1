"""Which requests read from the replica of the database, and whether it can be read now."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import MiddlewareNotUsed
from django.db import DatabaseError, InterfaceError, OperationalError, connection, connections
from django.http import HttpRequest, HttpResponseBase

from core.replica import REPLICA, reading_replica

OK: Final = "ok"
READ: Final = frozenset(
    {
        *("search", "api-search", "api-species-list", "api-species-detail", "api-species-groups"),
        *("leaderboard", "leaderboard-latest", "leaderboard-export", "api-release-runs"),
        *("correlations", "bias", "bias-file", "compare-runs", "run", "run-query"),
        *("species-board", "species-file"),
    }
)
"""The views that read from the replica."""
SHOWN_ELSEWHERE: Final = frozenset({"api-query-judgments"})
"""Writes that none of these views shows."""
SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MOST_LAG: Final = 30.0
CHECK_SECONDS: Final = 5.0
STICKY_SECONDS: Final = int(MOST_LAG + CHECK_SECONDS)
"""After a write one's own requests read from the primary, for longer than the replica can lag."""
COOKIE: Final = "written"

# By the primary's clock. With living workers the primary commits something every 15 seconds.
_LAG: Final = """
SELECT CASE WHEN pg_last_wal_replay_lsn() >= %s::pg_lsn THEN 0
       ELSE greatest(0, extract(epoch FROM %s::timestamptz - pg_last_xact_replay_timestamp())) END
WHERE pg_is_in_recovery()
"""

logger = logging.getLogger(__name__)


def replica_lag() -> float | None:
    """By how many seconds the replica is behind the primary at most; None if it follows none.

    Raises a DatabaseError or InterfaceError where one of the two doesn't answer.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_wal_insert_lsn()::text, clock_timestamp()")
        position = cursor.fetchone()
    with connections[REPLICA].cursor() as cursor:
        cursor.execute(_LAG, position)
        found = cursor.fetchone()
    return None if found is None or found[0] is None else float(found[0])


def replica_state() -> str:
    """ "ok", "behind" (by more than MOST_LAG), "no replica" or "unreachable"."""
    try:
        lag = replica_lag()
    except (DatabaseError, InterfaceError):
        # The next look connects anew.
        connections[REPLICA].close()
        return "unreachable"
    if lag is None:
        return "no replica"
    return OK if lag <= MOST_LAG else "behind"


class Watch:
    """Whether this process reads from the replica: looked at every CHECK_SECONDS, by one thread."""

    def __init__(self) -> None:
        self._state = OK
        self._next = 0.0
        self._looking = Lock()

    def well(self) -> bool:
        """Whether to read from the replica now."""
        if time.monotonic() >= self._next and self._looking.acquire(blocking=False):
            try:
                self.note(replica_state())
            finally:
                self._looking.release()
        return self._state == OK

    def note(self, state: str) -> None:
        """Hold on to a state until the next look."""
        if state != self._state:
            level = logging.INFO if state == OK else logging.WARNING
            read = "replica" if state == OK else "primary"
            logger.log(level, "The database's replica: %s; pages read from the %s", state, read)
        self._state, self._next = state, time.monotonic() + CHECK_SECONDS


watch = Watch()


class ReplicaMiddleware:
    """Has the views of READ answer from the replica.

    The person and their session are read from the primary, as is everything for STICKY_SECONDS
    after a write by the same browser. Where the replica fails, the view runs on the primary.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        if REPLICA not in settings.DATABASES:
            raise MiddlewareNotUsed
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; the browser remembers that it has written."""
        response = self.get_response(request)
        if request.method not in SAFE and _view_name(request) not in SHOWN_ELSEWHERE:
            response.set_cookie(
                COOKIE,
                "1",
                max_age=STICKY_SECONDS,
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=True,
                samesite="Lax",
            )
        return response

    def process_view(
        self, request: HttpRequest, view: Any, arguments: Any, named: dict[str, Any]
    ) -> HttpResponseBase | None:
        """Answer from the replica, or leave the request to Django."""
        chosen = request.method in SAFE and _view_name(request) in READ
        if not chosen or COOKIE in request.COOKIES or not watch.well():
            return None
        # Read here, so from the primary.
        assert request.user.is_authenticated is not None
        try:
            with reading_replica():
                answer: HttpResponseBase = view(request, *arguments, **named)
                return answer
        except (OperationalError, InterfaceError) as error:
            logger.warning("The primary answers instead of the replica: %s", error)
            watch.note("unreachable")
            return None


def _view_name(request: HttpRequest) -> str:
    return request.resolver_match.view_name if request.resolver_match else ""
