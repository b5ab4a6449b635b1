"""Commands that wait for a job, and show how far it is."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from core.commands import command
from core.jobs.models import Job
from core.terminal import ProgressLine, bar, duration

POLL_SECONDS = 0.3
# Without a sign of work: loading a large model takes a while once a worker has the job.
PATIENCE_SECONDS: dict[str, float] = {Job.State.QUEUED: 10.0, Job.State.RUNNING: 90.0}


def add_wait_argument(parser: ArgumentParser) -> None:
    """Let a command be asked to wait, with `--wait`."""
    parser.add_argument(
        "--wait",
        action="store_true",
        help="show progress until the job ends; Ctrl-C stops the waiting, not the job",
    )


def wait_for_job(
    job: Job, stdout: Any, *, starting: str, also: Callable[[Job], str] | None = None
) -> bool:
    """Show progress on the error stream until the job has ended; `starting` says what it does
    before it knows how much there is to do, `also` what else there is to tell of it.

    Says on `stdout` when no worker seems to be at it. False if Ctrl-C ended the waiting; the job
    goes on.
    """
    try:
        _wait(job, stdout, starting, also)
    except KeyboardInterrupt:
        stdout.write(f"\nJob {job.pk} goes on without this command.")
        return False
    return True


def _wait(job: Job, stdout: Any, starting: str, also: Callable[[Job], str] | None) -> None:
    line = ProgressLine(sys.stderr)
    heard, turn, told = time.monotonic(), job.turn, False
    while job.state in Job.UNFINISHED:
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
        if job.turn != turn:
            heard, turn = time.monotonic(), job.turn
        patience = PATIENCE_SECONDS.get(job.state)
        if patience is not None and not told and time.monotonic() - heard > patience:
            told = True
            line.end()
            stdout.write(
                "No worker is at this job: either all are busy or none is running. "
                f"{command('serve')} starts one; the job waits in the database."
            )
        line.show(_progress(job, starting, also(job) if also else ""))
    line.end()


def _progress(job: Job, starting: str, also: str) -> str:
    if job.total is None:
        return f"{job.state}: {starting}" if job.started_at else "waiting for a worker"
    worked = job.done + job.failed
    parts = [f"{bar(worked, job.total)} {worked} of {job.total}"]
    if job.failed:
        parts.append(f"{job.failed} failed")
    if also:
        parts.append(also)
    if job.rate:
        left = duration(max(job.total - worked, 0) / job.rate)
        parts.append(f"{job.rate:.1f} a second, {left} left")
    return ", ".join(parts)
