"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from benchmark.releases.signals import release_made, versions_compared
from core.jobs.kinds import JobFailed, job_handler
from retrieval.takedown.services import images_taken_down

if TYPE_CHECKING:
    from benchmark.releases.models import Release
    from benchmark.releases.snapshot.snapshot import Snapshot
    from core.jobs.models import Job


@job_handler("export_release")
def export_release(job: Job, deadline: float) -> bool:
    """Make a release in one slice: its files must show one moment of the database."""
    from benchmark.releases.models import Release
    from benchmark.releases.services import release_make

    release_make(release=Release.objects.get(pk=job.params["release"]), job=job)
    return True


@job_handler("score_run")
def score_run(job: Job, deadline: float) -> bool:
    """Read a submitted run or fuse others, score it, make its best possible re-ranks and publish it
    if that was asked for: in one slice, since an upload is read whole or not at all."""
    from benchmark.runs.fusions import run_read_fusion
    from benchmark.runs.models import Run
    from benchmark.runs.services import run_finish, run_publish
    from benchmark.runs.submissions import run_read

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
    from benchmark.runs.evaluations import evaluation_step

    return evaluation_step(job, deadline)


@job_handler("rescore_runs")
def rescore_runs(job: Job, deadline: float) -> bool:
    """Score the runs of the version before on a new one."""
    from benchmark.runs.rescoring import rescoring_step

    return rescoring_step(job, deadline)


@receiver(versions_compared, dispatch_uid="run_changes")
def _run_changes(*, release: Release, snapshot: Snapshot, **_: Any) -> list[dict[str, Any]]:
    from benchmark.runs.rescoring import run_changes

    return run_changes(release=release, snapshot=snapshot)


@receiver(release_made, dispatch_uid="rescore_runs")
def _rescore(*, release: Release, **_: Any) -> None:
    from benchmark.runs.rescoring import rescoring_begin

    rescoring_begin(release=release)


@job_handler("make_baselines")
def make_baselines(job: Job, deadline: float) -> bool:
    """Make a release's baselines, query by query."""
    from benchmark.runs.baselines import baselines_step

    return baselines_step(job, deadline)


@job_handler("rerank_run")
def rerank_run(job: Job, deadline: float) -> bool:
    """Re-rank a first stage's run, image by image."""
    from benchmark.reranking.services import rerank_step

    return rerank_step(job, deadline)


@job_handler("import_benchmark")
def import_benchmark(job: Job, deadline: float) -> bool:
    """Make a release of a benchmark's files in one slice."""
    from benchmark.releases.importing.layout_files import LayoutRefused
    from benchmark.releases.importing.services import benchmark_import_run

    try:
        benchmark_import_run(job=job)
    except (LayoutRefused, OSError) as error:
        raise JobFailed(str(error)) from error
    return True


@job_handler("simulate")
def simulate(job: Job, deadline: float) -> bool:
    """Label a query again, one order and stop after the other."""
    from benchmark.simulation.services import simulation_step

    return simulation_step(job, deadline)


@job_handler("species_task")
def species_task(job: Job, deadline: float) -> bool:
    """Have a model name the species of the corpus' images, in one slice."""
    from benchmark.species.services import species_step

    return species_step(job, deadline)


@job_handler("take_down")
def take_down(job: Job, deadline: float) -> bool:
    """Write releases again without the bytes of images that were taken down, one in a slice."""
    from benchmark.releases.takedown import takedown_step

    return takedown_step(job, deadline)


@receiver(images_taken_down, dispatch_uid="take_down")
def _take_down_request(*, image_ids: Sequence[int], by: Any, **_: Any) -> None:
    from core.jobs.services import job_create

    job_create(
        kind="take_down",
        params={"images": list(image_ids)},
        created_by=by,
        title=f"Remove image {', '.join(map(str, image_ids[:5]))} from releases",
    )
