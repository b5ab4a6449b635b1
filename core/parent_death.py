"""Processes that do not outlive the one that started them, even when that is killed (Linux), and
learn that it was asked to end.
"""

import ctypes
import mmap
import os
import signal
import sys
import threading
import time

PR_SET_PDEATHSIG = 1
WATCH_SECONDS = 1.0
# Shared with the processes that are forked from this one.
_ending = mmap.mmap(-1, 1)


def end_soon() -> None:
    """Have `ending` be true from now on, here and in the processes forked from this one."""
    _ending[0] = 1


def ending() -> bool:
    """Whether long work should stop at the next piece: the process was asked to end."""
    return bool(_ending[0])


def end_with_parent(parent: int, number: int = signal.SIGTERM) -> None:
    """Ask the kernel to send this process a signal, which ends it even where the parent ignores it,
    when the process `parent` ends.

    To be called in a new child before it starts its program. Where the parent's death came first,
    the process ends at once. The kernel watches the parent's thread that forked, so the child must
    be started from a thread that lives as long as the child may: the main thread.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, number)
    signal.signal(number, signal.SIG_DFL)
    if os.getppid() != parent:
        os._exit(1)


def watch_parent() -> None:
    """End this process within a second of its parent's death, by a thread that watches it.

    For children that are forked from threads which end before the parent does.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(WATCH_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()
