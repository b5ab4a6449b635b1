"""The runs of a version scored on the next one: what more labels change in scores and order."""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.db.models import Q, QuerySet

from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_item_error
from evaluation.runs.models import Run, RunScores
from evaluation.runs.selectors import ReleaseData, read_release_data, release_data
from evaluation.runs.services import run_score_elsewhere, run_values
from evaluation.runs.store import RunDamaged
from evaluation.scoring.evaluation import scored_query_ids
from evaluation.scoring.measures import HEADLINES, parse_measures
from evaluation.scoring.rounding import mean_margin, settled
from evaluation.scoring.significance import tau_b
from releases.models import Release
from releases.snapshot.snapshot import Snapshot

JOB_KIND: Final = "rescore_runs"
#: The measures of runs in a version's difference, by task; the first ranks the runs.
MEASURES: Final = {task: keys[:2] for task, keys in HEADLINES.items()}
_Scored = tuple[Run, RunScores, dict[str, Any]]
"""A run, its scores on the version before, and its values by the labels of the new one."""


def runs_of(release: Release) -> QuerySet[Run]:
    """The public runs that are scored on a release, without best possible re-ranks: its own, and
    submitted ones of versions before.
    """
    own = Q(release=release) | ~Q(kind__in=Run.BASELINES)
    public = Run.objects.filter(own, published_at__isnull=False, ready_at__isnull=False)
    return public.filter(scores__release=release).exclude(kind=Run.Kind.BEST).order_by("pk")


def rescoring_begin(*, release: Release) -> Job | None:
    """Have the runs of the version before scored on a new one; None where there are none."""
    if release.previous is None or not runs_of(release.previous).exists():
        return None
    return job_create(
        kind=JOB_KIND,
        params={"release": release.pk},
        created_by=release.created_by,
        title=f"Score the runs of {release.previous} on {release}",
    )


def rescoring_step(job: Job, deadline: float) -> bool:
    """Score runs until `deadline`, a transaction each; True when all are. NoSnapshot: the release's
    files are lost."""
    release = Release.objects.select_related("previous").get(pk=job.params["release"])
    runs = runs_of(release.previous) if release.previous else Run.objects.none()
    if job.total is None:
        job_advance(job=job, total=runs.count(), cursor={"last": 0})
    for run in runs.filter(pk__gt=job.cursor["last"]).select_related("release"):
        with transaction.atomic():
            try:
                run_score_elsewhere(run=run, release=release)
                failed = 0
            except RunDamaged as error:
                job_item_error(job=job, item=run.name, message=str(error))
                failed = 1
            job_advance(job=job, done=1 - failed, failed=failed, cursor={"last": run.pk})
        if time.monotonic() >= deadline:
            return False
    return True


def run_changes(*, release: Release, snapshot: Snapshot) -> list[dict[str, Any]]:
    """The tables of `difference.Difference.runs` for a version that is being made, without runs
    whose ranking is lost. The test split is left out where the version before hides its labels and
    this one doesn't: readers of this one's labels could infer the hidden ones.
    """
    before = release.previous
    if before is None:
        return []
    data = read_release_data(snapshot)
    leaks = before.labels_hidden and not release.labels_hidden
    tables = []
    for task in MEASURES:
        runs = list(runs_of(before).filter(task=task))
        scores = {score.run_id: score for score in before.scores.filter(run__in=runs)}
        scored = [(run, scores[run.pk], new) for run in runs if (new := _values(run, data))]
        for split in ("val",) if leaks else ("val", "test"):
            held = [
                (run, old, new)
                for run, old, new in scored
                if run.kind == Run.Kind.RANDOM or getattr(run, f"{split}_queries")
            ]
            tables.append(_table(before, data, task, split, held))
    return [table for table in tables if table["runs"]]


def _values(run: Run, data: ReleaseData) -> dict[str, Any]:
    try:
        return run_values(run, data, parse_measures(MEASURES[run.task]))
    except RunDamaged:
        return {}


def _table(
    before: Release, data: ReleaseData, task: str, split: str, scored: list[_Scored]
) -> dict[str, Any]:
    """One table; without runs where both versions score no query of the split."""
    was, now = release_data(before).queries, data.queries
    query_ids = scored_query_ids(data.qrels_of(task)).tolist()
    both = {
        query_id
        for query_id in query_ids
        if query_id in was and was[query_id].split == now[query_id].split == split
    }
    both.intersection_update(*(old.query_ids for _, old, _ in scored))
    measures = MEASURES[task]

    def means(of: list[int], values: dict[str, Any]) -> list[float]:
        kept = np.isin(of, list(both))
        return [float(np.asarray(values[key])[kept].mean()) for key in measures]

    rows: list[dict[str, Any]] = [
        {
            "name": run.name,
            "was": means(old.query_ids, old.measures),
            "now": means(query_ids, new),
        }
        for run, old, new in (scored if both else ())
    ]
    for place, measure in enumerate(parse_measures(measures)):
        for when in ("was", "now"):
            column = [row[when][place] for row in rows]
            equal = settled(column, mean_margin(len(both), measure)).tolist()
            for row, mean in zip(rows, equal, strict=True):
                row[when][place] = mean
    columns = {when: [row[when][0] for row in rows] for when in ("was", "now")}
    for row in rows:
        row["rank"] = [
            1 + sum(other > row[when][0] for other in column) for when, column in columns.items()
        ]
    return {
        "task": task,
        "split": split,
        "queries": len(both),
        "measures": list(measures),
        "means": [measure.mean_name for measure in parse_measures(measures)],
        "tau_b": tau_b(*columns.values()),
        "runs": sorted(rows, key=lambda row: row["rank"][1]),
    }
