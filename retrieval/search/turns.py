"""Limits of searches: each has a time limit, and a person has one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.conf import settings
from django.db import OperationalError, connection

from core.errors import LimitReached, Unavailable
from core.locks import lock_key
from core.sql import repeatable_read

QUERY_CANCELED: Final = "57014"
LOCK_NOT_AVAILABLE: Final = "55P03"
LONGEST_WAIT: Final = 5000
"""Milliseconds to wait for another search of the same person; waiting keeps a thread busy."""
BUSY_SECONDS: Final = 2.0
"""Seconds after which a refused search may be sent again."""


class SearchTooSlow(Unavailable):
    """The search was stopped after settings.SEARCH_TIMEOUT; the message says what helps."""


class SearchBusy(LimitReached):
    """Another search of the same person did not end in time."""

    def __init__(self) -> None:
        text = "Your previous search is still running. Try again when it has ended."
        super().__init__(text, wait=BUSY_SECONDS)


@contextmanager
def search_turn(*, person: int | None = None) -> Iterator[None]:
    """Run a search's database queries in one transaction with limits.

    A statement is stopped after settings.SEARCH_TIMEOUT (SearchTooSlow). With a `person` (a user's
    key) it waits for that person's other search, some seconds at most (SearchBusy).
    """
    try:
        with repeatable_read():
            _limit()
            if person is not None:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("search", person)])
            yield
    except OperationalError as error:
        code = getattr(error.__cause__, "pgcode", None)
        if code == LOCK_NOT_AVAILABLE:
            raise SearchBusy from error
        if code != QUERY_CANCELED:
            raise
        raise SearchTooSlow(
            f"The search took longer than {settings.SEARCH_TIMEOUT} seconds and was stopped. Fewer "
            "species make it faster; so does a packed matrix or an index of the embeddings, which "
            "an admin makes with “python manage.py pack_embeddings” or “index_embeddings”."
        ) from error


def _limit() -> None:
    # Waiting for a lock must time out before its statement does.
    milliseconds = settings.SEARCH_TIMEOUT * 1000
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            [str(milliseconds), str(min(LONGEST_WAIT, milliseconds * 4 // 5))],
        )
