"""The Celery task that works on jobs."""

from __future__ import annotations

from celery import shared_task

from core.jobs.services import TASK, job_slice_run


@shared_task(name=TASK, ignore_result=True)
def run_job(job_id: int, turn: int | None = None) -> str:
    """Do one slice of a job; see `job_slice_run` for what a repeat or an old turn does."""
    return job_slice_run(job_id=job_id, turn=turn).value
