"""`manage.py submit_run RELEASE FILE`."""

from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from core.commands.waiting import wait_for_job
from core.jobs.models import Job
from evaluation.runs.models import Run
from evaluation.runs.services import CARD_FIELDS, run_contents
from evaluation.runs.submissions import SPLITS, read_submission, run_submit
from releases.management.arguments import RELEASE_HELP
from releases.selectors import release_named

WEIGHTS = {"open": True, "closed": False}


class Command(ServiceCommand):
    """Take in a run for a release, as the page “Submit a run” does."""

    help = (
        "Check FILE (TREC, CSV or JSON lines, also with gzip) line by line against RELEASE, store "
        "it and have it read and scored by a worker. Who may run this command isn't limited on the "
        "test split; with --owner it still counts as one of that person's submissions."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("release", help=RELEASE_HELP)
        parser.add_argument("file", type=Path, help="the run file")
        parser.add_argument("--name", required=True, help="the method, as the leaderboard shows it")
        parser.add_argument("--task", choices=Run.Task.values, default=Run.Task.FULL)
        parser.add_argument(
            "--split", choices=SPLITS, default="all", help="which queries it holds (default: all)"
        )
        parser.add_argument("--owner", metavar="NAME", help="the user whose run it is")
        parser.add_argument(
            "--publish", action="store_true", help="show it to everybody once it is scored"
        )
        parser.add_argument("--link", default="", help="paper or code")
        parser.add_argument("--code", default="", help="where the code is")
        parser.add_argument("--parameters", type=float, help="in millions")
        parser.add_argument("--training-data", default="")
        parser.add_argument("--tuning", default="", choices=Run.Tuning.values)
        parser.add_argument("--weights", choices=WEIGHTS, help="of the model")
        parser.add_argument("--cost", type=float, help="US dollars for the whole run")
        parser.add_argument("--description", default="")
        parser.add_argument("--wait", action="store_true", help="until it is scored")

    def handle(self, *args: Any, **options: Any) -> None:
        release = release_named(options["release"])
        owner = None
        if options["owner"]:
            owner = get_user_model().objects.filter(username=options["owner"]).first()
            if owner is None:
                raise CommandError(f"There is no user {options['owner']!r}.")
        card = {name: options[name] for name in CARD_FIELDS if name != "open_weights"}
        card["open_weights"] = WEIGHTS.get(options["weights"])
        try:
            with options["file"].open("rb") as file:
                chosen = {"task": options["task"], "split": options["split"]}
                # Here too, so that errors are named before anything is stored.
                rankings = read_submission(file, str(options["file"]), release=release, **chosen)
                run = run_submit(
                    release=release,
                    owner=owner,
                    file=file,
                    file_name=str(options["file"]),
                    **chosen,
                    card=card,
                    publish=options["publish"],
                    limited=False,
                )
        except ValidationError as error:
            fields = error.message_dict.items()
            texts = [
                f"--{name.replace('_', '-')}: {' '.join(messages)}" for name, messages in fields
            ]
            raise CommandError("\n".join(texts)) from error
        except OSError as error:
            raise CommandError(f"Can't read or store the run: {error}") from error
        counts = run_contents(release, rankings)
        self.stdout.write(
            f"Run {run.pk}, “{run.name}”: {counts['rows']} rows for {counts['val_queries']} val "
            f"and {counts['test_queries']} test queries of {release}"
        )
        job = run.job if options["wait"] else None
        if job is not None and wait_for_job(job, self.stdout, starting="beginning"):
            self._report(job)

    def _report(self, job: Job) -> None:
        if job.state != Job.State.DONE:
            raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
        self.stdout.write("It is scored.")
