"""Making a release that was begun: the snapshot, then every file from it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from django.db import transaction
from django.db.models.functions import Now

from benchmark.releases.files import Written, file_steps, files_write
from benchmark.releases.models import Release
from benchmark.releases.progress import Progress, Report, job_report
from benchmark.releases.snapshot.release_files import SNAPSHOT_FOLDER
from benchmark.releases.snapshots import SNAPSHOT_STEPS, snapshot_take
from core.files import atomic_directory
from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import session_lock

#: Writes a snapshot's tables into an empty directory, and reports its steps.
TakeSnapshot = Callable[[Path, Progress], None]


def release_make(
    *, release: Release, job: Job | None = None, report: Report | None = None
) -> Release:
    """Write a release's files and record them; one that is made already is left as it is.

    `report` gets the steps as they advance. See `release_fill`. JobFailed: the model of the fixed
    lists can't be loaded.
    """

    def take(directory: Path, progress: Progress) -> None:
        snapshot_take(release=release, directory=directory, progress=progress)

    return release_fill(release=release, steps=SNAPSHOT_STEPS, take=take, job=job, report=report)


def release_fill(
    *,
    release: Release,
    steps: tuple[str, ...],
    take: TakeSnapshot,
    job: Job | None = None,
    report: Report | None = None,
) -> Release:
    """Take a snapshot by `take`, whose steps are `steps`, write all files of the release from it,
    and record them in the row.

    Of two makers one waits, and finds it made. All files appear at once, before the row lists
    them; killed at any moment, it leaves nothing that doing it again doesn't replace.
    """
    with session_lock(release.lock), ExitStack() as stack:
        release.refresh_from_db()
        record = stack.enter_context(job_report(job))

        def advanced(steps: object) -> None:
            record(progress.steps)
            if report is not None:
                report(progress.steps)

        progress = Progress((*steps, *file_steps()), advanced)
        if not release.files_ready:
            written = _files_make(release, take, progress)
            _record(release, written)
        if job is not None:
            total = len(progress.steps)
            job_advance(job=job, done=total - job.done, total=total)
    release.refresh_from_db()
    return release


def _files_make(release: Release, take: TakeSnapshot, progress: Progress) -> Written:
    # Replacing: a maker that was killed before its commit may have left a whole directory.
    with atomic_directory(release.directory, replace=True, replaceable=None) as partial:
        snapshot = partial / SNAPSHOT_FOLDER
        snapshot.mkdir()
        take(snapshot, progress)
        return files_write(release=release, directory=partial, progress=progress)


@transaction.atomic
def _record(release: Release, written: Written) -> None:
    counts = written.counts
    Release.objects.filter(pk=release.pk).update(
        made_at=Now(),
        file_list=written.file_list,
        archive=written.archive,
        difference=written.difference,
        header=written.header,
        val_queries=counts.val_queries,
        test_queries=counts.test_queries,
        positives=counts.positives,
        judgments=counts.judgments or 0,
    )
