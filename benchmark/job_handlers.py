"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from retrieval.jobs import job_handler

if TYPE_CHECKING:
    from retrieval.models import Job


@job_handler("export_release")
def export_release(job: Job, deadline: float) -> bool:
    """Make a release in one slice: its files must show one moment of the database."""
    from benchmark.models import Release
    from benchmark.services import release_make

    release_make(release=Release.objects.get(pk=job.params["release"]), job=job)
    return True
