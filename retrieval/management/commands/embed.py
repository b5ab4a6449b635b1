from __future__ import annotations

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from retrieval.encoders import ModelSpecError
from retrieval.management.ready import require_migrated
from retrieval.models import Job
from retrieval.services.embedding import embedding_job_create
from retrieval.terminal import ProgressLine, bar, duration

POLL_SECONDS = 0.3
# Without a sign of work: loading a large model takes a while once a worker has the job.
PATIENCE_SECONDS: dict[str, float] = {Job.State.QUEUED: 10.0, Job.State.RUNNING: 90.0}
ERRORS_SHOWN = 20


class Command(BaseCommand):
    help = (
        "Embed every image of the corpus that a model has not embedded yet, as a job of the "
        "workers. Running it again goes on where the last one stopped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", default="", help="by default the setting EMBEDDING_MODEL")
        parser.add_argument(
            "--wait",
            action="store_true",
            help="show progress until the job ends; Ctrl-C stops the waiting, not the job",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        require_migrated()
        try:
            job = embedding_job_create(model_name=options["model"])
        except ModelSpecError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if not options["wait"]:
            return
        try:
            self._wait(job)
        except KeyboardInterrupt:
            self.stdout.write(f"\nJob {job.pk} goes on without this command.")
            return
        self._report(job)

    def _wait(self, job: Job) -> None:
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
                self.stdout.write(
                    "No worker is at this job: either all are busy or none is running. "
                    "“python manage.py serve” starts one; the job waits in the database."
                )
            line.show(_progress(job))
        line.end()

    def _report(self, job: Job) -> None:
        for error in job.item_errors.order_by("pk")[:ERRORS_SHOWN]:
            self.stdout.write(f"failed {error}")
        if job.state != Job.State.DONE:
            raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
        if not job.total:
            self.stdout.write("Nothing to do: every image of the corpus is embedded.")
            return
        self.stdout.write(f"{job.done} images embedded, {job.failed} failed")
        if job.failed:
            raise CommandError(f"{job.failed} images could not be embedded.")


def _progress(job: Job) -> str:
    if job.total is None:
        return f"{job.state}: loading the model" if job.started_at else "waiting for a worker"
    worked = job.done + job.failed
    parts = [f"{bar(worked, job.total)} {worked} of {job.total}"]
    if job.failed:
        parts.append(f"{job.failed} failed")
    if job.rate:
        left = duration(max(job.total - worked, 0) / job.rate)
        parts.append(f"{job.rate:.1f} a second, {left} left")
    return ", ".join(parts)
