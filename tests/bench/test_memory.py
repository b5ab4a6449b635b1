"""What a benchmark says of processes' memory."""

from __future__ import annotations

import os
import subprocess
import sys

import psutil
import pytest
from django.db import connection

from bench.memory import anonymous_bytes, megabytes, server_bytes

HOLDER = "held = b'x' * 100_000_000; print('ready', flush=True); input()"


def test_a_process_own_memory_is_counted_by_its_number() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert 100_000_000 < anonymous_bytes(holder.pid) < 200_000_000
        holder.communicate(b"\n")
    with pytest.raises(psutil.NoSuchProcess):
        anonymous_bytes(holder.pid)
    assert anonymous_bytes() == pytest.approx(anonymous_bytes(os.getpid()), rel=0.2)


@pytest.mark.django_db
def test_a_server_is_all_of_its_processes() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        own = anonymous_bytes(cursor.fetchone()[0])
        before = server_bytes()
        assert before > own > 0
        # The planner's memory goes with the statement; a setting's text stays.
        cursor.execute("SELECT set_config('bench.held', repeat('x', 40000000), false)")
        assert server_bytes() - before > 30_000_000


def test_megabytes_are_millions_of_bytes() -> None:
    assert megabytes(1_234_600_000) == "1,235 MB"
