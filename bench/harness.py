"""What all benchmarks share: options, processes with a database, rounds, figures and Markdown."""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import psutil


def parse(
    name: str, description: str | None, arguments: Sequence[str] | None, **defaults: Any
) -> argparse.Namespace:
    """The options of a benchmark, `--name default` each (`--two-words` for `two_words`), a tuple's
    values separated by commas. `command` is how to repeat it.
    """
    parser = argparse.ArgumentParser(prog=f"python -m bench.{name}", description=description)
    for option, default in defaults.items():
        kind: Any = type(default)
        if isinstance(default, tuple):
            kind = _several(type(default[0]))
        parser.add_argument(f"--{option.replace('_', '-')}", type=kind, default=default)
    options = parser.parse_args(arguments)
    given = shlex.join(sys.argv[1:] if arguments is None else arguments)
    options.command = f"python -m bench.{name} {given}".strip()
    return options


def _several(kind: type) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(kind(part) for part in text.split(","))


def log(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def temporary_folder(name: str) -> Iterator[Path]:
    """A folder under TMPDIR, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as folder:
        yield Path(folder)


@contextmanager
def process(var_dir: Path, *, migrate: bool = False) -> Iterator[Callable[..., Any]]:
    """A process of its own with Django on the state folder's embedded PostgreSQL, whatever the
    environment says; `migrate` makes the database. It yields `call(function, *arguments)`, which
    runs a module's function there and waits for its result. The last process stops the server.
    """
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_set_up, initargs=(var_dir,)
    ) as pool:

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            return pool.submit(function, *arguments).result()

        try:
            if migrate:
                call(_migrate)
            yield call
        finally:
            call(_leave, var_dir)


def _set_up(var_dir: Path) -> None:
    # Standard output is for the section alone.
    os.dup2(2, 1)
    os.environ.pop("DATABASE_URL", None)
    os.environ.update(
        VAR_DIR=str(var_dir), DJANGO_SETTINGS_MODULE="annotator.settings", LOG_LEVEL="WARNING"
    )
    import django

    django.setup()


def _migrate() -> None:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def _leave(var_dir: Path) -> None:
    from django.db import connection

    from annotator.postgres.embedded import embedded_postgres

    connection.close()
    embedded_postgres(var_dir).leave(wait=True)


def sql(statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
    """The rows that a statement gives, if it gives any; in a process with Django."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def seconds(run: Callable[..., Any], *arguments: Any) -> float:
    """How long a call takes."""
    began = time.perf_counter()
    run(*arguments)
    return time.perf_counter() - began


def in_turn(
    rounds: int, ways: Mapping[str, Callable[[int], Any]], *, warm_up: int = 0
) -> dict[str, list[Any]]:
    """What each way returns for the number of each round, by name. All run once in each round, so
    that a slow moment of the machine affects all; `warm_up` rounds before don't count.
    """
    found: dict[str, list[Any]] = {name: [] for name in ways}
    for number in range(warm_up + rounds):
        for name, run in ways.items():
            result = run(number)
            if number >= warm_up:
                found[name].append(result)
    return found


def peak_bytes() -> int:
    """This process's highest resident memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def anonymous_bytes(process_id: int | None = None) -> int:
    """A process's own memory, this one's without a number: without mapped files and shared memory.
    Raises psutil.NoSuchProcess.
    """
    found = psutil.Process(process_id).memory_info()
    return int(found.rss - found.shared)


def ms(duration: float) -> str:
    """A duration in milliseconds; in seconds from ten on."""
    return f"{duration:.2f} s" if duration >= 10 else f"{duration * 1000:.1f} ms"


def megabytes(size: float) -> str:
    """A size in bytes, in megabytes."""
    return f"{size / 1e6:,.0f} MB"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; a bar within a cell becomes a slash. Raises ValueError for a row that has
    not as many cells as the head.
    """
    lines = [[cell.replace("|", "/") for cell in line] for line in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines]
    return "\n".join([text[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *text[1:]])


def section(title: str, command: str, packages: Sequence[str], *parts: str) -> str:
    """A section: where, when, with which versions and how it was measured, then its parts."""
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    machine = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {cpu or platform.machine()}, "
        f"{os.cpu_count()} cores · {platform.system()} {platform.release()} · "
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
    )
    return "\n\n".join([f"## {title}", machine, f"`{command}`", *parts])
