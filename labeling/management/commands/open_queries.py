"""The command `open_queries`."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from core.commands import ServiceCommand
from labeling.lifecycle.opening import MOST_AT_ONCE, queries_open
from labeling.queries.benchmarks import benchmark_named
from labeling.queries.categories import SPLITS
from labeling.queries.models import Query


class Command(ServiceCommand):
    """Opens drafts in batches and reports what was refused."""

    help = (
        "Open draft queries: those of the given numbers, or all. The worker ranks the candidates "
        "of all that have no species filter in one pass over the corpus."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("numbers", nargs="*", type=int, metavar="NUMBER")
        parser.add_argument("--by", required=True, metavar="NAME", help="the admin who opens them")
        parser.add_argument("--split", choices=SPLITS, help="the drafts of one split alone")
        parser.add_argument("--benchmark", metavar="NAME", help="the drafts of one benchmark alone")

    def handle(
        self,
        *args: Any,
        numbers: list[int],
        by: str,
        split: str | None,
        benchmark: str | None,
        **options: Any,
    ) -> None:
        person = get_user_model().objects.filter(username=by).first()
        if person is None:
            raise CommandError(f"There is no user {by!r}; make one with create_user.")
        queries = Query.objects.order_by("query_id")
        if numbers:
            queries = queries.filter(query_id__in=numbers)
            known = set(queries.values_list("query_id", flat=True))
            if missing := sorted(set(numbers) - known):
                raise CommandError(f"There is no query {', '.join(map(str, missing))}.")
        else:
            queries = queries.filter(state=Query.State.DRAFT)
        if split:
            queries = queries.filter(split=split)
        if benchmark:
            queries = queries.filter(benchmark=benchmark_named(benchmark))
        pks = list(queries.values_list("pk", flat=True))
        opened = unchanged = refused = 0
        for start in range(0, len(pks), MOST_AT_ONCE):
            report = queries_open(pks=pks[start : start + MOST_AT_ONCE], by=person)
            opened += report.opened
            unchanged += report.unchanged
            refused += len(report.refused)
            for refusal in report.refused:
                self.stderr.write(f"Query {refusal.query_id}: {refusal.detail}")
        self.stdout.write(f"{opened} opened, {unchanged} open already, {refused} refused")
        if refused:
            raise CommandError("Not all were opened.")
