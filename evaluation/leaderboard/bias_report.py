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

from evaluation.leaderboard.selectors import BoardRuns, cached
from evaluation.leaderboard.tables import BOTH, Ids, printed
from evaluation.runs.models import Run
from evaluation.runs.selectors import task_qrels
from evaluation.runs.services import rankings_on
from evaluation.scoring.bias import PartScores, PoolBias, Tops, pool_bias, read_tops
from evaluation.scoring.evaluation import fixed_ranks
from evaluation.scoring.measures import parse_measure
from labeling.judging.sources import JudgmentSource
from releases.formats.writing import spreadsheet_text
from releases.snapshot.snapshot import Snapshot

#: An image counts as a model's find within so many of its first.
FIRSTS: Final = (10, 50, 100)
USUAL_FIRST: Final = 50
_HEADINGS: Final = {str(one): one.heading for one in JudgmentSource}


@dataclass(frozen=True, slots=True)
class Origin:
    """What people judged where they met it."""

    source: str
    judgments: int
    pairs: int
    """Of query and image; one that was met in two ways counts in both."""
    relevant: int
    """Of these, how many are relevant by the consensus."""

    @property
    def title(self) -> str:
        """What pages call the source."""
        return _HEADINGS.get(self.source, self.source)


@dataclass(frozen=True, slots=True)
class BiasReport:
    """The report on a split of a release, in one measure."""

    release: str
    split: str
    measure: str
    first: int
    """Images of a model that count as its finds."""
    pooled: bool
    """Whether the models are those of pooled lists; else the release's runs stand for them."""
    runs: tuple[Run, ...]
    names: tuple[str, ...]
    """Of the runs, each another."""
    own: Mapping[str, list[int]]
    """Model -> positions of its runs."""
    bias: PoolBias
    origins: tuple[Origin, ...]


def bias_report(board: BoardRuns, split: str, measure: str, first: int) -> BiasReport:
    """The report on the runs with an order of their own that hold a split.

    LabelsHidden: the reader doesn't see its labels. NoSnapshot, RunDamaged: as `rankings_on`.
    """
    release, made = board.release, board.board(split)
    made.of(measure)
    runs = tuple(
        board.runs[place]
        for row, place in enumerate(made.runs)
        if row not in made.oracles and board.runs[place].kind != Run.Kind.RANDOM
    )
    names = _names(runs)
    snapshot = Snapshot(release.snapshot_directory)
    path = snapshot.path("model_ranks")
    pools: Tops = read_tops(path, first) if path.exists() else {}
    pooled = len(pools) > 1
    own = _runs_of_models(runs) if pooled else _runs_of_runs(runs, names)

    def compute() -> PoolBias:
        rankings = [rankings_on(run, release) for run in runs]
        tops = (
            pools
            if pooled
            else {
                name: {
                    query_id: fixed_ranks(one).image_ids[:first]
                    for query_id, one in rankings[names.index(name)].items()
                }
                for name in own
            }
        )
        qrels = task_qrels(release, board.task).only(made.query_ids)
        return pool_bias(rankings, qrels, tops, own, parse_measure(measure))

    queries = [one for one in board.queries.values() if split in (one.split, BOTH)]
    query_ids = np.array([one.query_id for one in queries], dtype=np.int64)
    return BiasReport(
        release=str(release),
        split=split,
        measure=measure,
        first=first,
        pooled=pooled,
        runs=runs,
        names=names,
        own=own,
        bias=cached(compute, "bias", board.fingerprint, split, measure, first),
        origins=cached(lambda: origins(snapshot, query_ids), "origins", board.fingerprint, split),
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
    """Of each model, as printed: name, finds, unique ones, its score, the same without what it
    alone finds, tau-b without it, and the bias of its labels alone: of all runs, its own, others.
    """
    rows = []
    for one in report.bias.models:
        mine = report.own.get(one.model, [])[:1]
        scores = [part[run] for part in (report.bias.scores, one.without.scores) for run in mine]
        bias = one.alone.bias
        rows.append(
            [
                one.model,
                f"{one.found:,}",
                f"{one.unique:,}",
                *(_text(report, score) for score in scores or (None, None)),
                "–" if one.without.tau is None else f"{one.without.tau:.2f}".replace("-", "−"),
                *(_text(report, value) for value in (bias.whole, bias.own, bias.others)),
            ]
        )
    return rows


def run_rows(report: BiasReport) -> list[list[str]]:
    """Of each run, as printed: name, score by all labels and without each model; best first."""
    columns = [report.bias.scores, *(one.without.scores for one in report.bias.models)]
    return [
        [report.names[run], *(_text(report, part[run]) for part in columns)]
        for run in np.argsort(-report.bias.scores, kind="stable").tolist()
    ]


def report_json(report: BiasReport) -> str:
    """The report; scores, biases and taus are null where they aren't defined."""
    bias = report.bias

    def part(one: PartScores) -> dict[str, Any]:
        return {
            "queries": one.queries,
            "tau_b": one.tau,
            "bias": asdict(one.bias),
            "scores": _numbers(one),
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
            {"id": run.pk, "name": name, "score": score}
            for run, name, score in zip(
                report.runs, report.names, bias.scores.tolist(), strict=True
            )
        ],
        "models": [
            {
                "model": one.model,
                "runs": [report.names[run] for run in report.own.get(one.model, [])],
                "found": one.found,
                "unique": one.unique,
                "without": part(one.without),
                "alone": part(one.alone),
            }
            for one in bias.models
        ],
        "origins": [asdict(one) for one in report.origins],
    }
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def report_csv(report: BiasReport) -> str:
    """A row for each run and part of the labels: all, "without" and "alone" of each model."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(
        ["release", "split", "measure", "first", "labels", "model", "found", "unique", "tau_b",
         "bias", "bias_own", "bias_others", "run", "name", "score"]
    )  # fmt: skip
    about = [spreadsheet_text(report.release), report.split, report.measure, report.first]
    parts: list[list[Any]] = [["all", *[""] * 7, report.bias.scores.tolist()]]
    for one in report.bias.models:
        for labels, part in (("without", one.without), ("alone", one.alone)):
            bias = part.bias
            parts.append(
                [labels, spreadsheet_text(one.model), one.found, one.unique, part.tau,
                 bias.whole, bias.own, bias.others, _numbers(part)]
            )  # fmt: skip
    for *columns, scores in parts:
        for run, name, score in zip(report.runs, report.names, scores, strict=True):
            writer.writerow([*about, *columns, run.pk, spreadsheet_text(name), score])
    return file.getvalue()


def _numbers(part: PartScores) -> list[float | None]:
    return part.scores.tolist() if part.queries else [None] * len(part.scores)


def _text(report: BiasReport, value: float | None) -> str:
    return printed(report.measure, None if value is None or np.isnan(value) else float(value))


def _names(runs: tuple[Run, ...]) -> tuple[str, ...]:
    """With their numbers where two have the same."""
    counts = Counter(run.name for run in runs)
    return tuple(run.name if counts[run.name] == 1 else f"{run.name} ({run.pk})" for run in runs)


def _runs_of_models(runs: tuple[Run, ...]) -> dict[str, list[int]]:
    own: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        if run.embedding_model is not None:
            own.setdefault(run.embedding_model.name, []).append(place)
    return own


def _runs_of_runs(runs: tuple[Run, ...], names: tuple[str, ...]) -> dict[str, list[int]]:
    """Each run of one stage, with those that re-rank it. A fusion finds what others find."""
    return {
        name: [
            place for place, other in enumerate(runs) if run.pk in (other.pk, other.first_stage_id)
        ]
        for name, run in zip(names, runs, strict=True)
        if run.first_stage_id is None and run.kind != Run.Kind.FUSION
    }
