"""Takedowns: made releases lose images that had to go, and what tells of whom they are; and names
of who left."""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.utils import timezone

from core import storage
from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import session_lock
from releases.making.files import file_steps, files_write
from releases.making.progress import Progress
from releases.models import Release
from releases.snapshot.release_files import SNAPSHOT_FOLDER
from releases.snapshot.snapshot import (
    HEADER_FILE,
    ROWS_AT_A_TIME,
    Snapshot,
    software,
    write_header,
)
from retrieval.takedown.services import removed_files_delete

#: What goes of an image in a snapshot, as of its row, and what stands there instead.
_PERSONAL: Final = {
    "sha256": "", "rights_holder": "", "observed_at": "", "latitude": None, "longitude": None,
    "location_uncertainty": None, "elevation": None, "address": "",
}  # fmt: skip


def takedown_step(job: Job, deadline: float) -> bool:
    """Write the next release again, if the job's images or the name of its maker have to leave it;
    True when none is left.

    Each release is a slice: its files change together. Doing one twice changes nothing.
    """
    after = job.cursor.get("release", 0)
    if not after:
        removed_files_delete()
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


def release_redact(*, release: Release, image_ids: Sequence[int] = ()) -> bool:
    """Write the files of a made release again without the bytes, checksums, places, times and
    rights holders of images that were taken down, and with the pseudonym of its maker where they
    have left; whether anything had to go.

    The snapshot keeps what else is known of the images. The row gets a takedown, with the former
    SHA-256 of each file that changed, and the new checksums, by which the release is verified from
    then on; those of the images that open files name are its `open`. Killed between the files and
    the row, it is done again.
    """
    with session_lock(release.lock):
        release.refresh_from_db()
        made_by = _made_by(release)
        renamed = made_by != release.header.get("made_by", made_by)
        before_it = Snapshot(release.snapshot_directory)
        gone = {image_id for one in release.takedowns for image_id in one["images"]}
        images = _named(before_it, set(image_ids) - gone)
        if not images and not renamed:
            return False
        takedown: dict[str, Any] = {
            "moment": timezone.now().isoformat(timespec="seconds"),
            "images": images,
            "open": _named(before_it.open, images),
            "software": software(),
        }
        before = release.file_list
        release.takedowns = [*release.takedowns, takedown]
        with storage.writing_directory(release.directory) as partial:
            snapshot = partial / SNAPSHOT_FOLDER
            snapshot.mkdir()
            table = before_it.path("images")
            for path in before_it.directory.iterdir():
                if path.name not in (HEADER_FILE, table.name):
                    os.link(path, snapshot / path.name)
            images_write(table, snapshot / table.name, images)
            write_header(snapshot, before_it.header_data | {"made_by": made_by})
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
            takedowns=release.takedowns,
            file_list=written.file_list,
            archive=written.archive,
            header=release.header | {"made_by": made_by},
        )
    release.refresh_from_db()
    return True


def _made_by(release: Release) -> str:
    """The maker's present name; that of the header where a command made the release."""
    name = release.header.get("made_by", "")
    return release.created_by.get_username() if name and release.created_by else name


def _named(snapshot: Snapshot, image_ids: Collection[int]) -> list[int]:
    """Those of the images that a snapshot names, ascending."""
    if not image_ids:
        return []
    wanted = pa.array(sorted(image_ids), type=pa.int64())
    known = pq.read_table(snapshot.path("images"), columns=["image_id"])["image_id"]
    return list(wanted.filter(pc.is_in(wanted, known.combine_chunks())).to_pylist())


def images_write(source: Path, target: Path, image_ids: Collection[int]) -> None:
    """Copy the table of images, with nothing personal of these."""
    gone = pa.array(image_ids, type=pa.int64())
    with (
        pq.ParquetFile(source) as images,
        pq.ParquetWriter(target, images.schema_arrow, compression="zstd") as written,
    ):
        for batch in images.iter_batches(batch_size=ROWS_AT_A_TIME):
            these = pc.is_in(batch["image_id"], value_set=gone)
            for place, field in enumerate(batch.schema):
                if field.name in _PERSONAL:
                    nothing = pa.scalar(_PERSONAL[field.name], field.type)
                    left = pc.if_else(these, nothing, batch.column(place))
                    batch = batch.set_column(place, field, left)
            written.write_batch(batch)
