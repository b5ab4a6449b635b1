"""Runs as rows of a list, with their headline figures."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum
from typing import Any

from django.db.models import F

from core.jobs.models import Job
from evaluation.runs.models import Run, RunScores
from evaluation.runs.selectors import (
    NoSnapshot,
    can_delete,
    can_edit,
    can_publish,
    queries_in,
    summarized_splits,
)
from evaluation.scoring import hidden_labels
from evaluation.scoring.measures import HEADLINES, mean_title
from releases.access import labels_visible_to
from releases.selectors import LONG_FIELDS


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run of a list, and what the user may do with it."""

    run: Run
    figures: list[tuple[str, str, float]]
    """(title of the split, measure, mean over its scored queries in percent) of each split that the
    run answers, as far as the user may see it."""
    may_edit: bool
    may_publish: bool
    may_delete: bool

    @property
    def job(self) -> Job | None:
        """The job that scores or makes it, while it is not done."""
        job = self.run.job
        return job if job is not None and job.state != Job.State.DONE else None


def run_rows(user: Any, *, everybody: bool = False) -> list[RunRow]:
    """The user's own runs, or everybody's but the baselines; newest first."""
    runs = Run.objects.exclude(kind__in=Run.BASELINES)
    if not everybody:
        runs = runs.filter(owner=user.pk)
    # Of a release only its name is shown, and its other fields are long.
    long = [f"release__{name}" for name in LONG_FIELDS]
    listed = list(runs.select_related("release", "owner", "job").defer(*long).order_by("-pk"))
    scores = {
        (score.run_id, score.release_id): score
        for score in RunScores.objects.filter(
            run__in=[run.pk for run in listed], release=F("run__release")
        )
        .select_related("release")
        .defer(*long)
    }
    return [
        RunRow(
            run=run,
            figures=_figures(user, run, scores.get((run.pk, run.release_id))),
            may_edit=can_edit(user, run),
            may_publish=can_publish(user, run),
            may_delete=can_delete(user, run),
        )
        for run in listed
    ]


def split_means(user: Any, run: Run, scores: RunScores) -> dict[str, dict[str, float]]:
    """split -> measure -> mean over its scored queries, of the splits that the run answers a query
    of and that have one to be scored, as far as the user may see it, see `summarized_splits`; none
    for a run that isn't ready, or without the release."""
    if not run.ready:
        return {}
    hidden = not labels_visible_to(user, scores.release, "test")
    shown = ["val"] if run.val_queries else []
    if run.test_queries and not (hidden and run.kind == Run.Kind.BEST):
        shown += summarized_splits(scores.release) if hidden else ("test",)
    means = {}
    for split in shown:
        try:
            queries = queries_in(scores.release, split)
        except NoSnapshot:
            return {}
        chosen = [place for place, pk in enumerate(scores.query_ids) if pk in queries]
        summary = hidden and split != "val"
        if len(chosen) < (hidden_labels.FEWEST_QUERIES if summary else 1):
            continue
        exact = {
            key: fsum(values[place] for place in chosen) / len(chosen)
            for key, values in scores.measures.items()
        }
        means[split] = hidden_labels.rounded_means(exact) if summary else exact
    return means


def _figures(user: Any, run: Run, scores: RunScores | None) -> list[tuple[str, str, float]]:
    means = split_means(user, run, scores) if scores is not None else {}
    usual = HEADLINES[run.task][0]
    titles = hidden_labels.HALVES
    return [
        (titles.get(split, split).lower(), mean_title(key, run.task), 100 * by_measure[key])
        for split, by_measure in means.items()
        for key in [usual if usual in by_measure else hidden_labels.MEASURES[0]]
    ]
