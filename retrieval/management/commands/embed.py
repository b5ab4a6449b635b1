from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.waiting import add_wait_argument, wait_for_job
from core.jobs.models import Job
from retrieval.embedding.services import embedding_job_create

ERRORS_SHOWN = 20


class Command(ServiceCommand):
    help = (
        "Embed every image of the corpus that a model has not embedded yet, as a job of the "
        "workers. Running it again continues where the last one stopped."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", default="", help="by default the model in use")
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        job = embedding_job_create(model_name=options["model"])
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if not options["wait"]:
            return
        if wait_for_job(job, self.stdout, starting="loading the model"):
            self._report(job)

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
