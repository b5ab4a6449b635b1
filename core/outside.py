"""Services outside this machine, as requests ask them: a bucket, the provider of log-ins, the mail
server and the broker.

A web process has few threads, and a service that is slow must not take them all. So threads of the
service's own make the calls. Of the threads that answer requests one at a time waits for a slow
call, some seconds at most; others are told that the service is away. Outside of requests calls are
made where they stand, and wait as long as their own limits let them.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import copy_context
from threading import Lock
from typing import Any, Final, TypeVar

from core.log_lines import request_id
from core.outages import LogInAway, ServiceAway, StorageAway

GRACE: Final = 1.0
"""Seconds after which a call is slow, where nothing is heard of it."""
PATIENCE: Final = 5.0
"""Seconds after which it is given up; for as long nobody asks again."""
SHORT_WAIT: Final = 0.2
"""Seconds in which another thread's slow call may end."""
MOST_CALLS: Final = 8
"""Calls under way, also of those that were given up: twice the threads that answer requests."""
MOST_TOLD: Final = 100
"""Calls that wait for their turn, for whose answers nobody waits."""

_T = TypeVar("_T")
logger = logging.getLogger(__name__)


class Outside:
    """A service outside this machine; `away` is raised for it."""

    def __init__(self, name: str, away: type[ServiceAway] = ServiceAway) -> None:
        self._name, self._away = name, away
        self._threads = ThreadPoolExecutor(MOST_CALLS, thread_name_prefix=name)
        self._teller = ThreadPoolExecutor(1, thread_name_prefix=f"{name}-told")
        self._counting = Lock()
        self._under_way = self._told = 0
        self._waiting = Lock()
        """Held by the thread that waits for a slow call, or tries after one was given up."""
        self._given_up = False
        """Whether the last call failed slowly."""
        self._rests_until = 0.0

    def ask(self, call: Callable[[], _T], *, heard: Callable[[], float] = lambda: 0.0) -> _T:
        """Return what a call returns, which must not use the database.

        `heard` tells when a call that takes long by itself last went on (of `time.monotonic`).
        Raises what the call raises; in a request ServiceAway where nothing is heard of it for
        PATIENCE, or where another thread waits already.
        """
        if request_id.get() is None:
            return call()
        waits = self._enter()
        try:
            began = time.monotonic()
            run = self._begun(call)
            if not waits and _silent(run, began, heard, GRACE):
                self._wait_alone(0)
                waits = True
            silent = _silent(run, began, heard, PATIENCE)
            late = time.monotonic() - max(began, heard()) > GRACE
            self._given_up = silent or bool(late and run.exception())
            if self._given_up:
                self._rests_until = time.monotonic() + PATIENCE
            if silent:
                raise self._away(f"{self._name}: no answer in {PATIENCE:.0f} seconds")
            return run.result()
        finally:
            if waits:
                self._waiting.release()

    def tell(self, call: Callable[[], object]) -> None:
        """Have a call made whose answer nobody needs. What it raises in a request is logged, which
        waits for it a moment, and not where an earlier one is under way.
        """
        if request_id.get() is None:
            call()
            return
        with self._counting:
            if self._told >= MOST_TOLD:
                logger.error("The %s doesn't answer: it is left out that %s", self._name, call)
                return
            self._told += 1
            first = self._told == 1
        run = self._teller.submit(copy_context().run, call)
        run.add_done_callback(self._was_told)
        if first:
            wait([run], timeout=GRACE)

    def _enter(self) -> bool:
        """Whether this thread alone waits, since a call is slow or the last failed slowly. Raises
        ServiceAway."""
        if time.monotonic() < self._rests_until:
            raise self._away(f"{self._name}: no answer a moment ago")
        if not self._given_up and not self._waiting.locked():
            return False
        self._wait_alone(SHORT_WAIT)
        return True

    def _wait_alone(self, seconds: float) -> None:
        if not self._waiting.acquire(timeout=seconds):
            raise self._away(f"{self._name}: slow, and another request waits for it")

    def _begun(self, call: Callable[[], _T]) -> Future[_T]:
        with self._counting:
            if self._under_way >= MOST_CALLS:
                raise self._away(f"{self._name}: {MOST_CALLS} calls have no answer")
            self._under_way += 1
        run = self._threads.submit(copy_context().run, call)
        run.add_done_callback(self._has_ended)
        return run

    def _has_ended(self, _run: Future[Any]) -> None:
        with self._counting:
            self._under_way -= 1

    def _was_told(self, run: Future[Any]) -> None:
        with self._counting:
            self._told -= 1
        if error := run.exception():
            logger.error("The %s could not be told: %s", self._name, error, exc_info=error)


def _silent(run: Future[Any], began: float, heard: Callable[[], float], seconds: float) -> bool:
    """Wait until a call has ended (false), or nothing was heard of it for so long (true)."""
    while (left := max(began, heard()) + seconds - time.monotonic()) > 0:
        if wait([run], timeout=left).done:
            return False
    return not run.done()


BUCKET: Final = Outside("bucket", StorageAway)
PROVIDER: Final = Outside("provider of log-ins", LogInAway)
MAIL: Final = Outside("mail server")
BROKER: Final = Outside("broker")
