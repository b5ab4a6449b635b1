"""Temporary outages: no database, no storage, or no space on the disk."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError

#: Of PostgreSQL: https://www.postgresql.org/docs/current/errcodes-appendix.html
DISK_FULL_CODE = "53100"
#: "Program limit exceeded" is the statement's own fault.
LASTING_CLASS = "54"
#: PostgreSQL stops where it has no room for a segment of its log, which has 16 MiB.
LOG_SEGMENT_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Outage:
    """An outage, with the HTTP status, a sentence for people, and the seconds until a retry."""

    status: HTTPStatus
    sentence: str
    retry_after: int


DATABASE_AWAY = Outage(
    HTTPStatus.SERVICE_UNAVAILABLE, "The server's database doesn't answer now.", 5
)
STORAGE_AWAY = Outage(
    HTTPStatus.SERVICE_UNAVAILABLE, "The server's storage of files doesn't answer now.", 5
)
LOG_IN_AWAY = Outage(
    HTTPStatus.SERVICE_UNAVAILABLE, "The provider of log-ins doesn't answer now.", 5
)
SERVICE_AWAY = Outage(
    HTTPStatus.SERVICE_UNAVAILABLE, "Something that the server needs doesn't answer now.", 5
)
DISK_FULL = Outage(HTTPStatus.INSUFFICIENT_STORAGE, "The server's disk is full.", 30)


class ServiceAway(Exception):
    """A service outside this machine doesn't answer."""

    outage = SERVICE_AWAY


class StorageAway(ServiceAway):
    """The bucket of STORAGE_URL can't be reached, its server fails, or it gives no access."""

    outage = STORAGE_AWAY


class LogInAway(ServiceAway):
    """The provider of log-ins doesn't answer, and another request waits for it."""

    outage = LOG_IN_AWAY


def outage_of(error: BaseException | None) -> Outage | None:
    """Return the outage that caused an error, or None if something else did."""
    errors = list(causes(error))
    codes = [str(getattr(one, "pgcode", None) or "") for one in errors]
    if DISK_FULL_CODE in codes or any(_says_full(one) for one in errors):
        return DISK_FULL
    if away := next((one for one in errors if isinstance(one, ServiceAway)), None):
        return away.outage
    lost = any(isinstance(one, OperationalError | InterfaceError) for one in errors)
    if not lost or any(code.startswith(LASTING_CLASS) for code in codes):
        return None
    return DISK_FULL if free_bytes() < LOG_SEGMENT_BYTES else DATABASE_AWAY


def free_bytes() -> int:
    """Return the free bytes on the disk of VAR_DIR, which may not exist yet."""
    folder = Path(settings.VAR_DIR).absolute()
    return shutil.disk_usage(next(one for one in (folder, *folder.parents) if one.exists())).free


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an error, then what it came from, one after the other."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _says_full(error: BaseException) -> bool:
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
