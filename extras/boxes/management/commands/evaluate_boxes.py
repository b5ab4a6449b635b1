"""The command `evaluate_boxes`."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from extras.boxes.detection import figures_of, read_results
from extras.boxes.detection_runs import ALL_BOXES, VAL_BOXES, truth_of
from releases.management.arguments import RELEASE_HELP
from releases.selectors import release_named


class Command(ServiceCommand):
    """Scores the file and prints its figures."""

    help = (
        "Score a detector's boxes (COCO results: a JSON list of image_id, category_id, bbox and "
        "score) on those of a release, and print COCO's twelve figures in percent."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("results", type=Path, metavar="RESULTS.json")
        parser.add_argument(
            "--release", required=True, metavar="NAME|DIR", help=f"its folder, or {RELEASE_HELP}"
        )
        parser.add_argument("--val", action="store_true", help="the validation queries alone")

    def handle(self, *args: Any, results: Path, release: str, val: bool, **options: Any) -> None:
        name = VAL_BOXES if val else ALL_BOXES
        try:
            if Path(release).is_dir():
                truth = json.loads((Path(release) / name).read_bytes())
            else:
                truth = truth_of(release_named(release), name)
            entries = read_results(results.read_bytes(), truth)
        except OSError as error:
            raise CommandError(f"{error.filename}: {error.strerror}") from error
        for figure, value in figures_of(truth, entries).items():
            self.stdout.write(f"{figure:<10}" + ("    –" if value is None else f"{value:5.1f}"))
