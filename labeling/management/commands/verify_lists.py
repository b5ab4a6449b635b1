"""The command `verify_lists`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from labeling.candidates.models import CandidateList
from labeling.candidates.selectors import list_verify


class Command(BaseCommand):
    """Ranks again and compares."""

    help = (
        "Compute every ready candidate list again and compare it bit for bit with what is stored. "
        "Exits with 1 if one differs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--query", type=int, action="append", metavar="QUERY_ID", help="only of these queries"
        )

    def handle(self, *args: Any, query: list[int] | None, **options: Any) -> None:
        lists = CandidateList.objects.filter(frozen_at__isnull=False)
        if query:
            lists = lists.filter(query__query_id__in=query)
        differing = checked = 0
        for candidate_list in lists.select_related("query", "embedding_model").iterator():
            checked += 1
            if list_verify(candidate_list):
                continue
            differing += 1
            self.stderr.write(
                f"list {candidate_list.pk} of query {candidate_list.query.query_id} "
                f"({candidate_list.size} candidates) differs: images of it were replaced or "
                "removed since"
            )
        if differing:
            raise CommandError(f"{differing} of {checked} lists differ.")
        self.stdout.write(f"{checked} lists are the same bit for bit")
