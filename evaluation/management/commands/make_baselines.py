"""`manage.py make_baselines RELEASE`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.commands.waiting import wait_for_job
from core.errors import Conflict
from core.jobs.models import Job
from evaluation.runs.baselines import baselines_begin
from evaluation.runs.models import Run
from releases.management.arguments import RELEASE_HELP, find_release


class Command(BaseCommand):
    """Have a release's baselines made by a worker."""

    help = (
        "Make what RELEASE's leaderboard has of itself: random order, every embedding model that "
        "the corpus is embedded with, and the best possible re-ranks. Running it again makes what "
        "is new."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("release", help=RELEASE_HELP)
        parser.add_argument("--wait", action="store_true", help="until they are made")

    def handle(self, *args: Any, **options: Any) -> None:
        release = find_release(options["release"])
        try:
            job = baselines_begin(release=release)
        except Conflict as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if options["wait"] and wait_for_job(job, self.stdout, starting="loading the model"):
            self._report(job)

    def _report(self, job: Job) -> None:
        for error in job.item_errors.order_by("pk"):
            self.stdout.write(f"left out {error}")
        if job.state != Job.State.DONE:
            raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
        made = Run.objects.filter(
            release=job.params["release"], kind__in=Run.BASELINES, ready_at__isnull=False
        )
        self.stdout.write(f"{made.count()} baselines are on the leaderboard.")
