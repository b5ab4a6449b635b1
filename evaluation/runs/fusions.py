"""Runs that fuse other runs of a release, as baselines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from core.errors import Conflict
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data, runs_visible_to
from evaluation.runs.services import rankings_on, run_score_begin, run_store
from evaluation.runs.submissions import require_open_board, submission_record
from evaluation.scoring.fusion import METHODS, NORMALIZATIONS, fuse
from evaluation.scoring.run_files import Ranking
from releases.models import Release

FEWEST: Final = 2
MOST: Final = 10
LONGEST_NAME: Final = 150


def fusible_runs(release: Release, user: Any = None) -> QuerySet[Run]:
    """The scored runs of a release that the user sees (by default all) and that can be fused: those
    with an order of their own that don't know the labels."""
    runs = Run.objects.all() if user is None else runs_visible_to(user)
    return runs.filter(release=release, ready_at__isnull=False).exclude(
        kind__in=[Run.Kind.RANDOM, Run.Kind.BEST]
    )


def run_fuse(
    *,
    runs: Sequence[Run],
    owner: Any,
    method: str = "rrf",
    normalization: str = "min-max",
    name: str = "",
    publish: bool = False,
) -> Run:
    """Make a private run of FEWEST to MOST scored runs of one release and task; a job fuses them
    and scores it, and then publishes it if `publish` is set.

    With test queries it counts as one of the owner's submissions. LimitReached, unless the owner is
    None; Conflict for runs that can't be fused, and for test queries on a closed board.
    """
    release, task = runs[0].release if runs else None, runs[0].task if runs else ""
    if not FEWEST <= len({run.pk for run in runs}) == len(runs) <= MOST:
        raise Conflict(f"Choose {FEWEST} to {MOST} different runs.")
    if release is None or any((run.release_id, run.task) != (release.pk, task) for run in runs):
        raise Conflict("The runs are not all of one release and task.")
    if fusible_runs(release).filter(pk__in=[run.pk for run in runs]).count() < len(runs):
        raise Conflict("A run is not scored yet, or has no order of its own.")
    splits = _shared_splits(runs)
    if not splits:
        raise Conflict("The runs hold no split in common.")
    if "test" in splits:
        require_open_board(release)
    how = METHODS[method] + ("" if method == "rrf" else f" ({NORMALIZATIONS[normalization]})")
    names = ", ".join(run.name for run in runs)
    name = name.strip() or f"{how} of {names}"
    with transaction.atomic():
        fused = Run.objects.create(
            release=release,
            owner=owner,
            task=task,
            kind=Run.Kind.FUSION,
            name=name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 2]} …",
            description=f"{how} of {names}.",
        )
        if owner is not None:
            test_split = "test" in splits
            submission_record(person=owner, run=fused, test_split=test_split)
        fusion = {
            "runs": [run.pk for run in runs],
            "method": method,
            "normalization": normalization,
        }
        run_score_begin(run=fused, created_by=owner, publish=publish, fusion=fusion)
    return fused


def run_read_fusion(*, run: Run, job: Job) -> None:
    """Fuse the runs that a job names, once. JobFailed: one of them was deleted. NoSnapshot,
    RunDamaged: as `rankings_on`."""
    fusion = job.params.get("fusion")
    if fusion is None or run.sha256:
        return
    by_id = Run.objects.select_related("release").in_bulk(fusion["runs"])
    if len(by_id) < len(fusion["runs"]):
        raise JobFailed("A run that was to be fused is deleted.")
    runs = [by_id[pk] for pk in fusion["runs"]]
    queries, splits = release_data(run.release).queries, _shared_splits(runs)
    rankings: list[dict[int, Ranking]] = [
        {
            query_id: ranking
            for query_id, ranking in rankings_on(fused, run.release).items()
            if queries[query_id].split in splits
        }
        for fused in runs
    ]
    run_store(run=run, rankings=fuse(rankings, fusion["method"], fusion["normalization"]))


def _shared_splits(runs: Sequence[Run]) -> set[str]:
    """The splits that every run holds queries of."""
    held = {"val": [run.val_queries for run in runs], "test": [run.test_queries for run in runs]}
    return {split for split, counts in held.items() if all(counts)}
