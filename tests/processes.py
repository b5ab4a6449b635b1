"""Real processes for tests: a Celery worker, and a whole served application."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import psutil
import psycopg2
import pytest
from django.db import connection

from annotator.postgres.embedded import DATABASE
from annotator.postgres.guardian import DATABASE_USER, PORT, Layout
from core.parent_death import end_with_parent
from tests import ROOT


class Process(subprocess.Popen[bytes]):
    """A program in a session of its own that ends with the test's process, even if that is killed;
    `output` is the file that its output is appended to.
    """

    def __init__(self, command: Sequence[str], output: Path | None = None, **options: Any) -> None:
        parent = os.getpid()
        with open(output or os.devnull, "ab") as file:
            super().__init__(
                command,
                cwd=ROOT,
                stdout=file,
                stderr=file,
                start_new_session=True,
                preexec_fn=lambda: end_with_parent(parent),
                **options,
            )


def wait_for(
    happened: Callable[[], Any], *, seconds: float = 60, what: str = "it", pause: float = 0.1
) -> Any:
    """Return the first truthy answer of `happened`; raise AssertionError after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = happened()
        if answer:
            return answer
        time.sleep(pause)
    raise AssertionError(f"Waited {seconds:g} s in vain for {what}.")


def killed(process: "subprocess.Popen[Any]") -> None:
    """Kill a process, and wait until what it asked of the database has ended there too: a commit
    that was sent is carried out without it.
    """
    began = psutil.Process(process.pid).create_time()
    process.kill()
    assert process.wait() == -signal.SIGKILL

    def gone() -> bool:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid() AND backend_type = 'client backend' "
                # Those of earlier tests may still be open.
                "AND backend_start > to_timestamp(%s)",
                [began],
            )
            return bool(cursor.fetchone()[0] == 0)

    wait_for(gone, what="the killed process's connections to end")


def free_port() -> int:
    """A TCP port of the loopback address that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def database_url(settings_dict: dict[str, Any]) -> str:
    """The DATABASE_URL of a Django connection's settings (socket folders included)."""
    host = quote(str(settings_dict["HOST"]), safe="")
    return f"postgres://{settings_dict['USER']}@{host}:5432/{settings_dict['NAME']}"


@contextmanager
def mounted_disk(folder: Path) -> Iterator[Path]:
    """Mount a file system of 512 MiB, in memory, on a new folder; skips the test unless root."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def redis_server(folder: Path) -> Iterator["Redis"]:
    """A real Redis server that keeps nothing; skips the test where it is not installed."""
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed")
    server = Redis(folder)
    try:
        yield server
    finally:
        server.kill()


CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")


class PgBouncer:
    """A PgBouncer in transaction mode at the served application's DATABASE_POOL_URL, from the
    start, with the configuration of the pods but for addresses and passwords. Raises
    FileNotFoundError where it is not installed.
    """

    def __init__(self, folder: Path, served: "Served", connections: int) -> None:
        if PGBOUNCER is None:
            raise FileNotFoundError("pgbouncer is not installed")
        people = folder / "people.txt"
        people.write_text(f'"{DATABASE_USER}" ""\n')
        self.port = urlsplit(served.environment["DATABASE_POOL_URL"]).port or 0
        wait_for((served.var_dir / "postgres").exists, what="PostgreSQL's folder")
        text = (ROOT / "deploy/kubernetes/base/pgbouncer.ini").read_text()
        for wanted, here in {
            "host=inquire-database port=5432": f"host={Layout(served.var_dir).socket_dir} "
            f"port={PORT}",
            "listen_addr = 0.0.0.0": "listen_addr = 127.0.0.1",
            "listen_port = 6432": f"listen_port = {self.port}",
            "auth_type = scram-sha-256": f"auth_type = trust\nadmin_users = {DATABASE_USER}",
            "auth_file = /run/secrets/inquire/PGBOUNCER_USERS": f"auth_file = {people}",
            "default_pool_size = 20": f"default_pool_size = {connections}",
        }.items():
            assert wanted in text
            text = text.replace(wanted, here)
        # As root it runs as PostgreSQL's own account, which may enter the socket's folder.
        account = f"user = {(served.var_dir / 'postgres').owner()}\n" if os.geteuid() == 0 else ""
        self.config = folder / "pgbouncer.ini"
        self.config.write_text(f"{text}\n{account}")
        self.start()

    def start(self) -> None:
        """Start it, also after it was killed."""
        self.process = Process([str(PGBOUNCER), "-q", str(self.config)])
        wait_for(lambda: listens(self.port), what="PgBouncer", pause=0.02)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()


def pool_url() -> str:
    """A DATABASE_POOL_URL of a served application's own database, on a free port."""
    return f"postgres://{DATABASE_USER}@127.0.0.1:{free_port()}/{DATABASE}"


def listens(port: int) -> bool:
    """Whether a program of this machine listens on a TCP port."""
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


class Redis:
    """A Redis server on a port of its own, from the start."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.start()

    @property
    def url(self) -> str:
        """Its first database."""
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start it, also after it was killed."""
        self.process = Process(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
            ]
        )
        wait_for(lambda: listens(self.port), what="Redis", pause=0.02)

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


def fill(folder: Path) -> Path:
    """Write a file in `folder` until its disk has no room left; removing it makes room again."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (2**20, 2**12, 1):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return filler


class Worker:
    """A Celery worker process on the test database; `kill` is SIGKILL to it and its children."""

    def __init__(self, environment: dict[str, str], log: Path, *, concurrency: int = 2) -> None:
        self.log = log
        self.process = Process(
            [
                *(sys.executable, "-m", "celery", "-A", "annotator", "worker"),
                *("--concurrency", str(concurrency), "--without-gossip", "--without-mingle"),
            ],
            log,
            env={**os.environ, "DJANGO_SETTINGS_MODULE": "annotator.settings", **environment},
        )

    def alive(self) -> bool:
        """Whether the worker's main process runs."""
        return self.process.poll() is None

    def kill(self) -> None:
        """End the worker and its children at once, as the machine's power cut would."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def shard_worker(shard: int) -> list[str]:
    """The command of a shard's worker, as the systemd unit has it."""
    return [
        *(sys.executable, "-m", "celery", "-q", "-A", "annotator", "worker"),
        *("--queues", f"ranking.{shard}", "--hostname", f"ranking.{shard}@%h"),
        *("--pool", "threads", "--without-gossip", "--without-mingle"),
    ]


class Served:
    """`manage.py serve` (or another command) with a state folder and a port of its own."""

    def __init__(self, var_dir: Path, *arguments: str, **environment: str) -> None:
        self.var_dir = var_dir
        self.port = int(environment.get("PORT") or free_port())
        self.environment = {
            **os.environ,
            "VAR_DIR": str(var_dir),
            "PORT": str(self.port),
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "HTTPS_ONLY": "true",
            "EMBEDDING_MODEL": "demo",
            "LOG_LEVEL": "INFO",
            # What a hand-in draws at random is for the tests of it alone.
            "RELEASE_AUDIT_SHARE": "0",
            "SECOND_OPINION_POSITIVE": "0",
            "SECOND_OPINION_NEGATIVE": "0",
            "SECOND_OPINION_BOUNDARY": "0",
            "SECOND_OPINION_LOOKALIKE": "0",
            **environment,
        }
        var_dir.parent.mkdir(parents=True, exist_ok=True)
        self.output = var_dir.parent / f"{var_dir.name}-output.txt"
        self.arguments = arguments or ("serve",)
        self.start()

    def start(self) -> None:
        """Start it, also after it has ended."""
        self.process = Process(
            [sys.executable, "manage.py", *self.arguments], self.output, env=self.environment
        )

    @property
    def url(self) -> str:
        """The address of the pages, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    def health(self) -> dict[str, Any]:
        """The body of /healthz, or an empty one where nothing answers."""
        try:
            with urllib.request.urlopen(f"{self.url}/healthz", timeout=10) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as answer:
            return dict(json.load(answer)) if answer.code == 503 else {}
        except (OSError, ValueError):
            return {}

    def healthy(self) -> bool:
        """Whether database, migrations and worker are all ok; raises if the command ended."""
        if self.process.poll() is not None:
            raise AssertionError(f"It ended: {self.output.read_text()}")
        return self.health().get("status") == "ok"

    def wait_healthy(self, seconds: float = 90) -> "Served":
        """Wait until everything works."""
        wait_for(self.healthy, seconds=seconds, what=f"{self.url}/healthz", pause=0.2)
        return self

    def manage(self, *arguments: str, check: bool = True) -> "subprocess.CompletedProcess[str]":
        """Run a management command on the same state folder; its output is captured."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            capture_output=True,
            text=True,
            check=check,
            timeout=300,
        )

    @contextmanager
    def database(self) -> Iterator[Any]:
        """A cursor on the served database."""
        own = {"USER": DATABASE_USER, "HOST": Layout(self.var_dir).socket_dir, "NAME": DATABASE}
        server = psycopg2.connect(self.environment.get("DATABASE_URL") or database_url(own))
        try:
            with server, server.cursor() as cursor:
                yield cursor
        finally:
            server.close()

    def processes(self) -> list[psutil.Process]:
        """Every process that works on this state folder, by its environment or arguments."""
        return [process for process in psutil.process_iter() if self._ours(process)]

    def find(self, *words: str) -> list[psutil.Process]:
        """Those whose command line holds all of `words`, oldest first."""
        found = []
        for process in self.processes():
            try:
                line = " ".join(process.cmdline())
                if all(word in line for word in words):
                    found.append((process.create_time(), process.pid, process))
            except psutil.NoSuchProcess:
                continue
        return [process for _time, _pid, process in sorted(found, key=lambda item: item[:2])]

    def _ours(self, process: psutil.Process) -> bool:
        try:
            if process.pid == os.getpid() or process.status() == psutil.STATUS_ZOMBIE:
                return False
            named = str(self.var_dir) in " ".join(process.cmdline())
            return named or process.environ().get("VAR_DIR") == str(self.var_dir)
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            return False

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal to the command alone and return its exit status once it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(90)

    def end(self) -> None:
        """End it in a hurry: when it is asked again, it kills what has not ended yet."""
        while self.process.poll() is None:
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.5)
