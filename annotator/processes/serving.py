"""The parts that `serve` and `demo` run: database, Celery worker, encoder of texts, web server."""

import errno
import fcntl
import json
import os
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection, connections

from annotator.people.first_admin import first_admin_token
from annotator.postgres.embedded import embedded_postgres
from annotator.postgres.guardian import lock_file
from annotator.processes.supervisor import Child, Supervisor, python
from annotator.web import static

MODEL_SECONDS = 60.0
"""Seconds that the start waits for the model that encodes texts."""
WORKER_OPTIONS = ("--without-gossip", "--without-mingle")


def address() -> str:
    """The address to open in a browser on this machine."""
    host = "127.0.0.1" if settings.BIND in {"0.0.0.0", "::"} else settings.BIND
    return f"http://{host}:{settings.PORT}"


class Services:
    """Everything that runs while the application is served."""

    def __init__(self, say: Callable[[str], Any], environment: dict[str, str]) -> None:
        self.say = say
        self.environment = {**os.environ, "TEXT_PROCESS": "true", **environment}
        self.supervisor = Supervisor(say)
        self.first_admin: str | None = None
        """The secret of the first admin's link, where nobody has an account."""
        self._begun = 0.0

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return Path(settings.VAR_DIR) / "log"

    @contextmanager
    def running(self) -> Iterator[bool]:
        """All parts, from when they work until the block ends; yields False if ended before.

        Raises CommandError when another program has the port or another `serve` the state folder.
        """
        with _only_one(Path(settings.VAR_DIR)):
            _check_port(settings.BIND, settings.PORT)
            self.supervisor.listen()
            try:
                self._prepare()
                yield self._start()
            finally:
                self.supervisor.finish()
                connections.close_all()
                if connection.settings_dict["ENGINE"] == "annotator.postgres":
                    embedded_postgres(settings.VAR_DIR).leave(wait=True)
                self.say("Stopped.")

    def run(self, *arguments: str) -> int | None:
        """Run a management command to its end on our terminal, beside the parts.

        Its exit status, or None if we were asked to end meanwhile.
        """
        child = Child("command", python("-m", "annotator", *arguments), self.environment, once=True)
        self.supervisor.run(child)
        self.supervisor.wait(lambda: child.ended() is not None)
        return child.ended()

    def run_on(self) -> None:
        """Keep everything running until we are asked to end."""
        self.supervisor.wait(lambda: False)

    def _prepare(self) -> None:
        self.say("Preparing the database and the pages' static files ...")
        connection.ensure_connection()
        call_command("migrate", interactive=False, verbosity=0)
        static.collect()
        self.first_admin = first_admin_token()
        # From here on the parts use it; we keep the server up, not a connection.
        connections.close_all()

    def _start(self) -> bool:
        if self.supervisor.ending:
            return False
        self.say("Starting the worker and the web server ...")
        self._begun = time.monotonic()
        parts = {
            "encoder of texts": ("-m", "annotator", "encode_texts"),
            "worker": ("-m", "celery", "-q", "-A", "annotator", "worker", *WORKER_OPTIONS),
            "web": ("-m", "gunicorn", "-c", "python:annotator.processes.gunicorn_conf"),
        }
        for name, command in parts.items():
            log = self.logs / f"{name.split()[-1]}.log"
            self.supervisor.run(Child(name, python(*command), self.environment, log))
        return self.supervisor.wait(self._healthy, every=0.3)

    def _healthy(self) -> bool:
        """Whether all parts work; a nearly full disk, or a model that loads slowly, is only
        reported.
        """
        try:
            with urllib.request.urlopen(f"{address()}/healthz", timeout=10) as answer:
                return bool(json.load(answer)["status"] == "ok")
        except urllib.error.HTTPError as answer:
            parts = json.load(answer) if answer.code == 503 else {}
        except (OSError, ValueError, KeyError):
            return False
        ill = {part for part, state in parts.items() if state != "ok"} - {"status"}
        if not ill or not ill <= {"disk", "texts"}:
            return False
        if "texts" in ill:
            if time.monotonic() < self._begun + MODEL_SECONDS:
                return False
            self.say("The model is still being loaded: searches wait for it.")
        if "disk" in ill:
            self.say(
                f"The disk of {settings.VAR_DIR} has less than DISK_MIN_FREE_BYTES "
                f"({settings.DISK_MIN_FREE_BYTES}) free: jobs wait until there is room."
            )
        return True


@contextmanager
def _only_one(var_dir: Path) -> Iterator[None]:
    """Hold the state folder's serve lock, so that two never run the same parts."""
    path = var_dir / "run" / "serve.lock"
    path.parent.mkdir(exist_ok=True)
    with lock_file(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            raise CommandError(
                f"Inquire Annotator already runs on {var_dir} (process {file.read().strip()}). "
                "Stop that one, or set VAR_DIR to another folder."
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _check_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            advice = (
                f"Stop the program that has the port, or choose another: PORT={port % 65535 + 1}."
            )
            if error.errno != errno.EADDRINUSE:
                advice = "BIND names an address of this machine, PORT one that we may use."
            raise CommandError(
                f"Cannot listen on {host}:{port}: {error.strerror}. {advice}"
            ) from error
