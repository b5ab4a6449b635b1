"""Opening files that others name. A pipe or a device, which one might wait for, is refused."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


class NotRegular(OSError):
    """What a path leads to is no regular file."""


def open_regular(path: Path, *, flags: int = 0) -> BinaryIO:
    """Open a regular file to be read as bytes; `flags` are those of os.open besides.

    Raises OSError as `open`, NotRegular for a pipe, socket or device.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags)
    try:
        mode = os.fstat(handle).st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise NotRegular(errno.EINVAL, "Not a regular file", str(path))
        # Which refuses a folder.
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise
