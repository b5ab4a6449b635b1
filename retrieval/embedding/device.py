"""The lock of a device: one slice of embedding at a time uses it."""

from __future__ import annotations

import hashlib
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from core.locks import lock_key, try_session_lock
from retrieval.encoding.encoders import default_device

PATIENCE_SECONDS: Final = 1.0
_POLL_SECONDS: Final = 0.05


@contextmanager
def device_held() -> Iterator[bool]:
    """Hold this process's device for the block; yields False if another process has it and doesn't
    release it within a second.

    A device is identified by host name, CUDA_VISIBLE_DEVICES and torch's name for it, so that
    workers with a GPU each don't wait for each other. The lock ends with the worker.
    """
    name = "\0".join(
        (socket.gethostname(), os.environ.get("CUDA_VISIBLE_DEVICES", ""), default_device())
    )
    number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")
    latest = time.monotonic() + PATIENCE_SECONDS
    while True:
        with try_session_lock(lock_key("device", number)) as held:
            if held or time.monotonic() >= latest:
                yield held
                return
        time.sleep(_POLL_SECONDS)
