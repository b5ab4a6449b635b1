"""`manage.py evaluate RUN --release DIR`."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from evaluation.scoring.evaluation import Run, evaluate
from evaluation.scoring.measures import KINDS, Measure, parse_measures
from evaluation.scoring.reports import evaluation_data, evaluation_lines
from evaluation.scoring.run_files import Ranking, ReadId, read_run
from evaluation.scoring.ties import as_trec_eval, averaged_scores, tie_range
from labeling.queries.categories import SPLITS
from labeling.queries.files import QueryRow
from releases.formats.qrels_files import TextIds, read_qrels
from releases.management.arguments import open_release, positive, refuse
from releases.snapshot.qrels import Qrels

DEFAULT_KINDS: Final = ("P", "R", "AP", "nDCG", "RR")
DEFAULT_K: Final = 50
TIES: Final = ("id", "trec_eval", "average")


@dataclass(frozen=True, slots=True)
class Truth:
    """The queries and labels that a run is scored against."""

    queries: dict[int, QueryRow]
    """By id; empty where only qrels are known."""
    qrels: Qrels
    known: set[int]
    """The queries that the run may hold."""
    judged: bool
    """Whether all judged images are known, and not only the relevant ones."""
    names: list[str] | None = None
    """The original ids of queries, where numbers replace them."""
    image_names: list[str] | None = None
    """The original ids of images, where numbers replace them."""

    def image_name(self, image_id: int) -> str:
        """An image's id as the files have it."""
        return str(image_id) if self.image_names is None else self.image_names[image_id]


class Command(ServiceCommand):
    """Score a run against a release."""

    help = (
        "Score RUN (TREC, CSV with the columns query_id, image_id and score, or JSON lines with "
        "these keys; gzip too) against a release: a directory that import_benchmark takes, or a "
        "qrels file (TREC's or BEIR's), whose ids may be any text. Without --measures: precision, "
        "recall, AP with INQUIRE's normalization min(k, R), nDCG and reciprocal rank, cut at k. A "
        "query that the run misses scores 0; one without relevant images is left out."
    )
    # Needs files alone, so that a run can be scored where the database isn't.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=Path, help="the run file")
        parser.add_argument(
            *("--release", "--qrels"),
            type=Path,
            required=True,
            metavar="PATH",
            help="the release's directory, or a qrels file",
        )
        chosen = parser.add_mutually_exclusive_group()
        chosen.add_argument(
            "--k", type=positive, default=DEFAULT_K, help="the cut-off (default: %(default)s)"
        )
        chosen.add_argument(
            "--measures",
            type=_measures,
            metavar="AP@50,nDCG@50,…",
            help="separated by commas: " + ", ".join(KINDS),
        )
        parser.add_argument("--split", choices=SPLITS, help="score the queries of one split alone")
        parser.add_argument(
            "--ties",
            choices=TIES,
            default=TIES[0],
            help="images with equal scores: the smaller id first (the rule of this application); "
            "as trec_eval; or the mean over all orders, as scikit-learn's ndcg_score",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        path, split = options["release"], options["split"]
        if path.is_file():
            if split is not None:
                raise CommandError("A qrels file doesn't say which split its queries are of.")
            truth, run = _by_qrels(path, options["run"])
        else:
            truth, run = _by_release(path, options["run"], split)
        measures = options["measures"] or [Measure(kind, options["k"]) for kind in DEFAULT_KINDS]
        unknown = [measure.key for measure in measures if measure.kind.needs_judged]
        if unknown and not truth.judged:
            raise CommandError(
                f"The files name relevant images alone, and {unknown[0]} needs all judged ones."
            )
        if options["ties"] == "trec_eval":
            run = as_trec_eval(run, truth.image_name)
        evaluation = evaluate(run, truth.qrels, measures, known=truth.known)
        if options["ties"] == "average":
            try:
                scores = averaged_scores(run, truth.qrels, measures)
            except ValueError as error:
                raise CommandError(str(error)) from error
            evaluation = replace(evaluation, scores=scores)
        ties = tie_range(run, truth.qrels, measures) if options["ties"] == "id" else None
        if options["json"]:
            data = {
                "run": str(options["run"]),
                "release": str(path),
                "split": split,
                **evaluation_data(evaluation, truth.queries, ties, truth.names),
            }
            self.stdout.write(json.dumps(data, ensure_ascii=False, indent=2))
        else:
            for line in evaluation_lines(evaluation, truth.queries, ties, truth.names):
                self.stdout.write(line)


def _by_release(directory: Path, run_path: Path, split: str | None) -> tuple[Truth, Run]:
    layout = open_release(directory)
    queries = {read.query.query_id: read.query for read in layout.queries}
    scored = [query_id for query_id, query in queries.items() if split in (None, query.split)]
    names = ("query_id", "image_id", "relevant")
    owners, images, relevant = (layout.pairs[name].to_numpy() for name in names)
    qrels = Qrels.from_arrays(queries, owners, images, relevant, layout.gains()).only(scored)
    judged = {queries[query_id].split for query_id in scored} <= layout.judged_splits
    return Truth(queries, qrels, set(queries), judged), _run(run_path)


def _by_qrels(path: Path, run_path: Path) -> tuple[Truth, Run]:
    queries, images = TextIds(), TextIds()
    try:
        with path.open("rb") as file:
            relevances, errors = read_qrels(file, name=str(path), queries=queries, images=images)
    except OSError as error:
        raise CommandError(f"Can't read the qrels: {error}") from error
    refuse(errors)
    run = _run(run_path, (queries.number_of, images.number_of))
    (query_places, names), (image_places, image_names) = queries.in_order(), images.in_order()
    pairs = np.array(list(relevances), dtype=np.int64)
    owners = query_places[pairs[:, 0]]
    known = set(owners.tolist())
    values = np.array(list(relevances.values()))
    judged = values >= 0
    owners, places, gains = owners[judged], image_places[pairs[judged, 1]], values[judged]
    relevant = gains > 0
    qrels = Qrels.from_arrays(known, owners, places, relevant, gains)
    truth = Truth({}, qrels, known, not relevant.all(), names, image_names)
    return truth, {
        int(query_places[query]): Ranking(image_places[ranking.image_ids], ranking.scores)
        for query, ranking in run.items()
    }


def _run(path: Path, ids: tuple[ReadId, ReadId] | None = None) -> Run:
    try:
        with path.open("rb") as file:
            run, errors = read_run(file, name=str(path), ids=ids)
    except OSError as error:
        raise CommandError(f"Can't read the run: {error}") from error
    refuse(errors)
    return run


def _measures(text: str) -> tuple[Measure, ...]:
    try:
        return parse_measures(text.split(","))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
