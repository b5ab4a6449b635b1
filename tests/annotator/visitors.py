"""Visitors of a web server who send, or take, next to nothing."""

from __future__ import annotations

import resource
import selectors
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

HOST: Final = b"Host: 127.0.0.1\r\n"
DRIP_SECONDS: Final = 5.0
#: Who reads nothing doesn't see either that the connection was closed.
AGAIN_SECONDS: Final = 35.0
#: A reader's machine takes no more than this of an answer that nobody reads.
RECEIVED_BYTES: Final = 4096


@dataclass(frozen=True)
class Kind:
    """What a visitor sends at once, and then every DRIP_SECONDS."""

    first: bytes
    drip: bytes = b""
    reads: bool = True


KINDS: Final = {
    "idle": Kind(b""),
    "head": Kind(b"GET /healthz HTTP/1.1\r\n"),
    "one byte": Kind(b"G"),
    "body": Kind(b"POST /login/ HTTP/1.1\r\n" + HOST + b"Content-Length: 9000\r\n\r\na"),
    "dripping head": Kind(b"GET /healthz HTTP/1.1\r\n" + HOST + b"X-Long: ", b"a"),
    "dripping body": Kind(
        b"POST /login/ HTTP/1.1\r\n" + HOST + b"Content-Length: 9000\r\n\r\n", b"a"
    ),
}


def reader(path: str, headers: dict[str, str]) -> Kind:
    """Who asks for something large and then reads nothing of it."""
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return Kind("\r\n".join(lines).encode() + b"\r\n" + HOST + b"\r\n", reads=False)


@dataclass
class Visitors:
    """`number` visitors of a kind, each of whom comes again when the server closes the connection,
    while a `with` block runs.
    """

    port: int
    kind: Kind
    number: int
    opened: int = 0
    _ended: threading.Event = field(default_factory=threading.Event)
    _open: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def __enter__(self) -> Visitors:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 8192)), hard))
        for _ in range(self.number):
            self._come()
        self._thread = threading.Thread(target=self._stay)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()
        for visitor in self._there():
            visitor.close()
        self._open.close()

    def _there(self) -> list[socket.socket]:
        return [key.fileobj for key in self._open.get_map().values()]  # type: ignore[misc]

    def _come(self) -> None:
        visitor = socket.socket()
        if not self.kind.reads:
            visitor.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED_BYTES)
        visitor.settimeout(30)
        visitor.connect(("127.0.0.1", self.port))
        visitor.sendall(self.kind.first)
        visitor.setblocking(False)
        self._open.register(visitor, selectors.EVENT_READ)
        self.opened += 1

    def _come_again(self, visitor: socket.socket) -> None:
        self._open.unregister(visitor)
        visitor.close()
        self._come()

    def _stay(self) -> None:
        came = dripped = time.monotonic()
        while not self._ended.wait(0.05):
            now = time.monotonic()
            if self.kind.drip and now > dripped + DRIP_SECONDS:
                dripped = now
                for visitor in self._there():
                    with suppress(OSError):
                        visitor.send(self.kind.drip)
            if self.kind.reads:
                for key, _ in self._open.select(0):
                    self._listen(key.fileobj)  # type: ignore[arg-type]
            elif now > came + AGAIN_SECONDS:
                came = now
                for visitor in self._there():
                    self._come_again(visitor)

    def _listen(self, visitor: socket.socket) -> None:
        try:
            if visitor.recv(65_536):
                return
        except BlockingIOError:
            return
        except OSError:
            pass
        self._come_again(visitor)
