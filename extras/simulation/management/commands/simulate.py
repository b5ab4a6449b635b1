"""`manage.py simulate QUERY…|RELEASE`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.files import whole_file
from core.ids import id_of
from extras.simulation.core import ORDERS
from extras.simulation.pools import JudgedPool, SimulationRefused, query_pool
from extras.simulation.release_pools import release_pools
from extras.simulation.report import (
    Figures,
    Plan,
    doubt_table,
    figures_csv,
    mean_rows,
    order_table,
    stop_table,
    with_step,
)
from labeling.queries.models import Query
from releases.management.arguments import RELEASE_HELP, positive
from releases.selectors import release_named


class Command(ServiceCommand):
    """Labels judged queries again."""

    help = (
        "Label completed queries again by other orders and stop rules, from the judgments that "
        "there are, or all queries of a release: how many labels that takes and what it finds. "
        "Images that nobody judged are left out, and the output says so."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "names",
            nargs="+",
            metavar="QUERY|RELEASE",
            help=f"a query's number, or a release: {RELEASE_HELP} with its version",
        )
        usual = Plan()
        parser.add_argument(
            *("--order", "--orders"),
            type=_several,
            default=usual.orders,
            metavar=",".join(ORDERS),
            help="CLIP's order, the order that learns, a random one (default: all)",
        )
        parser.add_argument(
            *("--stop", "--stops"),
            type=_several,
            default=usual.stops,
            metavar=",".join(usual.stops),
            help="a streak of negatives, with a minimum of labels as streak:100:500; a certificate "
            "of a recall; or every image (default: these)",
        )
        parser.add_argument(
            "--noise",
            type=float,
            default=usual.noise,
            metavar="SHARE",
            help="the share of the relevant images that a person misses (default: %(default)g)",
        )
        parser.add_argument(
            "--seeds",
            type=positive,
            default=usual.seeds,
            help="runs of what depends on chance (default: %(default)s)",
        )
        parser.add_argument(
            "--active-seeds",
            type=positive,
            default=usual.active_seeds,
            help="at most so many of them in the order that learns (default: %(default)s)",
        )
        parser.add_argument(
            *("--reader", "--readers"),
            type=_several,
            default=usual.readers,
            metavar="auc:0.9,…",
            help="machines that read along, by their AUC, and auc:0.9:0.5 with the correlation of "
            "their errors with CLIP's (default: none)",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
        parser.add_argument("--csv", type=Path, metavar="FILE", help="write each query's figures")

    def handle(self, *args: Any, names: list[str], **options: Any) -> None:
        try:
            plan = Plan(
                orders=options["order"],
                stops=options["stop"],
                noise=options["noise"],
                seeds=options["seeds"],
                active_seeds=options["active_seeds"],
                streak=settings.STOP_STREAK,
                readers=options["reader"],
            )
            if plan.readers:
                # What readers know that were calibrated on other queries.
                pools = (one.pool for one in _pools(names) if isinstance(one, JudgedPool))
                shares = [pool.relevant.mean() for pool in pools]
                plan = replace(plan, prevalence=fmean(shares) if shares else None)
            quiet = options["verbosity"] == 0
            queries, refused = _simulated(_pools(names), plan, quiet=quiet)
        except ValueError as error:
            raise CommandError(str(error)) from error
        if not queries:
            raise CommandError("\n".join(refused))
        if options["json"]:
            data = {
                "plan": asdict(plan),
                "queries": queries,
                "means": mean_rows(queries),
                "left_out": refused,
            }
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=1))
        else:
            for line in _lines(queries, refused, plan):
                self.stdout.write(line)
        if options["csv"]:
            try:
                with whole_file(options["csv"]) as file:
                    file.write(figures_csv(queries).encode())
            except OSError as error:
                raise CommandError(f"{options['csv']}: {error.strerror}") from error


def _several(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _pools(names: Sequence[str]) -> Iterator[JudgedPool | SimulationRefused]:
    """Those of the queries and releases of these names. CommandError: there is none."""
    queries = Query.objects.select_related("current_list__embedding_model")
    for name in names:
        number = id_of(name)
        if number is None:
            yield from release_pools(release_named(name))
            continue
        query = queries.filter(query_id=number).first()
        if query is None:
            raise CommandError(f"There is no query {number}.")
        try:
            yield query_pool(query)
        except SimulationRefused as error:
            yield error


def _simulated(
    pools: Iterable[JudgedPool | SimulationRefused], plan: Plan, *, quiet: bool
) -> tuple[list[Figures], list[str]]:
    """The figures of each query, one after the other, and why others have none."""
    queries: list[Figures] = []
    refused: list[str] = []
    with Progress("steps", quiet=quiet) as show:
        for judged in pools:
            if isinstance(judged, SimulationRefused):
                refused.append(str(judged))
                continue
            simulation, figures = plan.simulation(judged.pool), judged.about
            for number, (order, stop) in enumerate(plan.steps):
                show(len(queries) * len(plan.steps) + number, None, f"query {judged.query_id}")
                figures = with_step(figures, simulation, order, stop)
            queries.append(figures)
    return queries, refused


def _lines(queries: Sequence[Figures], refused: Sequence[str], plan: Plan) -> Iterator[str]:
    """The tables for people."""
    if len(queries) == 1:
        [query] = queries
        yield f"Query {query['query_id']}: {query['query_text']}"
        yield f"{query['relevant']:,} of {query['images']:,} images are relevant. {query['world']}"
    else:
        relevant, images = (
            sum(query[name] for query in queries) for name in ("relevant", "images")
        )
        closed = sum(query["closed_world"] for query in queries)
        yield f"Means over {len(queries)} queries; {relevant:,} of {images:,} images are relevant."
        yield (
            f"{closed} of them are closed worlds: the judged images alone, since what was not "
            "judged is not known to be not relevant."
        )
    if plan.noise:
        yield f"Each run misses {100 * plan.noise:g} % of the relevant images at random."
    for table in filter(None, (order_table(queries), stop_table(queries), doubt_table(queries))):
        yield ""
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        yield from ("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)
    if refused:
        yield ""
        yield from ("Left out:", *(f"  {reason}" for reason in refused))
