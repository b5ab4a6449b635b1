"""PostgreSQL's own programs, run on the database of Django's settings."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection
from django.db.backends.postgresql.client import DatabaseClient

from annotator.postgres.guardian import program_folder
from core.parent_death import end_with_parent


class ProgramFailed(Exception):
    """A program ended with an error, which the text repeats."""


@contextmanager
def program(name: str, *options: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program such as pg_dump beside the block; the database's name is its last argument.

    After the block it is waited for; an error in the block kills it, and so does the end of this
    process. A password goes through the environment. Raises ProgramFailed for another exit status
    than 0, EmbeddedPostgresError where the programs are missing.
    """
    connection.ensure_connection()
    arguments, environment = DatabaseClient.settings_to_cmd_args_env(
        connection.settings_dict, list(options)
    )
    parent = os.getpid()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            [str(program_folder() / name), *arguments[1:]],
            env=os.environ | (environment or {}),
            stderr=errors,
            preexec_fn=lambda: end_with_parent(parent),
            **streams,
        )
        try:
            yield process
            if process.stdin is not None:
                process.stdin.close()
            status = process.wait()
        except BrokenPipeError:
            status = process.wait()
        except BaseException:
            process.kill()
            process.wait()
            raise
        if status != 0:
            errors.seek(0)
            text = errors.read().decode(errors="replace").strip()
            raise ProgramFailed(text or f"{name} ended with status {status}.")
