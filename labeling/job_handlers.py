"""The kinds of long work that this app does; imported when the app is ready."""

from __future__ import annotations

from core.jobs.kinds import job_handler
from core.jobs.models import Job
from labeling.candidates.freezing import list_freeze
from labeling.candidates.services import JOB_KIND


@job_handler(JOB_KIND)
def rank_candidates(job: Job, deadline: float) -> bool:
    """Freeze a candidate list, whole or not at all, whatever kills the worker, and those that wait
    beside it; where another worker is about to, wait for it.
    """
    found = list_freeze(list_id=int(job.params["list"]), job=job, deadline=deadline)
    return found is None or found.ready
