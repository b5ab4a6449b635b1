"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from core.jobs.kinds import job_handler
from releases.signals import release_made, versions_compared

if TYPE_CHECKING:
    from core.jobs.models import Job
    from releases.models import Release
    from releases.snapshot.snapshot import Snapshot


@job_handler("score_run")
def score_run(job: Job, deadline: float) -> bool:
    """Read a submitted run or fuse others, score it, make its best possible re-ranks and publish it
    if that was asked for: in one slice, since an upload is read whole or not at all."""
    from evaluation.runs.fusions import run_read_fusion
    from evaluation.runs.models import Run
    from evaluation.runs.services import run_finish, run_publish
    from evaluation.runs.submissions import run_read

    run = Run.objects.filter(pk=job.params["run"]).select_related("release").first()
    # Deleted meanwhile.
    if run is not None:
        run_read(run=run, job=job)
        run_read_fusion(run=run, job=job)
        run_finish(run=run, job=job)
        if job.params.get("publish"):
            run_publish(run=run)
    return True


@job_handler("evaluate_model")
def evaluate_model(job: Job, deadline: float) -> bool:
    """Embed the corpus by a model, then rank and score it on a release."""
    from evaluation.runs.model_evaluations import evaluation_step

    return evaluation_step(job, deadline)


@job_handler("rescore_runs")
def rescore_runs(job: Job, deadline: float) -> bool:
    """Score the runs of the version before on a new one."""
    from evaluation.runs.rescoring import rescoring_step

    return rescoring_step(job, deadline)


@receiver(versions_compared, dispatch_uid="run_changes")
def _run_changes(*, release: Release, snapshot: Snapshot, **_: Any) -> list[dict[str, Any]]:
    from evaluation.runs.rescoring import run_changes

    return run_changes(release=release, snapshot=snapshot)


@receiver(release_made, dispatch_uid="rescore_runs")
def _rescore(*, release: Release, **_: Any) -> None:
    from evaluation.runs.rescoring import rescoring_begin

    rescoring_begin(release=release)


@job_handler("make_baselines")
def make_baselines(job: Job, deadline: float) -> bool:
    """Make a release's baselines, query by query."""
    from evaluation.runs.baselines import baselines_step

    return baselines_step(job, deadline)


@job_handler("rerank_run")
def rerank_run(job: Job, deadline: float) -> bool:
    """Re-rank a first stage's run, image by image."""
    from evaluation.reranking.services import rerank_step

    return rerank_step(job, deadline)
