"""The steps of the demo, with progress. `demo` runs this beside a worker."""

import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError, connection

from core.terminal import ProgressLine, bar, duration
from demo import steps as demo

IMAGES = 3000
ATTEMPTS = 5


class Command(BaseCommand):
    """demo_data [--images N]"""

    help = "Draws, imports and embeds the demo corpus and opens its queries; needs a worker."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many pictures."""
        parser.add_argument("--images", type=int, default=IMAGES)

    def handle(self, *args: Any, **options: Any) -> None:
        """Do what is left of each step, in order."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._steps(options["images"])
                break
            except demo.DemoError as error:
                raise CommandError(str(error)) from error
            except (OperationalError, InterfaceError) as error:
                # Every step goes on where it was, and a new connection starts a dead server.
                if attempt == ATTEMPTS:
                    raise CommandError(f"The database cannot be reached: {error}") from error
                self.stdout.write("The database went away; going on.")
                connection.close()

    def _steps(self, count: int) -> None:
        demo.demo_people()
        with Step("Drawing the demo's pictures") as step:
            corpus = demo.demo_corpus_draw(count=count, progress=step.progress)
        with Step("Importing them") as step:
            demo.demo_corpus_import(corpus=corpus, progress=step.progress)
        with Step("Embedding them in the worker") as step:
            demo.job_wait(job=demo.demo_embedding_job(), progress=step.progress)
        with Step("Opening the queries and ranking the pictures for each") as step:
            demo.lists_wait(queries=demo.demo_queries_open(), progress=step.progress)
        demo.demo_release_job()


class Step:
    """One line of progress: `title [####----] 12 of 24, 30 s left`."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.line = ProgressLine(sys.stdout)
        self.last = ""
        self.began = time.monotonic()
        self.before = -1

    def __enter__(self) -> "Step":
        self.line.show(f"{self.title} ...")
        return self

    def progress(self, done: int, total: int) -> None:
        """Show how far it is."""
        if self.before < 0:
            self.before = done
        self.last = f"{done} of {total}"
        left = ""
        if total > done > self.before:
            seconds = (time.monotonic() - self.began) * (total - done) / (done - self.before)
            left = f", {duration(seconds)} left"
        self.line.show(f"{self.title} {bar(done, total)} {self.last}{left}")

    def __exit__(self, *error: object) -> None:
        if error[0] is None:
            finished = ProgressLine(sys.stdout) if not sys.stdout.isatty() else self.line
            finished.show(f"{self.title}: done{f', {self.last}' if self.last else ''}")
        self.line.end()
