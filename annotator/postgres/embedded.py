"""A PostgreSQL server of our own for one VAR_DIR, started when it is needed.

Every process that connects is a user: it holds a share of `users.lock` for as long as it lives. The
server is run by `annotator/postgres/guardian.py`, a process that stops it when no user is left.
"""

import fcntl
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

from annotator.postgres import guardian
from annotator.postgres.guardian import (
    DATABASE_USER,
    GIVES_UP,
    POLL_SECONDS,
    PORT,
    STOP_SECONDS,
    EmbeddedPostgresError,
    Layout,
    check_room,
    locked,
)

DATABASE = "inquire"
START_SECONDS = 90
START_ATTEMPTS = 20


class EmbeddedPostgres:
    """A user's handle on the server of `var_dir`. Threads of one process may share it."""

    def __init__(self, var_dir: Path) -> None:
        self.layout = Layout(var_dir)
        self._users_lock: IO[bytes] | None = None
        self._mutex = threading.Lock()

    def enter(self) -> None:
        """Count as a user from now until `leave` or the end of the process."""
        with self._mutex:
            self._enter()

    def ensure(self) -> None:
        """Return once the server takes connections, having started it if nothing listens.

        Raises EmbeddedPostgresError when it cannot be started within START_SECONDS or
        START_ATTEMPTS (the first may fail while the children of a killed server go away).
        """
        with self._mutex:
            self._enter()
            with locked(self.layout.start_lock):
                self._start()

    def leave(self, *, wait: bool = False) -> None:
        """Stop using the server; with `wait`, return when it has stopped or others use it."""
        with self._mutex:
            if self._users_lock is not None:
                self._users_lock.close()
                self._users_lock = None
        deadline = time.monotonic() + STOP_SECONDS
        while wait and self._guarded() and not self._used() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS / 2)

    def _enter(self) -> None:
        if self._users_lock is None:
            self.layout.prepare()
            file = self.layout.users_lock.open("ab")
            fcntl.flock(file, fcntl.LOCK_SH)
            self._users_lock = file

    def _start(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        guardian: subprocess.Popen[bytes] | None = None
        attempts = 0
        while time.monotonic() < deadline and attempts <= START_ATTEMPTS:
            if _listens(self.layout.socket):
                if _ready(self.layout):
                    return
            elif guardian is None or guardian.poll() is not None:
                if guardian is not None:
                    if guardian.returncode == GIVES_UP:
                        break
                    time.sleep(POLL_SECONDS)
                # At once: each thread of the web server waits for its turn to try.
                check_room(self.layout)
                guardian = _spawn_guardian(self.layout)
                attempts += 1
            time.sleep(POLL_SECONDS / 2)
        raise EmbeddedPostgresError(
            f"The embedded PostgreSQL did not start. Its log, {self.layout.log}, ends:\n"
            f"{_last_lines(self.layout.log)}"
        )

    def _guarded(self) -> bool:
        return self.layout.guardian_lock.exists() and not _free(self.layout.guardian_lock)

    def _used(self) -> bool:
        """Whether another process holds the users' lock as a user (the guardian's is exclusive)."""
        with self.layout.users_lock.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                try:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                except BlockingIOError:
                    return False
                return True
        return False


_handles: dict[Path, EmbeddedPostgres] = {}
_handles_mutex = threading.Lock()


def embedded_postgres(var_dir: Path) -> EmbeddedPostgres:
    """The one handle of this process, and of those forked from it, for `var_dir`."""
    with _handles_mutex:
        return _handles.setdefault(Path(var_dir).resolve(), EmbeddedPostgres(var_dir))


def _free(path: Path) -> bool:
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(5)
        try:
            probe.connect(str(path))
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        except BlockingIOError:  # the queue of a busy server is full
            return True
        return True


def _ready(layout: Layout) -> bool:
    """Whether the server takes connections and holds our database, which is made if missing."""
    import psycopg2

    try:
        connection = psycopg2.connect(
            host=str(layout.socket_dir), port=PORT, user=DATABASE_USER, dbname="postgres"
        )
    except psycopg2.OperationalError as error:
        passing = ("the database system is", "closed the connection")
        if any(words in str(error) for words in passing) or not _listens(layout.socket):
            return False
        raise
    try:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_database WHERE datname = %s", [DATABASE])
            if cursor.fetchone() is None:
                cursor.execute(f"CREATE DATABASE {DATABASE}")
    finally:
        connection.close()
    return True


def _last_lines(log: Path) -> str:
    try:
        return "\n".join(log.read_text(errors="replace").splitlines()[-12:])
    except FileNotFoundError:
        return "(no log was written)"


def _spawn_guardian(layout: Layout) -> "subprocess.Popen[bytes]":
    with layout.log.open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-P", guardian.__file__, str(layout.var_dir)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
