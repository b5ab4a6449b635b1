"""Searches take turns: each has a time limit, a person has one at a time, and a page that types has
its last one alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

from django.conf import settings
from django.db import OperationalError, connection, transaction

from core.locks import lock_key
from retrieval.embedding.text_vectors import Superseded

QUERY_CANCELED: Final = "57014"
LOCK_NOT_AVAILABLE: Final = "55P03"
NUMBERS: Final = 2**16
LONGEST_WAIT: Final = 5000
"""Milliseconds for another search of the same person to end; who waits keeps a thread busy."""

# Both halves of a lock's number are in pg_locks as unsigned 32-bit integers. The page is in the
# upper half and the upper 16 bits of the lower one, the number of its search in the rest. Looking
# and ending are one statement: a connection that has ended its search soon serves another request.
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
class Asker:
    """A page on which somebody types, by an id of its own, and which of its searches this is."""

    page: str
    number: int


class SearchTooSlow(Exception):
    """The search was stopped after settings.SEARCH_TIMEOUT; the text says so and what helps."""


class SearchBusy(Exception):
    """Another search of the same person has not ended in time."""


@contextmanager
def search_turn(*, person: int | None = None, asker: Asker | None = None) -> Iterator[None]:
    """One transaction for what a search asks of the database.

    A statement ends after settings.SEARCH_TIMEOUT (SearchTooSlow). With a `person` (a user's key)
    it waits until no other search of that person is at it, some seconds at most (SearchBusy). With
    an `asker` an earlier search of the same page is ended, and this one is where a later one has
    come or comes (Superseded).
    """
    began = time.monotonic()
    try:
        with transaction.atomic():
            _limit()
            if asker is not None:
                _take_page(asker)
            if person is not None:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_xact_lock(%s)", [lock_key("search", person)])
            yield
    except OperationalError as error:
        code = getattr(error.__cause__, "pgcode", None)
        if code == LOCK_NOT_AVAILABLE:
            raise SearchBusy(
                "Another search of yours is still going on. Try again when it has ended."
            ) from error
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
    # A wait for a lock ends before the statement that waits would.
    milliseconds = settings.SEARCH_TIMEOUT * 1000
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('statement_timeout', %s, true),"
            " set_config('lock_timeout', %s, true)",
            [str(milliseconds), str(min(LONGEST_WAIT, milliseconds * 4 // 5))],
        )


def _take_page(asker: Asker) -> None:
    """Say that this search of the page is at it, end earlier ones, and give way to a later one."""
    page = int.from_bytes(blake2b(asker.page.encode(), digest_size=4).digest())
    number = asker.number % NUMBERS
    key = lock_key("search_page", page * NUMBERS + number)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s)", [key])
        cursor.execute(
            _END_EARLIER, {"number": number, "upper": key >> 32, "lower": key >> 16 & 0xFFFF}
        )
        later: bool = cursor.fetchone()[0]
    if later:
        raise Superseded
