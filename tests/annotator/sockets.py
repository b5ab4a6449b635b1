"""Whom requests ask outside of this process: connections and names that are looked up, as Python's
audit events tell them.

PostgreSQL's client isn't written in Python, so it is not among them.
"""

from __future__ import annotations

import socket
import sys
from typing import Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from core.log_lines import request_id

EVENTS: Final = frozenset(
    {
        *("socket.connect", "socket.sendto", "socket.sendmsg"),
        *("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"),
    }
)
_permitted = {socket.gethostname()}
"""All that were permitted so far: a call that was given up may go on into the next test."""
asked: list[str] = []
"""What requests have asked of others than `permitted`, each with the request's own address."""


class Forbidden(RuntimeError):
    """A request asks somebody outside that it must not."""


def permitted() -> set[str]:
    """The hosts with their ports that requests may ask: the bucket, the provider of log-ins, the
    mail server and the broker."""
    if settings.EMAIL_URL:
        _permitted.add(f"{settings.EMAIL_HOST}:{settings.EMAIL_PORT}")
    for address in (settings.S3_ENDPOINT_URL, settings.OIDC_ISSUER, settings.CELERY_BROKER_URL):
        parts = urlsplit(address)
        if parts.hostname and parts.port:
            _permitted.add(f"{parts.hostname}:{parts.port}")
    return _permitted


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _listening or event not in EVENTS or request_id.get() is None:
        return
    # An address follows the socket, and a name comes first.
    named = event.startswith("socket.get")
    address = arguments[:2] if named else arguments[-1]
    one = ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
    if one not in permitted():
        asked.append(f"{_path()} asks {one} ({event})")
        raise Forbidden(asked[-1])


def _path() -> str:
    """The address of the request that this thread answers."""
    frame: Any = sys._getframe()
    path = "a request"
    while frame is not None:
        path = getattr(frame.f_locals.get("request"), "path", path)
        frame = frame.f_back
    return str(path)


_added: list[bool] = []
_listening: list[bool] = []


def listen() -> None:
    """Begin to hear of them. A hook can't be taken away again, so there is one a process."""
    asked.clear()
    _listening.append(True)
    if not _added:
        _added.append(True)
        sys.addaudithook(_heard)


def stop() -> None:
    """Hear of nobody any more."""
    _listening.clear()
