"""gunicorn's worker with waitress's connections: whoever is silent holds no thread.

gunicorn has the socket, and starts, watches and ends the processes. In each of them one loop of
waitress reads whole requests and sends what is answered, and threads are only for the application.
What is added to waitress are limits of time and room, and an end that loses no request.
"""

import json
import os
import resource
import socket
import time
from collections import deque
from typing import Any, Final

from django.conf import settings
from gunicorn.workers.base import Worker
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.buffers import OverflowableBuffer
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher, WSGITask
from waitress.utilities import Error

from annotator.web.bodies import REST_OF_THE_FORM
from core.outages import DISK_FULL, free_bytes

HEAD_SECONDS: Final = 10.0
"""How long the head of a request may take, from its first byte."""
BODY_SECONDS: Final = 15.0
"""How long a visitor may be silent in the body of a request."""
READER_SECONDS: Final = 30.0
"""How long a visitor may take nothing of an answer."""
IDLE_SECONDS: Final = 75.0
"""How long a connection stays open between requests: longer than proxies keep theirs."""
LINGER_SECONDS: Final = 2.0
"""The same while the process ends: a request may be on its way."""
CONNECTIONS: Final = 4096
"""Most connections of a process."""
FILES_EACH: Final = 3
"""Descriptors for a connection: its own, a body's and an answer's."""
ACCEPTED: Final = 64
"""Most connections that are let in at once, so that other processes get some."""
HEAD_BYTES: Final = 65_536
"""A filter of hundreds of species is in a request's first line."""
SEND_BYTES: Final = 262_144
"""What the system holds of an answer that isn't taken; by itself it would hold megabytes."""


class NoRoom(Error):
    """The answer to a body for which the disk has no room."""

    code = DISK_FULL.status.value
    reason = DISK_FULL.status.phrase

    def to_response(self, ident: str | None = None) -> tuple[str, list[tuple[str, str]], bytes]:
        """Status, headers and body: a problem document, as the application's (RFC 9457)."""
        told = {"type": "about:blank", "title": self.reason, "status": self.code}
        body = json.dumps(told | {"detail": DISK_FULL.sentence}).encode()
        headers = [
            ("Content-Type", "application/problem+json"),
            ("Retry-After", str(DISK_FULL.retry_after)),
        ]
        return f"{self.code} {self.reason}", headers, body


class Body(OverflowableBuffer):
    """A request's body, which waits on the disk where it is large, until it is whole."""

    fits = True
    """Whether all of it found room, and left DISK_MIN_FREE_BYTES; else it is let go by."""

    def append(self, data: bytes) -> None:
        """Add what has come."""
        if not self.fits:
            return
        try:
            if len(self) > self.overflow and free_bytes() < settings.DISK_MIN_FREE_BYTES:
                raise OSError
            super().append(data)
        except OSError:
            self.fits = False
            self.close()


class Request(HTTPRequestParser):
    """A request that is being read."""

    command = ""

    def __init__(self, adj: Adjustments) -> None:
        super().__init__(adj)
        self.began = time.time()

    def parse_header(self, header_plus: bytes) -> None:
        """Read the head, and prepare for the body."""
        super().parse_header(header_plus)
        if self.body_rcv is not None:
            self.body_rcv.buf = Body(self.adj.inbuf_overflow)

    def received(self, data: bytes) -> int:
        """Take the next bytes, and return how many."""
        count = int(super().received(data))
        if self.completed and self.body_rcv is not None and not self.body_rcv.buf.fits:
            self.error = NoRoom("")
        return count


class Answer(WSGITask):
    """The answer to a request: the last of its connection while the process ends."""

    def build_response_header(self) -> bytes:
        """The answer's head."""
        if self.channel.server.ending:
            self.set_close_on_finish()
        return bytes(super().build_response_header())


class Turns:
    """Requests that wait for a thread: what writes comes before what reads, so that no burst of
    pages and downloads delays a save. Where 300 downloads began at once, the longest save took 0.2
    s, and in turn 1.1 s (test_silent_visitors.py).
    """

    def __init__(self) -> None:
        self.writes: deque[Any] = deque()
        self.reads: deque[Any] = deque()

    def __len__(self) -> int:
        return len(self.writes) + len(self.reads)

    def append(self, channel: Any) -> None:
        """Add the next request of a connection."""
        reads = channel.requests[0].command in ("GET", "HEAD")
        (self.reads if reads else self.writes).append(channel)

    def popleft(self) -> Any:
        """The connection whose turn it is."""
        return (self.writes or self.reads).popleft()


class Connection(HTTPChannel):
    """A visitor's connection."""

    parser_class = Request
    task_class = Answer

    def is_overdue(self, now: float) -> bool:
        """Whether the visitor has been silent for too long; not while the application works."""
        silent: float = now - self.last_activity
        if self.total_outbufs_len:
            return silent > (LINGER_SECONDS if self.server.ending else READER_SECONDS)
        if self.requests:
            return False
        if self.server.ending:
            return silent > LINGER_SECONDS
        if self.request is None:
            return silent > IDLE_SECONDS
        if not self.request.headers_finished:
            return bool(now - self.request.began > HEAD_SECONDS)
        return silent > BODY_SECONDS

    def is_waiting(self) -> bool:
        """Whether it is for the visitor to go on."""
        return bool(self.total_outbufs_len or not self.requests)


class Server(TcpWSGIServer):
    """The connections of one listening socket."""

    channel_class = Connection
    ending = False

    def set_socket_options(self, conn: socket.socket) -> None:
        """Prepare a new connection."""
        super().set_socket_options(conn)
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BYTES)

    def handle_accept(self) -> None:
        """Let in who waits, and not one alone: where 1,200 came at once, the longest save took 0.05
        to 0.07 s, and one by one 0.13 to 0.18 (test_silent_visitors.py).
        """
        for _ in range(ACCEPTED):
            before = len(self.active_channels)
            super().handle_accept()
            if len(self.active_channels) == before:
                break

    def maintenance(self, now: float) -> None:
        """Close what is overdue; where connections get scarce, also those that are silent longest,
        so that new visitors come in.
        """
        channels = list(self.active_channels.values())
        waiting = sorted(filter(Connection.is_waiting, channels), key=lambda c: c.last_activity)
        scarce = max(0, len(channels) - self.adj.connection_limit * 3 // 4)
        for number, channel in enumerate(waiting):
            if number < scarce or channel.is_overdue(now):
                channel.handle_close()

    def end(self) -> None:
        """Take no more connections."""
        self.ending = True
        self.accepting = False


class WaitressWorker(Worker):
    """A process of the web server."""

    servers: tuple[Server, ...] = ()

    def run(self) -> None:
        """Serve until we are asked to end or gunicorn is gone; then answer what has been asked."""
        adjustments = Adjustments(
            threads=self.cfg.threads,
            backlog=self.cfg.backlog,
            connection_limit=_connection_limit(),
            asyncore_use_poll=True,
            cleanup_interval=1,
            recv_bytes=65_536,
            max_request_header_size=HEAD_BYTES,
            max_request_body_size=settings.RUN_MAX_BYTES + REST_OF_THE_FORM + 1,
            # A search ends when its visitor has left, which is seen where connections are read on.
            channel_request_lookahead=1,
            log_socket_errors=False,
            # Whether they are trusted is Django's to judge (TRUST_PROXY).
            clear_untrusted_proxy_headers=False,
        )
        dispatcher = ThreadedTaskDispatcher()
        dispatcher.queue = Turns()
        dispatcher.set_thread_count(adjustments.threads)
        connections: dict[int, Any] = {}
        self.servers = tuple(
            Server(
                self.wsgi,
                map=connections,
                _sock=listener.sock,
                dispatcher=dispatcher,
                adj=adjustments,
                sockinfo=(listener.sock.family, listener.sock.type, 0, listener.getsockname()),
                bind_socket=False,
            )
            for listener in self.sockets
        )
        while self.alive and self.ppid == os.getppid():
            self._turn(connections)
        for server in self.servers:
            server.end()
        deadline = time.monotonic() + self.cfg.graceful_timeout
        while any(one.active_channels for one in self.servers) and time.monotonic() < deadline:
            self._turn(connections)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """End at once, not after the loop's turn (SIGTERM)."""
        super().handle_exit(sig, frame)
        for server in self.servers:
            server.pull_trigger()

    def _turn(self, connections: dict[int, Any]) -> None:
        wasyncore.loop(timeout=1, use_poll=True, map=connections, count=1)
        self.notify()


def _connection_limit() -> int:
    """How many connections the limit of open files allows, after it was raised as far as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_EACH * CONNECTIONS
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return min(CONNECTIONS, soft // FILES_EACH)
