"""Takedowns: made releases lose the bytes of images that had to go, and say so."""

from __future__ import annotations

import os
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.utils import timezone

from benchmark.releases.files import file_steps, files_write
from benchmark.releases.models import Release
from benchmark.releases.progress import Progress
from benchmark.releases.snapshot.release_files import SNAPSHOT_FOLDER
from benchmark.releases.snapshot.snapshot import Snapshot, software
from core.files import atomic_directory
from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import session_lock
from retrieval.takedown.services import removed_files_delete


def takedown_step(job: Job, deadline: float) -> bool:
    """Write the next release that holds bytes of the job's images again; True when none is left.

    Each release is a slice: its files change together. Doing one twice changes nothing.
    """
    removed_files_delete()
    after = job.cursor.get("release", 0)
    release = Release.objects.made().filter(pk__gt=after).order_by("pk").first()
    if release is None:
        return True
    release_redact(release=release, image_ids=job.params["images"])
    job_advance(
        job=job,
        done=1,
        total=Release.objects.made().count(),
        cursor={"release": release.pk},
    )
    return False


def release_redact(*, release: Release, image_ids: Sequence[int]) -> bool:
    """Write the files of a made release again without the bytes of images that were taken down;
    whether any held them.

    The snapshot stays, and with it what is known of the images. The row gets a takedown, with the
    former SHA-256 of each file that changed, and the new checksums, by which the release is
    verified from then on. Killed between the files and the row, it is done again.
    """
    with session_lock(release.lock):
        release.refresh_from_db()
        if not release.header.get("include_images") or not _holds(release, image_ids):
            return False
        done = {image_id for one in release.takedowns for image_id in one["images"]}
        if done.issuperset(image_ids):
            return False
        takedown = {
            "moment": timezone.now().isoformat(timespec="seconds"),
            "images": sorted(image_ids),
            "software": software(),
        }
        before = release.file_list
        release.takedowns = [*release.takedowns, takedown]
        with atomic_directory(release.directory, replace=True, replaceable=None) as partial:
            (partial / SNAPSHOT_FOLDER).mkdir()
            for path in release.snapshot_directory.iterdir():
                os.link(path, partial / SNAPSHOT_FOLDER / path.name)
            written = files_write(
                release=release, directory=partial, progress=Progress(file_steps())
            )
        now = {entry["name"]: entry["sha256"] for entry in written.file_list}
        takedown["former"] = {
            entry["name"]: entry["sha256"]
            for entry in before
            if now.get(entry["name"]) != entry["sha256"]
        }
        Release.objects.filter(pk=release.pk).update(
            takedowns=release.takedowns, file_list=written.file_list, archive=written.archive
        )
    release.refresh_from_db()
    return True


def _holds(release: Release, image_ids: Sequence[int]) -> bool:
    """Whether the snapshot names one of the images."""
    path = Snapshot(release.snapshot_directory).path("images")
    known = pq.read_table(path, columns=["image_id"])["image_id"]
    return bool(pc.any(pc.is_in(known, pa.array(image_ids, type=pa.int64()))).as_py())
