"""The command `verify_lists`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count, Max

from labeling.candidates.models import CandidateList
from labeling.candidates.selectors import list_verify
from labeling.learning.revisions import revision_problem


class Command(BaseCommand):
    """Ranks again and compares."""

    help = (
        "Compute every ready candidate list and its revisions of the order that learns again and "
        "compare them bit for bit with what is stored. Exits with 1 if one differs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--query", type=int, action="append", metavar="QUERY_ID", help="only of these queries"
        )

    def handle(self, *args: Any, query: list[int] | None, **options: Any) -> None:
        lists = CandidateList.objects.filter(frozen_at__isnull=False)
        if query:
            lists = lists.filter(query__query_id__in=query)
            without = set(query) - set(lists.values_list("query__query_id", flat=True))
            if without:
                raise CommandError(f"No ready list is of {', '.join(map(str, sorted(without)))}.")
        differing = checked = wrong = revisions = incomplete = 0
        for candidate_list in lists.select_related("query", "embedding_model").iterator():
            checked += 1
            # They are numbered from 1 for each person, and none is ever deleted.
            people = candidate_list.revisions.order_by().values("annotator")
            for person in people.annotate(missing=Max("number") - Count("pk")).filter(
                missing__gt=0
            ):
                wrong += person["missing"]
                revisions += person["missing"]
                self.stderr.write(
                    f"list {candidate_list.pk} of query {candidate_list.query.query_id}: revisions "
                    f"that are missing: {person['missing']}"
                )
            for revision in candidate_list.revisions.select_related("annotator"):
                revisions += 1
                revision.candidate_list = candidate_list
                problem = revision_problem(revision)
                if problem is None:
                    incomplete += 1
                elif problem:
                    wrong += 1
                    self.stderr.write(
                        f"{revision} of query {candidate_list.query.query_id}: {problem}"
                    )
            if list_verify(candidate_list):
                continue
            differing += 1
            self.stderr.write(
                f"list {candidate_list.pk} of query {candidate_list.query.query_id} "
                f"({candidate_list.size} candidates) differs: its rows were changed, or images of "
                "its filter replaced or removed since"
            )
        if differing or wrong:
            raise CommandError(
                f"{differing} of {checked} lists differ, and {wrong} of {revisions} revisions."
            )
        self.stdout.write(f"{checked} lists are the same bit for bit")
        if revisions > incomplete:
            same = revisions - incomplete
            self.stdout.write(f"{same} revisions of the order that learns are, too")
        if incomplete:
            self.stdout.write(
                f"{incomplete} revisions can't be compared, since images of theirs were taken down"
            )
