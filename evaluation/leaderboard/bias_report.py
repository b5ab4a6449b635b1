"""Whether a release's rankings depend on the models that chose the judged images."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from core.csv_rows import spreadsheet_text
from evaluation.leaderboard.board import BOTH, Ids, printed
from evaluation.leaderboard.marks import OTHER_FINDS
from evaluation.leaderboard.selectors import BoardRuns, cached
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from evaluation.runs.services import rankings_on
from evaluation.scoring.bias import ModelBias, PartScores, PoolBias, Tops, pool_bias, read_tops
from evaluation.scoring.evaluation import sorted_ranking
from evaluation.scoring.hidden_labels import LabelsHidden
from evaluation.scoring.measures import parse_measure
from labeling.judging.sources import JudgmentSource
from releases.snapshot.snapshot import Snapshot

#: An image counts as a model's find down to one of these ranks.
DEPTHS: Final = (10, 50, 100)
DEFAULT_DEPTH: Final = 50
_HEADINGS: Final = {str(source): source.heading for source in JudgmentSource}


@dataclass(frozen=True, slots=True)
class Origin:
    """The judgments of one source: where people met the images that they judged."""

    source: str
    judgments: int
    pairs: int
    """Of query and image; one that was met in two ways counts in both."""
    relevant: int
    """Of these, how many are relevant by the consensus."""

    @property
    def title(self) -> str:
        """The source's name on pages."""
        return _HEADINGS.get(self.source, self.source)


@dataclass(frozen=True, slots=True)
class BiasReport:
    """The report on a split of a release, in one measure."""

    release: str
    split: str
    measure: str
    first: int
    """How many of a model's first images count as its finds."""
    pooled: bool
    """Whether the models are those of pooled lists; else the release's runs stand for them."""
    names: Mapping[int, str]
    """Run id -> the run's name, no two alike."""
    own: Mapping[str, list[int]]
    """Model -> ids of its runs."""
    bias: PoolBias
    others: tuple[ModelBias, ...]
    """What others than models found (`marks.OTHER_FINDS`), and the scores without it."""
    origins: tuple[Origin, ...]


def bias_report(runs: BoardRuns, split: str, measure: str, first: int) -> BiasReport:
    """The report on the runs with an order of their own that hold a split.

    LabelsHidden: the reader doesn't see its labels. NoSnapshot, RunDamaged: as `rankings_on`.
    """
    release, board = runs.release, runs.board(split)
    if board.summary is not None:
        raise LabelsHidden
    ordered = {pk: runs.runs[pk] for pk in board.competitors}
    ordered = {pk: run for pk, run in ordered.items() if run.kind != Run.Kind.RANDOM}
    names = _distinct_names(ordered)
    snapshot = Snapshot(release.snapshot_directory)
    path = snapshot.path("model_ranks")
    pools: Tops = read_tops(path, first) if path.exists() else {}
    pooled = len(pools) > 1
    own = _runs_by_model(ordered) if pooled else _runs_by_first_stage(ordered, names)

    def compute() -> tuple[PoolBias, tuple[ModelBias, ...]]:
        rankings = {pk: rankings_on(run, release) for pk, run in ordered.items()}
        tops = pools
        if not pooled:
            tops = {
                names[pk]: {
                    query_id: sorted_ranking(ranking).image_ids[:first]
                    for query_id, ranking in rankings[pk].items()
                }
                for pk in ordered
                if names[pk] in own
            }
        qrels = release_data(release).qrels_of(runs.task).only(board.query_ids)
        whole = pool_bias(rankings, qrels, tops, own, parse_measure(measure))
        finders = [finds for find in OTHER_FINDS for finds in find(snapshot).items()]
        alone = (
            pool_bias(rankings, qrels, {name: finds}, {}, parse_measure(measure))
            for name, finds in finders
        )
        return whole, tuple(one for part in alone for one in part.models)

    bias, others = cached(compute, "bias and others", board.fingerprint, measure, first)
    query_ids = [pk for pk, query in runs.queries.items() if split in (query.split, BOTH)]
    ids = np.array(query_ids, dtype=np.int64)
    return BiasReport(
        release=str(release),
        split=split,
        measure=measure,
        first=first,
        pooled=pooled,
        names=names,
        own=own,
        bias=bias,
        others=others,
        origins=cached(lambda: origins(snapshot, ids), "origins", board.fingerprint),
    )


def origins(snapshot: Snapshot, query_ids: Ids) -> tuple[Origin, ...]:
    """Where the judged images of some queries came from, most judgments first; none where single
    judgments aren't known."""
    rows = snapshot.sql(
        """
        SELECT source, sum(judgments), count(*), count(*) FILTER (relevant) FROM (
            SELECT source, query_id, image_id, count(*) AS judgments FROM judgments
             WHERE query_id IN (SELECT unnest($query_ids)) GROUP BY ALL
        ) LEFT JOIN pairs USING (query_id, image_id)
         GROUP BY source ORDER BY sum(judgments) DESC, source
        """,
        query_ids=query_ids.tolist(),
    )
    return tuple(Origin(*row) for row in rows.fetchall())


def model_rows(report: BiasReport) -> list[list[str]]:
    """A row for each model, as printed: name, finds, unique finds, its score, its score without its
    unique finds, tau-b without these, and the bias of its labels alone on all runs, its own and
    others.
    """
    rows = []
    for model in report.bias.models:
        mine = report.own.get(model.model, [])[:1]
        parts = (report.bias.scores, model.without.scores)
        scores = [scores[run] for scores in parts for run in mine]
        bias = model.alone.bias
        rows.append(
            [
                model.model,
                f"{model.found:,}",
                f"{model.unique:,}",
                *(_text(report, score) for score in scores or (None, None)),
                "–" if model.without.tau is None else f"{model.without.tau:.2f}".replace("-", "−"),
                *(_text(report, value) for value in (bias.whole, bias.own, bias.others)),
            ]
        )
    return rows


def run_rows(report: BiasReport) -> list[list[str]]:
    """A row for each run, as printed: name, score by all labels, without each model and without
    what others found; best first."""
    whole = report.bias.scores
    parts = (*report.bias.models, *report.others)
    columns = [whole, *(part.without.scores for part in parts)]
    return [
        [report.names[run], *(_text(report, scores[run]) for scores in columns)]
        for run in sorted(whole, key=whole.__getitem__, reverse=True)
    ]


def report_json(report: BiasReport) -> str:
    """The report; scores, biases and taus are null where they aren't defined."""
    bias = report.bias

    def described(part: PartScores) -> dict[str, Any]:
        return {
            "queries": part.queries,
            "tau_b": part.tau,
            "bias": asdict(part.bias),
            "scores": _numbers(part),
        }

    content = {
        "release": report.release,
        "split": report.split,
        "measure": report.measure,
        "first": report.first,
        "models_of_pool": report.pooled,
        "sentence": bias.sentence,
        "queries": bias.queries,
        "relevant": bias.relevant,
        "found_by_no_model": bias.outside,
        "runs": [
            {"id": run, "name": name, "score": bias.scores[run]}
            for run, name in report.names.items()
        ],
        "models": [
            {
                "model": model.model,
                "runs": [report.names[run] for run in report.own.get(model.model, [])],
                "found": model.found,
                "unique": model.unique,
                "without": described(model.without),
                "alone": described(model.alone),
            }
            for model in bias.models
        ],
        "others": [
            {"name": one.model, "found": one.found, "without": described(one.without)}
            for one in report.others
        ],
        "origins": [asdict(origin) for origin in report.origins],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def report_csv(report: BiasReport) -> str:
    """A row for each run and part of the labels: all, "without" and "alone" of each model, and
    "without" what others found."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ["release", "split", "measure", "first", "labels", "model", "found", "unique", "tau_b",
         "bias", "bias_own", "bias_others", "run", "name", "score"]
    )  # fmt: skip
    about = [spreadsheet_text(report.release), report.split, report.measure, report.first]
    parts: list[list[Any]] = [["all", *[""] * 7, list(report.bias.scores.values())]]
    for model in report.bias.models:
        for labels, part in (("without", model.without), ("alone", model.alone)):
            bias = part.bias
            parts.append(
                [labels, spreadsheet_text(model.model), model.found, model.unique, part.tau,
                 bias.whole, bias.own, bias.others, _numbers(part)]
            )  # fmt: skip
    for one in report.others:
        part, name = one.without, spreadsheet_text(one.model)
        counts = [one.found, one.unique, part.tau]
        parts.append(["without", name, *counts, part.bias.whole, None, None, _numbers(part)])
    for *columns, scores in parts:
        for (run, name), score in zip(report.names.items(), scores, strict=True):
            writer.writerow([*about, *columns, run, spreadsheet_text(name), score])
    return file.getvalue()


def _numbers(part: PartScores) -> list[float | None]:
    return [score if part.queries else None for score in part.scores.values()]


def _text(report: BiasReport, value: float | None) -> str:
    return printed(report.measure, None if value is None or np.isnan(value) else value)


def _distinct_names(runs: Mapping[int, Run]) -> dict[int, str]:
    """The runs' names, with the runs' numbers where two have the same name."""
    counts = Counter(run.name for run in runs.values())
    return {
        pk: run.name if counts[run.name] == 1 else f"{run.name} ({pk})" for pk, run in runs.items()
    }


def _runs_by_model(runs: Mapping[int, Run]) -> dict[str, list[int]]:
    own: dict[str, list[int]] = {}
    for pk, run in runs.items():
        if run.embedding_model is not None:
            own.setdefault(run.embedding_model.name, []).append(pk)
    return own


def _runs_by_first_stage(runs: Mapping[int, Run], names: Mapping[int, str]) -> dict[str, list[int]]:
    """Each run of one stage, with those that re-rank it. A fusion finds what others find."""
    return {
        names[pk]: [other.pk for other in runs.values() if pk in (other.pk, other.first_stage_id)]
        for pk, run in runs.items()
        if run.first_stage_id is None and run.kind != Run.Kind.FUSION
    }
