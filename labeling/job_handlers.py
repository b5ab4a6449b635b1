"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from labeling.services.lists import JOB_KIND, list_freeze
from retrieval.jobs import job_handler
from retrieval.models import Job


@job_handler(JOB_KIND)
def rank_candidates(job: Job, deadline: float) -> bool:
    """Freeze one candidate list, in one piece: it is stored whole or not at all, whatever kills the
    worker.
    """
    list_freeze(list_id=int(job.params["list"]), job=job)
    return True
