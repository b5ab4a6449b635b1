"""What processes hold of memory for themselves, as Linux tells it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

PROCESSES: Final = Path("/proc")


def anonymous_bytes(process: int | str = "self") -> int:
    """A process's anonymous memory: what is its own, without mapped files and shared memory.

    Raises LookupError where the kernel doesn't tell, and FileNotFoundError for no process.
    """
    return 1024 * _number(process, "RssAnon")


def server_bytes() -> int:
    """The anonymous memory of all processes of this machine's PostgreSQL, that of Django's default
    connection; the buffers that they share come on top.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        parent = _number(cursor.fetchone()[0], "PPid")
    total = anonymous_bytes(parent)
    for process in PROCESSES.glob("[0-9]*"):
        try:
            if _number(process.name, "PPid") == parent:
                total += anonymous_bytes(process.name)
        except (FileNotFoundError, ProcessLookupError, LookupError):
            # It has ended since the folder was listed, or is ending.
            continue
    return total


def megabytes(size: float) -> str:
    """A size in bytes as text, in megabytes."""
    return f"{size / 1e6:,.0f} MB"


def _number(process: int | str, name: str) -> int:
    for line in (PROCESSES / str(process) / "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise LookupError(f"This kernel doesn't tell {name}.")
