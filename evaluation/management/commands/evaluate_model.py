"""`manage.py evaluate_model MODEL RELEASE`."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.commands.waiting import add_wait_argument, wait_for_job
from core.errors import Conflict
from core.jobs.models import Job
from evaluation.runs.evaluations import evaluation_begin
from releases.management.arguments import RELEASE_HELP, find_release


class Command(BaseCommand):
    """Have a model evaluated on a release by a worker."""

    help = (
        "Embed the corpus by MODEL as far as it isn't, rank it for the queries of RELEASE, and "
        "score that: one job, which goes on where it stopped."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "model",
            help="NAME/TAG (an open_clip model and its pretrained tag), a folder with "
            "open_clip_config.json and open_clip_model.safetensors, or CONFIG:WEIGHTS",
        )
        parser.add_argument("release", help=RELEASE_HELP)
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        release = find_release(options["release"])
        try:
            job = evaluation_begin(release=release, model_name=options["model"])
        except Conflict as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if options["wait"] and wait_for_job(job, self.stdout, starting="loading the model"):
            if job.state != Job.State.DONE:
                raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
            self.stdout.write("The model is on the leaderboard.")
