"""The steps of the demo, with progress. `demo` runs this beside a worker."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError, connection
from django.urls import reverse

from annotator.models import User
from annotator.processes.serving import address
from core.commands import ServiceCommand
from core.commands.progress import Progress
from demo import steps
from demo.corpus import DEFAULT_COUNT
from demo.release import RELEASE_NAME, demo_release_begin
from releases.models import Release

ATTEMPTS = 5
FIRST_COUNT = 400


class Command(ServiceCommand):
    """demo_data [--images N]"""

    help = "Draws, imports and embeds the demo corpus and opens its queries; needs a worker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many images."""
        parser.add_argument("--images", type=int, default=DEFAULT_COUNT)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do the rest of each step, in order."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._steps(options["images"])
            except (OperationalError, InterfaceError) as error:
                # Every step resumes where it stopped, and a new connection starts a dead server.
                if attempt == ATTEMPTS:
                    raise CommandError(f"The database cannot be reached: {error}") from error
                self.stdout.write("The database went away; trying again.")
                connection.close()
        return None

    def _steps(self, count: int) -> None:
        steps.demo_people()
        admin, researcher = (User.objects.get(username=name) for name in ("admin", "researcher"))
        # The queries can be labeled among the first images while the others are drawn.
        first = min(FIRST_COUNT, count // 2)
        if steps.demo_image_count() < first:
            self._open_queries(first, admin)
        self._open_queries(count, admin)
        labeler = steps.simulated_labeler()
        job = demo_release_begin(admin=admin, researcher=researcher, labeler=labeler)
        self.stdout.write("All images are there; a release is being made.")
        try:
            steps.wait_for_job(job)
        except steps.DemoError as error:
            # All else can be tried without it.
            self.stderr.write(f"{error} Run the demo again to try again.")
            return
        release = Release.objects.get(name=RELEASE_NAME, version=1)
        self.stdout.write(
            "The release and its runs are there:\n"
            f"  {address()}{reverse('release', args=[release.pk])}\n"
            f"  {address()}{reverse('leaderboard', args=[release.pk])}"
        )

    def _open_queries(self, count: int, admin: User) -> None:
        drawing, importing = self._progress("Drawing"), self._progress("Importing")
        steps.demo_corpus_import(count=count, drawing=drawing, importing=importing)
        steps.demo_embed(by=admin, progress=self._progress("Embedding"))
        ranking = self._progress("Ranking", "candidate lists")
        queries = steps.demo_queries_open(by=admin, progress=ranking)
        self.stdout.write(f"{len(queries)} queries can be labeled, among {count:,} images.")

    def _progress(self, title: str, unit: str = "images") -> steps.Progress:
        bar = Progress(unit, title=title, stream=sys.stdout)

        def show(done: int, total: int) -> None:
            bar(done, total)
            if done == total:
                bar.close()

        return show
