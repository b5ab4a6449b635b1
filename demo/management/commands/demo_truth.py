"""`manage.py demo_truth`: the true labels of the demo's queries, for simulations."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotator.models import User
from core.commands.progress import Progress
from demo.queries import HALVES, QUERIES
from demo.release import demo_query_complete
from demo.steps import demo_queries_open, simulated_labeler
from labeling.queries.models import Query


class Command(BaseCommand):
    """demo_truth [NUMBER …]"""

    help = (
        "Judge every image in the lists of the demo's open queries by what is drawn on it, and "
        "complete the queries, so that `simulate` knows all relevant images. The queries from 101 "
        "on have half their text missing; this opens them, which needs a worker."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which queries."""
        parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="default: all")

    def handle(self, *args: Any, numbers: list[int], **options: Any) -> None:
        """Complete the queries one after the other; skip those that are complete."""
        admin, labeler = User.objects.get(username="admin"), simulated_labeler()
        chosen = [
            query for query in (*QUERIES, *HALVES) if not numbers or query.query_id in numbers
        ]
        with Progress("candidate lists", quiet=options["verbosity"] == 0) as show:
            queries = demo_queries_open(by=admin, demo_queries=chosen, progress=show)
        for demo_query, query in zip(chosen, queries, strict=True):
            if query.state == Query.State.OPEN:
                demo_query_complete(demo_query, query, labeler=labeler, by=admin, whole=True)
                self.stdout.write(f"{query.query_id}: {query.text}")
