"""`manage.py evaluate RUN --release DIR`."""

import argparse
import json
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark.management.arguments import open_release, positive, refuse
from benchmark.scoring.evaluation import evaluate
from benchmark.scoring.measures import JUDGED_KINDS, MEASURE_KEYS, Measure, parse_measures
from benchmark.scoring.qrels import Qrels
from benchmark.scoring.reports import evaluation_data, evaluation_lines
from benchmark.scoring.run_files import read_run
from labeling.queries.categories import SPLITS

USUAL_KINDS: Final = ("P", "R", "AP", "nDCG", "RR")
USUAL_K: Final = 50


class Command(BaseCommand):
    """Score a run against a release."""

    help = (
        "Score RUN (TREC, CSV with the columns query_id, image_id and score, or JSON lines with "
        "these keys; gzip too) against the release in DIR. Without --measures: precision, recall, "
        "AP with INQUIRE's normalization min(k, R), nDCG and reciprocal rank, cut at k. A query "
        "that the run misses scores 0; one without relevant images is left out."
    )
    # Needs files alone, so that a run can be scored where the database isn't.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=Path, help="the run file")
        parser.add_argument(
            "--release", type=Path, required=True, metavar="DIR", help="the release's directory"
        )
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument(
            "--k", type=positive, default=USUAL_K, help="the cut-off (default: %(default)s)"
        )
        chosen.add_argument(
            "--measures",
            type=_measures,
            metavar="AP@50,nDCG@50,…",
            help="separated by commas: " + ", ".join(MEASURE_KEYS),
        )
        parser.add_argument("--split", choices=SPLITS, help="score the queries of one split alone")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        release = open_release(options["release"])
        try:
            with options["run"].open("rb") as file:
                run, errors = read_run(file, name=str(options["run"]))
        except OSError as error:
            raise CommandError(f"Can't read the run: {error}") from error
        refuse(errors)
        split = options["split"]
        scored = [
            query_id
            for query_id, query in release.queries.items()
            if split is None or query.split == split
        ]
        pairs = ((one, image, True) for one in scored for image in release.relevant[one])
        measures = options["measures"] or [Measure(kind, options["k"]) for kind in USUAL_KINDS]
        evaluation = evaluate(
            run, Qrels.from_pairs(scored, pairs), measures, known=release.queries.keys()
        )
        if options["json"]:
            data = {
                "run": str(options["run"]),
                "release": str(options["release"]),
                "split": split,
                **evaluation_data(evaluation, release.queries),
            }
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=2))
        else:
            for line in evaluation_lines(evaluation, release.queries):
                self.stdout.write(line)


def _measures(text: str) -> tuple[Measure, ...]:
    try:
        measures = parse_measures(text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    unknown = [measure.key for measure in measures if measure.kind in JUDGED_KINDS]
    if unknown:
        raise argparse.ArgumentTypeError(
            f"INQUIRE's files name relevant images alone, and {unknown[0]} needs all judged ones."
        )
    return measures
