"""A backup made by a job, as an admin requests it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Final

from annotator.postgres.programs import ProgramFailed
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_get_or_create

BACKUP_JOB: Final = "backup"


def backup_begin(*, created_by: Any) -> Job:
    """Have a job write a backup into `backup_folder`; the unfinished one where there is one."""
    return job_get_or_create(kind=BACKUP_JOB, params={}, created_by=created_by, title="Backup")


def backup_step(job: Job, deadline: float) -> bool:
    """Write the backup, in one slice. JobFailed where PostgreSQL's program fails."""
    from annotator.backup.services import backup_to_folder

    try:
        contents = backup_to_folder()
    except ProgramFailed as error:
        raise JobFailed(str(error)) from error
    job_advance(job=job, done=contents.files, total=contents.files, result=asdict(contents))
    return True
