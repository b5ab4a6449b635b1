"""Limits of searches: each has a time limit, a person has one at a time, and a later search of a
page ends the earlier ones.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from django.conf import settings
from django.db import OperationalError, connection

from core.errors import LimitReached, Unavailable
from core.locks import lock_key
from core.sql import repeatable_read
from retrieval.embedding.text_vectors import Superseded

QUERY_CANCELED: Final = "57014"
LOCK_NOT_AVAILABLE: Final = "55P03"
NUMBERS: Final = 2**16
LONGEST_WAIT: Final = 5000
"""Milliseconds to wait for another search of the same person; waiting keeps a thread busy."""
BUSY_SECONDS: Final = 2.0
"""Seconds after which a refused search may be sent again."""

# pg_locks has both halves of a lock's number as unsigned 32-bit integers. The page is in the upper
# half and the upper 16 bits of the lower one, the number of its search in the rest. One statement
# finds and cancels: a connection whose search has ended soon serves another request.
_END_EARLIER = """
SELECT coalesce(bool_or(held.number > %(number)s), false),
       count(CASE WHEN held.number < %(number)s THEN pg_cancel_backend(held.pid) END)
FROM (
    SELECT l.pid, l.objid::bigint & 65535 AS number FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
      AND l.classid::bigint = %(upper)s AND l.objid::bigint >> 16 = %(lower)s
      AND l.pid <> pg_backend_pid()
) held
"""


@dataclass(frozen=True, slots=True)
class PageSearch:
    """A search of an open page: the page's own id, and the search's number on it."""

    page: str
    number: int


class SearchTooSlow(Unavailable):
    """The search was stopped after settings.SEARCH_TIMEOUT; the message says what helps."""


class SearchBusy(LimitReached):
    """Another search of the same person did not end in time."""

    def __init__(self) -> None:
        text = "Your previous search is still running. Try again when it has ended."
        super().__init__(text, wait=BUSY_SECONDS)


@contextmanager
def search_turn(
    *, person: int | None = None, page_search: PageSearch | None = None
) -> Iterator[None]:
    """Run a search's database queries in one transaction with limits.

    A statement is stopped after settings.SEARCH_TIMEOUT (SearchTooSlow). With a `person` (a user's
    key) it waits for that person's other search, some seconds at most (SearchBusy). With a
    `page_search` earlier searches of the page are ended, and so is this one if a later one comes
    (Superseded).
    """
    began = time.monotonic()
    try:
        with repeatable_read():
            _limit()
            if page_search is not None:
                _end_earlier(page_search)
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
        if time.monotonic() - began < settings.SEARCH_TIMEOUT:
            raise Superseded from error
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


def _end_earlier(search: PageSearch) -> None:
    """Register this search of the page and end earlier ones; raise Superseded if there is a later
    one.
    """
    page = int.from_bytes(blake2b(search.page.encode(), digest_size=4).digest())
    number = search.number % NUMBERS
    key = lock_key("search_page", page * NUMBERS + number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [key])
        cursor.execute(
            _END_EARLIER, {"number": number, "upper": key >> 32, "lower": key >> 16 & 0xFFFF}
        )
        later: bool = cursor.fetchone()[0]
    if later:
        raise Superseded
