"""`manage.py demo_truth`: the whole truth about the demo's queries, for simulations."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from annotator.models import User
from demo.queries import QUERIES
from demo.release import demo_query_complete
from demo.steps import simulated_labeler
from labeling.queries.models import Query


class Command(BaseCommand):
    """demo_truth [NUMBER …]"""

    help = (
        "Judge every image in the lists of the demo's open queries by what is drawn on it, and "
        "complete them, so that `simulate` knows all that is relevant. Nobody labels them then."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which queries."""
        parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER", help="default: all")

    def handle(self, *args: Any, numbers: list[int], **options: Any) -> None:
        """Complete one query after the other; those that are complete are left alone."""
        admin, labeler = User.objects.get(username="admin"), simulated_labeler()
        opened = Query.objects.filter(state=Query.State.OPEN)
        for demo_query in QUERIES:
            query = opened.filter(text=demo_query.query_text).first()
            if query is None or (numbers and query.query_id not in numbers):
                continue
            demo_query_complete(demo_query, query, labeler=labeler, by=admin, whole=True)
            self.stdout.write(f"{query.query_id}: {query.text}")
