"""What processes hold of memory for themselves, on Linux."""

from __future__ import annotations

import psutil


def anonymous_bytes(process: int | None = None) -> int:
    """A process's anonymous memory, this one's without a number: what is its own, without mapped
    files and shared memory. Raises psutil.NoSuchProcess.
    """
    found = psutil.Process(process).memory_info()
    return int(found.rss - found.shared)


def server_bytes() -> int:
    """The anonymous memory of all processes of this machine's PostgreSQL, that of Django's default
    connection; the buffers that they share come on top.
    """
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        server = psutil.Process(cursor.fetchone()[0]).parent()
    assert server is not None
    total = anonymous_bytes(server.pid)
    for process in server.children():
        try:
            total += anonymous_bytes(process.pid)
        except psutil.NoSuchProcess:
            # It has ended since they were listed.
            continue
    return total


def megabytes(size: float) -> str:
    """A size in bytes as text, in megabytes."""
    return f"{size / 1e6:,.0f} MB"
