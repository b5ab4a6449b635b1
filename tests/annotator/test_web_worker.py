"""The web server's processes, with a small application in place of ours: what visitors send and
take, and when, is what counts here.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import ClientDisconnected

from annotator.processes import web_worker
from annotator.processes.web_worker import Server, Turns
from tests.annotator.visitors import HOST, KINDS, Visitors, reader
from tests.processes import Process, free_port, listens, wait_for

LARGE = 64 << 20


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
    """Answers what a path asks for."""
    path, body = environ["PATH_INFO"], environ["wsgi.input"].read()
    if path == "/file":
        start_response("200 OK", [("Content-Length", str(LARGE))])
        file = TemporaryFile()  # noqa: SIM115 (the server closes it)
        file.truncate(LARGE)
        return environ["wsgi.file_wrapper"](file)
    if path == "/left":
        began = time.monotonic()
        while not environ["waitress.client_disconnected"]() and time.monotonic() < began + 20:
            time.sleep(0.02)
        Path(environ["QUERY_STRING"]).write_text(f"{time.monotonic() - began:.1f}")
    if path == "/slow":
        Path(environ["QUERY_STRING"]).touch()
        time.sleep(2)
    answer = environ.get(f"HTTP_{environ['QUERY_STRING']}", f"{len(body)} bytes").encode()
    start_response("200 OK", [("Content-Length", str(len(answer)))])
    return [answer]


@contextmanager
def web_server(folder: Path, **environment: str) -> Iterator[SimpleNamespace]:
    """A process of two threads with the application: its `port`, its gunicorn and its log."""
    port, log = free_port(), folder / "web.log"
    command = [
        *(sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", "--threads", "2"),
        *("--worker-class", "annotator.processes.web_worker.WaitressWorker"),
        *("--graceful-timeout", "20", "--no-control-socket", f"{__name__}:application"),
    ]
    environment = {"VAR_DIR": str(folder / "var"), "DISK_MIN_FREE_BYTES": "0", **environment}
    gunicorn = Process(
        command,
        log,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"} | environment,
    )
    try:
        wait_for(lambda: listens(port), what="the web server", pause=0.05)
        # gunicorn listens before the process is there.
        ask(port).read()
        yield SimpleNamespace(port=port, gunicorn=gunicorn, log=log)
    finally:
        gunicorn.terminate()
        gunicorn.wait(30)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    with web_server(tmp_path_factory.mktemp("web")) as server:
        yield server


def ask(
    port: int, path: str = "/", body: bytes | None = None, **headers: str
) -> http.client.HTTPResponse:
    """The answer to one request, on a connection of its own."""
    server = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    server.request("GET" if body is None else "POST", path, body, headers)
    return server.getresponse()


def test_silent_visitors_hold_no_thread(web: SimpleNamespace) -> None:
    kinds = [*KINDS.values(), reader("/file", {})]
    with ExitStack() as there:
        for kind in kinds:
            there.enter_context(Visitors(web.port, kind, 20))
        for _ in range(20):
            assert ask(web.port).read() == b"0 bytes"


def test_a_body_may_come_slowly_and_in_chunks(web: SimpleNamespace) -> None:
    def pieces() -> Iterator[bytes]:
        for _ in range(3):
            yield bytes(400_000)
            time.sleep(0.2)

    server = http.client.HTTPConnection("127.0.0.1", web.port, timeout=10)
    server.request("POST", "/", pieces(), encode_chunked=True)
    assert server.getresponse().read() == b"1200000 bytes"
    server.request("POST", "/", pieces(), {"Content-Length": "1200000"})
    assert server.getresponse().read() == b"1200000 bytes"


def test_who_leaves_is_seen_before_the_answer(web: SimpleNamespace, tmp_path: Path) -> None:
    told = tmp_path / "told"
    with socket.create_connection(("127.0.0.1", web.port)) as visitor:
        visitor.sendall(f"GET /left?{told} HTTP/1.1\r\n".encode() + HOST + b"\r\n")
        time.sleep(0.3)
    assert wait_for(lambda: told.exists() and told.read_text(), what="word of it") < "5"


def test_headers_are_handed_on_as_they_came(web: SimpleNamespace) -> None:
    forwarded = {"X-Forwarded-Proto": "https", "X_Forwarded_Proto": "wrong"}
    assert ask(web.port, "/?X_FORWARDED_PROTO", **forwarded).read() == b"https"


def test_what_is_too_large_or_malformed_is_refused(web: SimpleNamespace) -> None:
    assert ask(web.port, "/?X_LONG", **{"X-Long": "a" * 60_000}).status == 200
    assert ask(web.port, **{"X-Long": "a" * web_worker.HEAD_BYTES}).status == 431
    assert ask(web.port, "/", b"", **{"Content-Length": str(2**40)}).status == 413
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as visitor:
        visitor.sendall(b"\0\r\n\r\n")
        assert visitor.recv(100).startswith(b"HTTP/1.0 400 ")
    assert ask(web.port).status == 200


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_finds_no_room_is_refused_when_it_has_come(
    tmp_path: Path, chunked: bool
) -> None:
    with web_server(tmp_path, DISK_MIN_FREE_BYTES=str(2**60)) as server:
        assert ask(server.port, "/", bytes(500_000)).status == 200
        asked = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        body = iter([bytes(400_000)] * 9) if chunked else bytes(3_600_000)
        asked.request("POST", "/", body, encode_chunked=chunked)
        answer = asked.getresponse()
        assert (answer.status, answer.headers["Retry-After"]) == (507, "30")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert json.load(answer)["detail"] == "The server's disk is full."
        assert ask(server.port).status == 200


def test_the_end_answers_what_was_asked_and_waits_for_nobody_silent(tmp_path: Path) -> None:
    with web_server(tmp_path) as server, ExitStack() as there:
        kinds = [KINDS["idle"], KINDS["head"], KINDS["body"], reader("/file", {})]
        opened = [socket.create_connection(("127.0.0.1", server.port)) for _ in kinds]
        for visitor, kind in zip(opened, kinds, strict=True):
            there.enter_context(visitor)
            visitor.sendall(kind.first)
        working = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
        begun = tmp_path / "begun"
        working.request("GET", f"/slow?{begun}")
        wait_for(begun.exists, what="the request to begin", pause=0.02)
        began = time.monotonic()
        server.gunicorn.terminate()
        answer = working.getresponse()
        assert answer.read() == b"0 bytes"
        assert answer.headers["Connection"] == "close"
        assert server.gunicorn.wait(30) == 0
        assert time.monotonic() - began < 15


def test_no_process_outlives_its_gunicorn(tmp_path: Path) -> None:
    with web_server(tmp_path) as server:
        wait_for(lambda: ask(server.port).status == 200, what="an answer")
        (process,) = psutil.Process(server.gunicorn.pid).children()
        server.gunicorn.send_signal(signal.SIGKILL)
        process.wait(10)


def test_what_writes_comes_before_what_reads() -> None:
    def asked(command: str) -> SimpleNamespace:
        return SimpleNamespace(requests=[SimpleNamespace(command=command)])

    turns = Turns()
    for command in ("GET", "POST", "HEAD", "DELETE", ""):
        turns.append(asked(command))
    assert len(turns) == 5
    order = [turns.popleft().requests[0].command for _ in range(5)]
    assert order == ["POST", "DELETE", "", "GET", "HEAD"]
    assert not turns


class Loop:
    """A server that is turned by hand, and a visitor's connection to it."""

    def __init__(self, limit: int = 100) -> None:
        self.sockets: dict[int, Any] = {}
        listening = socket.create_server(("127.0.0.1", 0))
        self.tasks: list[Any] = []
        self.server = Server(
            application,
            map=self.sockets,
            _sock=listening,
            dispatcher=SimpleNamespace(add_task=self.tasks.append),
            adj=Adjustments(connection_limit=limit, asyncore_use_poll=True, cleanup_interval=10**6),
            sockinfo=(listening.family, listening.type, 0, listening.getsockname()),
            bind_socket=False,
        )
        self.address = listening.getsockname()

    def visit(self, first: bytes) -> socket.socket:
        visitor = socket.create_connection(self.address)
        visitor.sendall(first)
        self.turn()
        return visitor

    def turn(self) -> None:
        for _ in range(5):
            wasyncore.loop(timeout=0.02, use_poll=True, map=self.sockets, count=1)

    def stays(self, seconds: float) -> bool:
        """Whether the only visitor is still there after seconds of silence."""
        self.server.maintenance(time.time() + seconds)
        return bool(self.server.active_channels)


@pytest.mark.parametrize(
    ("first", "seconds"),
    [
        (b"", web_worker.IDLE_SECONDS),
        (b"G", web_worker.HEAD_SECONDS),
        (b"GET / HTTP/1.1\r\nX-Long: ", web_worker.HEAD_SECONDS),
        (b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\na", web_worker.BODY_SECONDS),
        (b"GET / HTTP/1.1\r\n\r\n", float("inf")),
    ],
    ids=["idle", "byte", "head", "body", "the application works"],
)
def test_how_long_a_visitor_may_be_silent(first: bytes, seconds: float) -> None:
    loop = Loop()
    with loop.visit(first):
        assert loop.stays(min(seconds, 10**6) - 1)
        assert loop.stays(seconds + 1) == (seconds == float("inf"))


def test_a_head_may_not_drip_but_a_body_may() -> None:
    for first, stays in ((b"GET / HTTP/1.1\r\nX-Long: ", False), (KINDS["body"].first, True)):
        loop = Loop()
        with loop.visit(first) as visitor:
            (channel,) = loop.server.active_channels.values()
            channel.request.began -= web_worker.HEAD_SECONDS + 1
            visitor.sendall(b"a")
            loop.turn()
            assert loop.stays(0) == stays


def test_who_takes_nothing_of_an_answer_is_cut_off_though_it_is_still_written() -> None:
    loop = Loop()
    with loop.visit(b"GET / HTTP/1.1\r\n\r\n"):
        (channel,) = loop.server.active_channels.values()
        channel.write_soon(bytes(LARGE >> 3))
        assert loop.tasks == [channel]
        assert loop.stays(web_worker.READER_SECONDS - 1)
        assert not loop.stays(web_worker.READER_SECONDS + 1)
        with pytest.raises(ClientDisconnected):
            channel.write_soon(b"more")


def test_new_visitors_come_in_where_silent_ones_have_all_connections() -> None:
    loop = Loop(limit=20)
    with ExitStack() as there:
        # The server's own two sockets count.
        for _ in range(18):
            there.enter_context(loop.visit(b"G"))
        late = there.enter_context(loop.visit(b"GET / HTTP/1.1\r\n\r\n"))
        assert loop.tasks == []
        loop.server.maintenance(time.time())
        loop.turn()
        assert len(loop.tasks) == 1
        assert late.getsockname() == loop.tasks[0].addr
