"""The demo's kind of job; imported when the app is ready."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.jobs.kinds import job_handler

if TYPE_CHECKING:
    from core.jobs.models import Job


@job_handler("demo_release")
def demo_release(job: Job, deadline: float) -> bool:
    """Make the demo's release and its runs, step by step."""
    from demo.release import demo_release_step

    return demo_release_step(job)
