"""A standby that follows an embedded PostgreSQL server by streaming, as a replica does."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg2

from annotator.postgres import guardian
from annotator.postgres.embedded import EmbeddedPostgres
from annotator.postgres.guardian import DATABASE_USER, PORT, Layout
from tests.processes import wait_for


class Standby:
    """A copy of the server of the state folder `primary`, which goes on to follow it; the server
    of the state folder `folder`.
    """

    def __init__(self, primary: Path, folder: Path) -> None:
        self.folder = folder
        self.layout = Layout(folder)
        self.layout.prepare()
        account, programs = guardian._account(), guardian.program_folder()
        for path in (programs, self.layout.var_dir, Layout(primary).socket_dir):
            guardian._let_through(path, account)
        self.layout.data.mkdir()
        guardian._give(self.layout.data, account)
        subprocess.run(
            [
                *(str(programs / "pg_basebackup"), "-D", str(self.layout.data)),
                *("-h", str(Layout(primary).socket_dir), "-p", str(PORT), "-U", DATABASE_USER),
                *("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast"),
            ],
            check=True,
            cwd="/",
            env={name: value for name, value in os.environ.items() if not name.startswith("PG")},
            **guardian._as(account),
        )
        self.start()

    @property
    def host(self) -> str:
        """The folder of its socket."""
        return str(self.layout.socket_dir)

    def start(self) -> None:
        """Start it, also after `stop`."""
        self._server = EmbeddedPostgres(self.folder)
        self._server.ensure()

    def stop(self) -> None:
        """Stop it; connections to it end."""
        self._server.leave(wait=True)

    def tell(self, database: str, statement: str) -> list[Any]:
        """Run a statement on it."""
        server = psycopg2.connect(host=self.host, port=PORT, user=DATABASE_USER, dbname=database)
        try:
            server.autocommit = True
            with server.cursor() as cursor:
                cursor.execute(statement)
                return cursor.fetchall()
        finally:
            server.close()

    @contextmanager
    def halted(self, database: str) -> Iterator[None]:
        """Let nothing new arrive while the block runs."""
        self.tell(database, "SELECT pg_wal_replay_pause()")
        state = "SELECT pg_get_wal_replay_pause_state()"
        wait_for(lambda: self.tell(database, state) == [("paused",)], what="the pause")
        try:
            yield
        finally:
            self.tell(database, "SELECT pg_wal_replay_resume()")

    def remove(self) -> None:
        """Stop it and remove its files."""
        self.stop()
        shutil.rmtree(self.folder)
