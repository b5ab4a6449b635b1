"""Commands that wait for a job, and show how far it is."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from core.commands import command
from core.commands.progress import Progress
from core.jobs.models import Job

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
        with Progress() as show:
            _wait(job, stdout, starting, also, show)
    except KeyboardInterrupt:
        stdout.write(f"\nJob {job.pk} goes on without this command.")
        return False
    return True


def _wait(
    job: Job,
    stdout: Any,
    starting: str,
    also: Callable[[Job], str] | None,
    show: Progress,
) -> None:
    heard, turn, warned = time.monotonic(), job.turn, False
    while job.state in Job.UNFINISHED:
        time.sleep(POLL_SECONDS)
        job.refresh_from_db()
        if job.turn != turn:
            heard, turn = time.monotonic(), job.turn
        patience = PATIENCE_SECONDS.get(job.state)
        if patience is not None and not warned and time.monotonic() - heard > patience:
            warned = True
            show.close()
            stdout.write(
                "No worker is at this job: either all are busy or none is running. "
                f"{command('serve')} starts one; the job waits in the database."
            )
        show(job.done + job.failed, job.total, _note(job, starting, also))


def _note(job: Job, starting: str, also: Callable[[Job], str] | None) -> str:
    if job.total is None:
        return starting if job.started_at else "waiting for a worker"
    failed = f"{job.failed} failed" if job.failed else ""
    return ", ".join(filter(None, [failed, also(job) if also else ""]))
