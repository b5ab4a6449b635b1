"""Tries what ships where nothing else was installed: the demo in a clean clone, the wheel alone.

It runs by Python's own library, before anything is installed, and ends with the first thing that
isn't as a newcomer would find it: `python3 .ci/fresh_machine.py`.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
import uuid
import venv
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parent.parent
INSTALL_SECONDS = 1200
STOP_SECONDS = 60
WAIT_SECONDS = 600
NOT_COMMITTED = (".git", ".venv", "node_modules", "var")
NOT_A_NEWCOMERS = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME", "MAKEFLAGS", "MAKELEVEL", "VAR_DIR")


class Program:
    """A program that serves pages; what it says goes into a file."""

    def __init__(self, folder: Path, *command: str | Path, **environment: str) -> None:
        self.folder = folder
        self.port = _free_port()
        self.output = folder.with_name(f"{folder.name}-{self.port}.txt")
        with self.output.open("wb") as file:
            self.process = subprocess.Popen(
                command,
                cwd=folder,
                env=_environment() | {"PORT": str(self.port), **environment},
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    def said(self) -> str:
        """What it has said so far, a progress bar's states each on a line."""
        return self.output.read_text().replace("\r", "\n")

    def wait_said(self, words: str, seconds: float = WAIT_SECONDS) -> str:
        """Wait until it has said these words; returns all that it has said."""
        deadline = time.monotonic() + seconds
        while words not in (said := self.said()):
            assert self.process.poll() is None, f"It ended:\n{said[-3000:]}"
            assert time.monotonic() < deadline, f"No “{words}” in {seconds:g} s:\n{said[-3000:]}"
            time.sleep(0.5)
        return said

    def page(
        self, path: str, headers: Mapping[str, str] | None = None, data: bytes | None = None
    ) -> str:
        """What an address answers, to a POST where there is data."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers or {})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def api(self, path: str, name: str = "", body: Any = None) -> Any:
        """What the API answers to somebody: to a POST where there is a body."""
        headers = {"Content-Type": "application/json"}
        if name:
            # With the password that the demo has printed.
            password = re.search(rf"^ +{name} +password (\S+)$", self.said(), re.MULTILINE)
            assert password, self.said()
            token = self.api("token/", body={"username": name, "password": password[1]})["token"]
            headers["Authorization"] = f"Token {token}"
        data = None if body is None else json.dumps(body).encode()
        return json.loads(self.page(f"/api/{path}", headers, data))

    def end(self) -> None:
        """End it by SIGTERM, and see that it leaves no process."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(STOP_SECONDS)
        left = list(_processes(self.folder))
        assert not left, f"Left after its end: {left}"
        print(self.said().splitlines()[-1], flush=True)


def main() -> None:
    """Try the demo twice in the same clone, and the wheel."""
    with tempfile.TemporaryDirectory(prefix="inquire-fresh-") as scratch, _killed_after(scratch):
        clone = Path(scratch).resolve() / "clone"
        if subprocess.run(["git", "clone", "--quiet", CHECKOUT, clone], check=False).returncode:
            # An exported tree, or one that another account owns.
            shutil.copytree(CHECKOUT, clone, ignore=shutil.ignore_patterns(*NOT_COMMITTED))
        demo = Program(clone, "make", "demo")
        demo.wait_said("Inquire Annotator is at", INSTALL_SECONDS)
        _tell("The demo serves its pages")
        # While the demo draws its images. What it has downloaded is in pip's cache now.
        empty = clone.with_name("empty")
        installing = _install_wheel(clone, empty)
        query, label = _label_first_image(demo)
        assert installing.wait(INSTALL_SECONDS) == 0
        _serve_wheel(empty)
        _wait_released(demo)
        demo.end()
        _second_demo(clone, query, label)


def _label_first_image(demo: Program) -> tuple[int, dict[str, Any]]:
    """Label the first image of a query over the API; returns the query's id and what is stored."""
    demo.wait_said("queries can be labeled")
    query = demo.api("queries/", "annotator")["results"][0]["id"]
    first = demo.api(f"queries/{query}/candidates/", "annotator")["results"][0]
    judgment = {
        "image": first["image"],
        "relevance": "relevant",
        "client_id": str(uuid.uuid4()),
        "seconds": 1.0,
    }
    demo.api(f"queries/{query}/judgments/", "annotator", [judgment])
    label = _only_label(demo, query)
    assert (label["image"], label["relevance"]) == (judgment["image"], "relevant"), label
    _tell("The first label is stored")
    return query, label


def _second_demo(clone: Path, query: int, label: dict[str, Any]) -> None:
    """`make demo` again, from what is there."""
    demo = Program(clone, "make", "demo")
    said = _wait_released(demo)
    for again in ("Setting up", "Embedding"):
        assert again not in said, said
    assert _only_label(demo, query) == label
    demo.end()


def _wait_released(demo: Program) -> str:
    """Wait for the release, and open the pages that the demo names; returns what it has said."""
    demo.wait_said("The release and its runs are there:")
    said = demo.wait_said("/leaderboard/")
    _tell("The release is there")
    [release] = demo.api("releases/", "researcher")["results"]
    for path in (f"/releases/{release['id']}/", f"/releases/{release['id']}/leaderboard/"):
        assert f"http://127.0.0.1:{demo.port}{path}\n" in said, said
        # Nobody is logged in.
        assert "Log in" in demo.page(path)
    return said


def _only_label(demo: Program, query: int) -> dict[str, Any]:
    """The only judgment on a query."""
    [label] = demo.api(f"queries/{query}/judgments/", "annotator")["results"]
    return dict(label)


def _install_wheel(clone: Path, folder: Path) -> subprocess.Popen[bytes]:
    """Begin to build the wheel and to install it in an empty environment."""
    venv.create(folder, with_pip=True)
    pip = "bin/python -m pip --quiet --quiet"
    script = f"{pip} wheel --no-deps --wheel-dir . {clone} && {pip} install --no-compile *.whl"
    return subprocess.Popen(["sh", "-c", script], cwd=folder, env=_environment())


def _serve_wheel(folder: Path) -> None:
    """What is installed in an environment alone serves behind a proxy's host."""
    served = Program(
        folder,
        folder / "bin/inquire-annotator",
        "serve",
        VAR_DIR=str(folder / "var"),
        EMBEDDING_MODEL="demo",
        ALLOWED_HOSTS="labels.example.org",
        HTTPS_ONLY="true",
        TRUST_PROXY="true",
    )
    served.wait_said("Inquire Annotator is at")
    proxy = {"Host": "labels.example.org", "X-Forwarded-Proto": "https"}
    page = served.page("/login/", proxy)
    assert "Log in" in page
    style = re.search(r'href="(/static/[^"]+\.css)"', page)
    assert style is not None
    assert "color" in served.page(style[1], proxy)
    _tell("The wheel serves its pages")
    served.end()


def _environment() -> dict[str, str]:
    """Ours without what an active virtual environment, or a `make` around us, adds."""
    kept = {name: value for name, value in os.environ.items() if name not in NOT_A_NEWCOMERS}
    active = os.environ.get("VIRTUAL_ENV")
    folders = os.environ["PATH"].split(os.pathsep)
    kept["PATH"] = os.pathsep.join(one for one in folders if not active or one != f"{active}/bin")
    return kept


def _processes(folder: Path | str) -> Iterator[tuple[int, str]]:
    """The processes that work in a folder or name it, with their command lines."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            if process.name != str(os.getpid()) and (
                str(folder) in line or (process / "cwd").resolve().is_relative_to(folder)
            ):
                yield int(process.name), line


@contextmanager
def _killed_after(folder: str) -> Iterator[None]:
    """Whatever happens, nothing goes on in a folder that is removed."""
    try:
        yield
    finally:
        for process, _ in _processes(folder):
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _tell(what: str) -> None:
    print(f"{what} after {time.monotonic() - BEGUN:.0f} s", flush=True)


BEGUN = time.monotonic()

if __name__ == "__main__":
    main()
