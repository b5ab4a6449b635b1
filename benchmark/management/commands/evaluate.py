"""`manage.py evaluate RUN --release DIR`."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from benchmark.evaluation import evaluate
from benchmark.management.arguments import open_release, positive, refuse
from benchmark.reports import evaluation_data, evaluation_lines
from benchmark.run_files import read_run
from labeling.categories import SPLITS


class Command(BaseCommand):
    """Score a run against a release."""

    help = (
        "Score RUN, a TREC run file or a CSV with the columns query_id, image_id and score, "
        "against the release in DIR: precision, recall, AP with INQUIRE's normalisation "
        "min(k, R), nDCG and MRR, all cut at k. A query that the run misses scores 0; one "
        "without relevant images is left out."
    )
    # Needs files alone, so that a run can be scored where the database isn't.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=Path, help="the run file")
        parser.add_argument(
            "--release", type=Path, required=True, metavar="DIR", help="the release's directory"
        )
        parser.add_argument("--k", type=positive, default=50, help="the cut-off (default: 50)")
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
        scored = {
            query_id: release.relevant[query_id]
            for query_id, query in release.queries.items()
            if split is None or query.split == split
        }
        evaluation = evaluate(
            {query_id: ranking.image_ids for query_id, ranking in run.items()},
            scored,
            k=options["k"],
            known=release.queries.keys(),
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
