"""One thread for all that torch computes on the processor.

OpenMP keeps a team of threads for every thread that computes. Where the teams together have more
threads than there are cores, none waits actively any more, and a model of small steps takes up to
twice as long. And glibc gives a freed block of some megabytes back to the system, which clears its
pages when the next step asks for them; here it keeps what it has had.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, Final, TypeVar

# Parameters of mallopt(3) and their values: blocks below a gigabyte come from what the process has,
# which it doesn't give back, and grows by at least 64 MB.
_MMAP_THRESHOLD, _TRIM_THRESHOLD, _TOP_PAD = -3, -1, -2
_KEEP: Final = {_MMAP_THRESHOLD: 2**30, _TRIM_THRESHOLD: 2**31 - 1, _TOP_PAD: 64 * 2**20}

Result = TypeVar("Result")
_here = threading.local()
_queues: dict[int, SimpleQueue[Any]] = {}
_lock = threading.Lock()


def compute(device: str, work: Callable[[], Result]) -> Result:
    """Return what `work` returns, or raise what it raises: on that thread where the device is the
    processor, else at once.
    """
    if device != "cpu" or getattr(_here, "computes", False):
        return work()
    asked: Future[Result] = Future()
    _queue().put((work, asked))
    return asked.result()


def _queue() -> SimpleQueue[Any]:
    """What this process's thread is asked; a forked one doesn't have its parent's."""
    process = os.getpid()
    with _lock:
        if process not in _queues:
            _queues.clear()
            _queues[process] = SimpleQueue()
            # A process ends without waiting for a model that is being loaded.
            threading.Thread(
                target=_serve, args=(_queues[process],), name="compute", daemon=True
            ).start()
        return _queues[process]


def _serve(queue: SimpleQueue[Any]) -> None:
    _begin()
    while True:
        work, asked = queue.get()
        try:
            asked.set_result(work())
        except BaseException as error:
            asked.set_exception(error)
        # What it worked on is free while there is nothing to do.
        del work, asked


def _begin() -> None:
    _here.computes = True
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        for parameter, value in _KEEP.items():
            libc.mallopt(parameter, value)
