"""`manage.py split_queries --val 0.2 --seed 7`."""

from argparse import ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from labeling.lifecycle.splitting import SplitPlan, SplitRow, queries_split, split_plan
from labeling.queries.benchmarks import benchmark_named
from releases.splits.selectors import released_queries_by_id

SHOWN_QUERIES = 20


class Command(BaseCommand):
    """Draw which queries are for validation."""

    help = (
        "Draws which of the complete queries are for validation and which for testing. Queries "
        "whose split is settled, by an earlier draw, a person or a file, and those of a release "
        "keep theirs; the others bring the whole to the share."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--val", type=_share, required=True, help="the share for validation, 0 to 1: 0.2"
        )
        parser.add_argument(
            "--benchmark",
            default="",
            metavar="NAME",
            help="whose queries; needed where there are two",
        )
        parser.add_argument("--seed", type=int, default=0, help="default: %(default)s")
        parser.add_argument(
            "--stratify", action="store_true", help="meet the share in each category"
        )
        parser.add_argument(
            "--redraw", action="store_true", help="draw all anew, also those that are settled"
        )
        parser.add_argument(
            "--unfinished", action="store_true", help="also queries that aren't complete yet"
        )
        parser.add_argument("--dry-run", action="store_true", help="show the draw, change nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        draw = split_plan if options["dry_run"] else queries_split
        try:
            plan = draw(
                benchmark=benchmark_named(options["benchmark"]),
                val_share=options["val"],
                seed=options["seed"],
                stratify=options["stratify"],
                redraw=options["redraw"],
                unfinished=options["unfinished"],
                released=released_queries_by_id(),
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        for line in plan_lines(plan, done=not options["dry_run"]):
            self.stdout.write(line)


def plan_lines(plan: SplitPlan, *, done: bool) -> Iterator[str]:
    """The draw as a table, what it does, and what releases say otherwise."""
    if not plan.after:
        yield "There is no complete query; --unfinished draws the others too."
        return
    width = max(len("category"), *(len(row.category) for row in plan.rows))
    yield f"{'category':<{width}}  {'before':>9}  {'after':>9}  share"
    for row in [*plan.rows, plan.sum]:
        yield _line(row, width)
    yield ""
    verb = "changed" if done else "would change"
    yield (
        f"{len(plan.drawn)} drawn, {len(plan.after) - len(plan.drawn)} kept; "
        f"{len(plan.moved)} {verb} splits (before and after: validation/test)."
    )
    if not plan.drawn:
        yield "Every split is settled already; --redraw draws all anew."
    if plan.released:
        yield f"{len(plan.released)} of them are in a release, whose files keep the old split:"
        for query_id, title in list(plan.released.items())[:SHOWN_QUERIES]:
            yield f"  {query_id}: {plan.before[query_id]} -> {plan.after[query_id]}, in {title}"
        if len(plan.released) > SHOWN_QUERIES:
            yield f"  and {len(plan.released) - SHOWN_QUERIES} more"


def _line(row: SplitRow, width: int) -> str:
    before, after = f"{row.val_before}/{row.test_before}", f"{row.val}/{row.test}"
    return f"{row.category or 'all':<{width}}  {before:>9}  {after:>9}  {row.share:.3f}"


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number from 0 to 1") from None
