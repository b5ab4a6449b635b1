"""`manage.py read_images READER --depth 100`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.waiting import add_wait_argument, wait_for_job
from core.jobs.models import Job
from evaluation.reranking.multimodal.answers import dollars
from extras.reading.models import Reader
from extras.reading.reading_job import queries_to_read, reading_begin, reading_estimate
from labeling.queries.benchmarks import benchmark_named
from releases.management.arguments import positive


class Command(ServiceCommand):
    """Have a reader read images, as a job of the workers."""

    help = (
        "Have READER (made under /readers/) read the first images of queries' lists. The same "
        "command again goes on where it stopped; nothing is read twice."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("reader", help="its name")
        parser.add_argument(
            "--queries", default="open", help="open, all, or numbers: 3,17 (default: open)"
        )
        parser.add_argument("--benchmark", help="queries of this one alone")
        parser.add_argument(
            "--depth", type=positive, default=100, help="images of each query (default: 100)"
        )
        parser.add_argument("--max-cost", type=float, help="US dollars that are never passed")
        parser.add_argument("--estimate", action="store_true", help="print it, and begin nothing")
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        reader = Reader.objects.filter(name=options["reader"]).first()
        if reader is None:
            raise CommandError(f"There is no reader {options['reader']!r}.")
        benchmark = options["benchmark"] and benchmark_named(options["benchmark"])
        queries, depth = queries_to_read(options["queries"], benchmark or None), options["depth"]
        told = reading_estimate(reader=reader, queries=queries, depth=depth)
        cost = "" if told.cost is None else f", about {dollars(told.cost)}"
        time = "" if told.minutes is None else f", {told.minutes:,.0f} minutes"
        guess = "" if told.measured or reader.entry_point else " (tokens are guessed)"
        self.stdout.write(
            f"{told.pairs:,} images of {told.queries:,} queries; {told.answered:,} are read "
            f"already; {told.requests:,} requests{cost}{time}{guess}."
        )
        if options["estimate"]:
            return
        limit = options["max_cost"]
        job = reading_begin(reader=reader, queries=queries, depth=depth, max_cost=limit, by=None)
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if options["wait"] and wait_for_job(job, self.stdout, starting="counting images"):
            if job.state != Job.State.DONE:
                raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
            self.stdout.write(f"{job.done:,} images are read, {job.failed:,} failed.")
