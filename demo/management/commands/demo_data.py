"""The steps of the demo, with progress. `demo` runs this beside a worker."""

import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection

from annotator.models import User
from core.terminal import ProgressLine, bar, duration
from demo import steps
from demo.corpus import DEFAULT_COUNT
from demo.release import demo_release_begin

ATTEMPTS = 5


class Command(BaseCommand):
    """demo_data [--images N]"""

    help = "Draws, imports and embeds the demo corpus and opens its queries; needs a worker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many images."""
        parser.add_argument("--images", type=int, default=DEFAULT_COUNT)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is left of each step, in order."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._steps(options["images"])
            except steps.DemoError as error:
                raise CommandError(str(error)) from error
            except (OperationalError, InterfaceError) as error:
                # Every step resumes where it was, and a new connection starts a dead server.
                if attempt == ATTEMPTS:
                    raise CommandError(f"The database cannot be reached: {error}") from error
                self.stdout.write("The database went away; trying again.")
                connection.close()
        return None

    def _steps(self, count: int) -> None:
        steps.demo_people()
        admin, researcher = (User.objects.get(username=name) for name in ("admin", "researcher"))
        drawing, importing = self._progress("Drawing"), self._progress("Importing")
        steps.demo_corpus_import(count=count, drawing=drawing, importing=importing)
        steps.demo_embed(by=admin, progress=self._progress("Embedding"))
        steps.demo_queries_open(by=admin, progress=self._progress("Ranking", "candidate lists"))
        labeler = steps.simulated_labeler()
        demo_release_begin(admin=admin, researcher=researcher, labeler=labeler)

    def _progress(self, title: str, unit: str = "images") -> steps.Progress:
        """Shows how far a step is, and how long it will take at its pace since the first call."""
        line = ProgressLine(self.stdout)
        began: list[tuple[float, int]] = []

        def show(done: int, total: int) -> None:
            began.append((time.monotonic(), done))
            since, before = began[0]
            left = ""
            if before < done < total:
                seconds = (time.monotonic() - since) * (total - done) / (done - before)
                left = f", {duration(seconds)} left"
            # Away from a terminal a line has its own pace, and the last one must not be lost.
            shown = line if done < total or self.stdout.isatty() else ProgressLine(self.stdout)
            shown.show(f"{title} {bar(done, total)} {done:,} of {total:,} {unit}{left}")
            if done == total:
                shown.end()

        return show
