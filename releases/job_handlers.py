"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.dispatch import receiver

from core.jobs.kinds import JobFailed, job_handler
from retrieval.takedown.services import images_taken_down

if TYPE_CHECKING:
    from core.jobs.models import Job


@job_handler("export_release")
def export_release(job: Job, deadline: float) -> bool:
    """Make a release in one slice: its files must show one moment of the database."""
    from releases.making.services import release_make
    from releases.models import Release

    release_make(release=Release.objects.get(pk=job.params["release"]), job=job)
    return True


@job_handler("import_benchmark")
def import_benchmark(job: Job, deadline: float) -> bool:
    """Make a release of a benchmark's files in one slice."""
    from releases.importing.services import benchmark_import_run

    try:
        benchmark_import_run(job=job)
    except OSError as error:
        raise JobFailed(str(error)) from error
    return True


@job_handler("take_down")
def take_down(job: Job, deadline: float) -> bool:
    """Write releases again without the bytes of images that were taken down, one in a slice."""
    from releases.making.takedown import takedown_step

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
