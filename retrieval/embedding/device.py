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


def device_number() -> int:
    """The number of this process's device: of host name, CUDA_VISIBLE_DEVICES and torch's name for
    it, so that workers with a GPU each don't wait for each other.
    """
    name = "\0".join(
        (socket.gethostname(), os.environ.get("CUDA_VISIBLE_DEVICES", ""), default_device())
    )
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:6], "big")


def device_name() -> str:
    """What people call this process's device: "CPU", or torch's name of the GPU and which."""
    import torch

    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not torch.cuda.is_available():
        return f"CPU {visible}".strip()
    return f"{torch.cuda.get_device_name()} {visible.split(',')[0] or '0'}"


def device_lock(number: int) -> int:
    """The key of the lock of the device with this number."""
    return lock_key("device", number)


@contextmanager
def device_held() -> Iterator[bool]:
    """Hold this process's device for the block; yields False if another process has it and doesn't
    release it within a second.

    The lock ends with the worker.
    """
    key = device_lock(device_number())
    latest = time.monotonic() + PATIENCE_SECONDS
    while True:
        with try_session_lock(key) as held:
            if held or time.monotonic() >= latest:
                yield held
                return
        time.sleep(_POLL_SECONDS)
