"""What all benchmarks use: options, processes with a database, rounds, figures and Markdown."""

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
from typing import Any, NamedTuple, NoReturn

import psutil

Call = Callable[..., Any]
"""`call(function, *arguments)` runs a module's function in another process, and waits for it."""


def run(
    main: Callable[[Any], tuple[bool, Sequence[str]]],
    title: str,
    packages: Sequence[str],
    **defaults: Any,
) -> NoReturn:
    """Run a benchmark's `main`, print its section, and exit with 1 if `main` finds its results
    wrong. `defaults` are its options (`--two-words` for `two_words`, a tuple's values separated by
    commas); `main` takes them and returns whether the results are right, and the section's parts.
    """
    module = sys.modules[main.__module__]
    assert module.__spec__ is not None
    parser = argparse.ArgumentParser(
        f"python -m {module.__spec__.name}", description=module.__doc__
    )
    for option, default in defaults.items():
        kind: Any = type(default)
        if isinstance(default, tuple):
            kind = _several(type(default[0]))
        parser.add_argument(f"--{option.replace('_', '-')}", type=kind, default=default)
    right, parts = main(parser.parse_args())
    cpu = Path("/proc/cpuinfo").read_text().partition("model name\t: ")[2].partition("\n")[0]
    machine = (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC · {cpu or platform.machine()}, "
        f"{os.cpu_count()} cores · {platform.system()} {platform.release()} · "
        f"Python {platform.python_version()}, "
        + ", ".join(f"{name} {version(name)}" for name in packages)
    )
    command = shlex.join([*parser.prog.split(), *sys.argv[1:]])
    print("\n\n".join([f"## {title}", machine, f"`{command}`", *parts]))
    sys.exit(not right)


def _several(kind: type) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(kind(part) for part in text.split(","))


def log(text: str) -> None:
    """Write a line to standard error."""
    print(text, file=sys.stderr, flush=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder under TMPDIR, deleted afterwards."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        yield Path(folder)


@contextmanager
def database() -> Iterator[tuple[Path, Call]]:
    """A temporary folder with a new database, and its first process."""
    with temporary_folder() as folder, process(folder, migrate=True) as call:
        yield folder, call


@contextmanager
def process(folder: Path, *, migrate: bool = False) -> Iterator[Call]:
    """A new process with Django on the embedded PostgreSQL of the state folder `var` in `folder`,
    whatever the environment says; `migrate` creates the database. The last process stops the
    server.
    """
    with ProcessPoolExecutor(
        1, mp_context=get_context("spawn"), initializer=_set_up, initargs=(folder / "var",)
    ) as pool:

        def call(function: Callable[..., Any], *arguments: Any) -> Any:
            return pool.submit(function, *arguments).result()

        try:
            if migrate:
                call(_migrate)
            yield call
        finally:
            call(_leave, folder / "var")


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


class Measured(NamedTuple):
    """The result of a call in its own process, with its time and memory."""

    result: Any
    seconds: float
    before: str
    """The process's highest resident memory before the call, as text."""
    peak: int
    """The same after it, in bytes."""


def measured(folder: Path, prepare: Callable[..., Any], *arguments: Any) -> Measured:
    """Call in a new process (see `process`) the function that `prepare` returns there."""
    with process(folder) as call:
        measurement: Measured = call(_measured, prepare, arguments)
    return measurement


def _measured(prepare: Callable[..., Any], arguments: Sequence[Any]) -> Measured:
    run = prepare(*arguments)
    before = f"{megabytes(peak_bytes())} before it begins"
    spent, result = timed(run)
    return Measured(result, spent, before, peak_bytes())


def sql(statement: str, parameters: Sequence[Any] | Mapping[str, Any] | None = None) -> list[Any]:
    """The rows of a statement's result, if it has one; in a process with Django."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return cursor.fetchall() if cursor.description else []


def copy(statement: str, path: Path) -> float:
    """Seconds of a COPY FROM STDIN or TO STDOUT, from or to a file; in a process with Django."""
    from django.db import connection

    with connection.cursor() as cursor, path.open("rb" if "STDIN" in statement else "wb") as file:
        return seconds(cursor.copy_expert, statement, file, 1 << 20)


def timed(run: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, Any]:
    """How long a call takes, and its result."""
    began = time.perf_counter()
    result = run(*arguments, **options)
    return time.perf_counter() - began, result


def seconds(run: Callable[..., Any], *arguments: Any) -> float:
    """How long a call takes."""
    return timed(run, *arguments)[0]


def in_turn(
    rounds: int, ways: Mapping[str, Callable[[int], Any]], *, warm_up: int = 0
) -> dict[str, list[Any]]:
    """The results of each way by name; a way takes the number of the round. All ways run once in
    each round, so that a slow moment of the machine affects all; the first `warm_up` rounds don't
    count.
    """
    results: dict[str, list[Any]] = {name: [] for name in ways}
    for number in range(warm_up + rounds):
        for name, way in ways.items():
            result = way(number)
            if number >= warm_up:
                results[name].append(result)
    return results


def peak_bytes() -> int:
    """This process's highest resident memory."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def anonymous_bytes(process_id: int | None = None) -> int:
    """A process's own memory, by default this process's, without mapped files and shared memory.
    Raises psutil.NoSuchProcess.
    """
    memory = psutil.Process(process_id).memory_info()
    return int(memory.rss - memory.shared)


def ms(duration: float) -> str:
    """A duration in milliseconds; in seconds from ten on."""
    return f"{duration:.2f} s" if duration >= 10 else f"{duration * 1000:.1f} ms"


def megabytes(size: float) -> str:
    """A size in bytes, in megabytes."""
    return f"{size / 1e6:,.0f} MB"


def table(head: str, rows: Sequence[Sequence[str | float | None]]) -> str:
    """A Markdown table below a head of names between bars. Whole numbers are grouped, others get
    two decimals, None is empty, a bar within a cell becomes a slash. Raises ValueError for a row
    with another number of cells than the head.
    """
    lines = [head.split(" | "), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines]
    return "\n".join([text[0], f"|{'|'.join('-' * (width + 2) for width in widths)}|", *text[1:]])


def _cell(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.replace("|", "/")
    return f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
