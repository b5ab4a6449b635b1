"""The runs of a leaderboard as its reader sees them, read once and kept in memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeVar

import numpy as np
from django.core.cache import cache
from django.db.models import Exists, OuterRef, QuerySet

from core.cache import LruCache
from evaluation.leaderboard.board import (
    ALL,
    GROUPINGS,
    SPLITS,
    TEST,
    VAL,
    Board,
    Floats,
    Ids,
    RunValues,
    make_board,
    whole_splits,
)
from evaluation.runs.models import Run, RunScores
from evaluation.runs.selectors import (
    queries_in,
    release_data,
    runs_visible_to,
    summarized_splits,
)
from evaluation.scoring import hidden_labels
from evaluation.scoring.evaluation import scored_query_ids
from evaluation.scoring.hidden_labels import HALVES, LabelsHidden
from evaluation.scoring.measures import DEFAULT_MEASURES, HEADLINES
from releases.access import labels_visible_to
from releases.models import Release
from releases.snapshot.snapshot import SnapshotQuery

#: Runs whose scores a process remembers; one of 250 queries takes 90 kB.
REMEMBERED: Final = 400
CACHE_SECONDS: Final = 24 * 3600
#: Measures of how far the labels cover a run's images, beside the first table.
COVERAGE: Final = ("Judged@10", "Judged@50", "Bpref", "RBPresidual")
#: A run is marked where this measure is below FEWEST_JUDGED.
JUDGED: Final = "Judged@10"
FEWEST_JUDGED: Final = 0.8

#: Rows of scores that are read at a time.
ROWS_AT_A_TIME: Final = 20

Result = TypeVar("Result")
_Arrays = tuple[Ids, dict[str, Floats]]

_scores_cache: LruCache[tuple[int, datetime], _Arrays] = LruCache(limit=REMEMBERED)


@dataclass(frozen=True, slots=True)
class BoardRuns:
    """The scored runs of one task on one release."""

    release: Release
    task: str
    runs: Mapping[int, Run]
    """By id."""
    values: Mapping[int, RunValues]
    """Of each of `runs`."""
    queries: Mapping[int, SnapshotQuery]
    query_ids: Ids
    """The scored queries of both splits."""
    fingerprint: str
    """Changes with the release, the runs and their scores; for `cached`."""
    test_hidden: bool
    """Whether the reader doesn't see the labels of the test split."""

    @property
    def splits(self) -> dict[str, str]:
        """The splits that the reader may see, with their titles. Of a test split whose labels are
        hidden that is only a summary, see `summarized_splits`, and nothing where it has few
        queries."""
        shown = [split for split in SPLITS if self.release.has_halves or split not in HALVES]
        if self.test_hidden:
            parts = summarized_splits(self.release)
            fewest = hidden_labels.FEWEST_QUERIES
            shown = [*(part for part in parts if len(self._scored(part)) >= fewest), VAL]
        return {split: SPLITS[split] for split in shown}

    def labels_hidden(self, split: str) -> bool:
        """Whether the reader sees no more than a summary of a split."""
        return self.test_hidden and split != VAL

    def groupings(self, split: str) -> dict[str, str]:
        """The groupings of a split's queries that the reader may see, with their titles."""
        return {ALL: GROUPINGS[ALL]} if self.labels_hidden(split) else GROUPINGS

    def main_measures(self, split: str) -> tuple[str, ...]:
        """Keys of the measures of a split's first table, which the first of them sorts."""
        return hidden_labels.MEASURES if self.labels_hidden(split) else HEADLINES[self.task]

    def coverage(self, split: str) -> list[str]:
        """Those of COVERAGE that the reader may see beside a split's first table; none for
        re-ranking, where images without a judgment count as not relevant."""
        if self.labels_hidden(split) or self.task != Run.Task.FULL:
            return []
        return [key for key in COVERAGE if key in self.measures]

    @property
    def measures(self) -> list[str]:
        """Keys of all measures that a run has, the usual ones first and in their order."""
        usual = [measure.key for measure in DEFAULT_MEASURES]
        there = dict.fromkeys(key for values in self.values.values() for key in values.values)
        return [key for key in usual if key in there] + [key for key in there if key not in usual]

    def board(self, split: str) -> Board:
        """The board of the runs that hold a split. Where its labels are hidden, that is a summary,
        without the best possible re-ranks, whose AP is the recall of their first stages.

        ValueError: an unknown split. LabelsHidden: one that isn't among `splits`.
        """
        labels_hidden = self.labels_hidden(split)
        if labels_hidden and split not in self.splits:
            raise LabelsHidden
        board = make_board(
            {
                run: values
                for run, values in self.values.items()
                if not (labels_hidden and values.oracle)
            },
            self.queries,
            self._scored(split),
            split=split,
            fingerprint=f"{self.fingerprint} {split}",
        )
        if not labels_hidden:
            return board
        summary = cached(
            lambda: hidden_labels.summarize(board.values), "summary", board.fingerprint
        )
        return replace(board, values={}, summary=summary)

    def _scored(self, split: str) -> list[int]:
        """The scored queries of a split; for BOTH those of both."""
        half = queries_in(self.release, split) if split in HALVES else self.queries.keys()
        splits = whole_splits(split)
        ids: list[int] = self.query_ids.tolist()
        return [pk for pk in ids if pk in half and self.queries[pk].split in splits]


def board_runs(release: Release, task: str, user: Any) -> BoardRuns:
    """The scored runs of a release's task that the user sees. NoSnapshot: nothing to score on."""
    test_hidden = not labels_visible_to(user, release, TEST)
    return _board_runs(release, task, runs_visible_to(user), test_hidden)


def published_runs(release: Release, task: str) -> BoardRuns:
    """The public scored runs, as researchers see them, for exports. NoSnapshot: nothing to score
    on."""
    published = Run.objects.filter(published_at__isnull=False)
    return _board_runs(release, task, published, release.labels_hidden)


def values_on(release: Release, runs: Mapping[int, Run]) -> dict[int, RunValues]:
    """Scores of the same methods on another version of the release, by run id.

    These are a run's own scores there; for a baseline without any, those of that version's own
    baseline of the same kind.
    """
    own = {
        scores.run_id: scores
        for scores in _without_figures(RunScores.objects.filter(release=release, run__in=runs))
    }
    of_baselines = {
        _baseline_key(scores.run): scores
        for scores in _without_figures(
            RunScores.objects.filter(
                release=release, run__release=release, run__kind__in=Run.BASELINES
            )
        )
    }
    scores_of = {}
    for pk, run in runs.items():
        scores = own.get(pk)
        if scores is None and run.is_baseline:
            scores = of_baselines.get(_baseline_key(run))
        if scores is not None:
            scores_of[pk] = scores
    arrays = _arrays(scores_of.values())
    return {pk: _values(runs[pk], arrays[scores.pk]) for pk, scores in scores_of.items()}


def version_board(release: Release, runs: Mapping[int, Run], split: str) -> Board:
    """The board of the same methods on another version of the release, over all of its queries."""
    values = values_on(release, runs)
    scored = {query_id for of_run in values.values() for query_id in of_run.query_ids.tolist()}
    return make_board(values, release_data(release).queries, scored, split=split)


def releases_with_runs(user: Any) -> QuerySet[Release]:
    """The made releases that have a scored run that the user sees, the newest first."""
    runs = runs_visible_to(user).filter(release=OuterRef("pk"), ready_at__isnull=False)
    return Release.objects.made().filter(Exists(runs)).order_by("-made_at")


def cached(compute: Callable[[], Result], *key_parts: Any) -> Result:
    """The result of `compute`, from the cache where it was computed before under the same key."""
    key = "leaderboard:" + hashlib.sha256(repr(key_parts).encode()).hexdigest()
    result: Result | None = cache.get(key)
    if result is None:
        result = compute()
        cache.set(key, result, CACHE_SECONDS)
    return result


def _board_runs(
    release: Release, task: str, visible: QuerySet[Run], test_hidden: bool
) -> BoardRuns:
    scores = list(
        _without_figures(
            RunScores.objects.filter(
                release=release,
                run__release=release,
                run__task=task,
                run__ready_at__isnull=False,
                run__in=visible,
            )
        )
    )
    versions = [(score.pk, score.made_at.isoformat()) for score in scores]
    arrays = _arrays(scores)
    return BoardRuns(
        release=release,
        task=task,
        runs={score.run_id: score.run for score in scores},
        values={score.run_id: _values(score.run, arrays[score.pk]) for score in scores},
        queries=release_data(release).queries,
        query_ids=scored_query_ids(release_data(release).qrels_of(task)),
        fingerprint=repr((release.pk, str(release.made_at), task, versions)),
        test_hidden=test_hidden,
    )


def _without_figures(scores: QuerySet[RunScores]) -> QuerySet[RunScores]:
    """Rows of scores without their figures, which `_arrays` remembers."""
    return (
        scores.defer("query_ids", "measures")
        .select_related("run__owner", "run__embedding_model", "run__first_stage__embedding_model")
        .order_by("run_id")
    )


def _values(run: Run, arrays: _Arrays) -> RunValues:
    query_ids, values = arrays
    return RunValues(
        query_ids=query_ids,
        values=values,
        splits=splits_of(run),
        oracle=run.kind == Run.Kind.BEST,
    )


def splits_of(run: Run) -> frozenset[str]:
    """The splits that a run is measured on: those that it holds queries of; a random order has
    both."""
    if run.kind == Run.Kind.RANDOM:
        return frozenset({VAL, TEST})
    held = {VAL: run.val_queries, TEST: run.test_queries}
    return frozenset(split for split, count in held.items() if count)


def _arrays(scores: Iterable[RunScores]) -> dict[int, _Arrays]:
    """The figures of rows of scores, by their ids; those that aren't remembered are read in one SQL
    query. `made_at` distinguishes the versions of a row."""
    versions = [(score.pk, score.made_at) for score in scores]
    arrays = {pk: known for (pk, _), known in _scores_cache.get_many(versions).items()}
    missing = [pk for pk, _ in versions if pk not in arrays]
    if not missing:
        return arrays
    figures = ("query_ids", "measures", "made_at")
    for score in RunScores.objects.filter(pk__in=missing).only(*figures).iterator(ROWS_AT_A_TIME):
        values = {key: np.array(row, dtype=np.float64) for key, row in score.measures.items()}
        arrays[score.pk] = np.array(score.query_ids, dtype=np.int64), values
        _scores_cache.set_many({(score.pk, score.made_at): arrays[score.pk]})
    return arrays


def _baseline_key(run: Run) -> tuple[Any, ...]:
    first = run.first_stage
    return (
        run.task,
        run.kind,
        run.embedding_model_id,
        run.rerank_depth,
        None if first is None else (first.kind, first.embedding_model_id, first.name),
    )
