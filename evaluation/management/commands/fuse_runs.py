"""`manage.py fuse_runs RUN RUN … --method rrf`."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from core.commands.waiting import add_wait_argument, wait_for_job
from core.errors import Conflict
from core.jobs.models import Job
from evaluation.runs.fusions import run_fuse
from evaluation.runs.models import Run
from evaluation.scoring.fusion import METHODS, NORMALIZATIONS
from releases.management.arguments import positive


class Command(BaseCommand):
    """Make a run that fuses others, as the leaderboard's button does."""

    help = (
        "Fuse scored runs of one release and task by reciprocal ranks (rrf) or by the sum of their "
        "normalized scores (combsum), times how many runs have the image (combmnz)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("runs", nargs="+", type=positive, help="the numbers of the runs")
        parser.add_argument("--method", choices=METHODS, default="rrf")
        parser.add_argument("--normalization", choices=NORMALIZATIONS, default="min-max")
        parser.add_argument(
            "--name", default="", help="on the leaderboard (default: what is fused)"
        )
        parser.add_argument("--owner", metavar="NAME", help="the user whose run it is")
        parser.add_argument(
            "--publish", action="store_true", help="show it to everybody once it is scored"
        )
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        owner = None
        if options["owner"]:
            owner = get_user_model().objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"There is no user {options['owner']!r}.")
        found = Run.objects.select_related("release").in_bulk(options["runs"])
        unknown = [str(number) for number in options["runs"] if number not in found]
        if unknown:
            raise CommandError(f"There is no run {', '.join(unknown)}.")
        try:
            run = run_fuse(
                runs=[found[number] for number in options["runs"]],
                owner=owner,
                limited=False,
                **{key: options[key] for key in ("method", "normalization", "name", "publish")},
            )
        except Conflict as error:
            raise CommandError(str(error)) from error
        self.stdout.write(f"Run {run.pk}, “{run.name}”, of {run.release}")
        job = run.job if options["wait"] else None
        if job is not None and wait_for_job(job, self.stdout, starting="beginning"):
            if job.state != Job.State.DONE:
                raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
            self.stdout.write("It is scored.")
