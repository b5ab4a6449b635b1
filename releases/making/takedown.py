"""Takedowns: made releases lose the bytes and personal data of images that were taken down, and the
names of makers who have left."""

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

#: The columns of an image that a takedown blanks, and the value that replaces them.
_PERSONAL: Final = {
    "sha256": "", "rights_holder": "", "observed_at": "", "latitude": None, "longitude": None,
    "location_uncertainty": None, "elevation": None, "address": "",
}  # fmt: skip


def takedown_step(job: Job, deadline: float) -> bool:
    """Redact the next release, see `release_redact`; True when no release is left.

    Each release is one slice, since its files change together. A repeat changes nothing.
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
    """Write the files of a made release again without the bytes, checksums, places, times, rights
    holders and custom fields of images that were taken down, and with the pseudonym of its maker
    where they have left; returns whether anything changed.

    The snapshot keeps what else is known of the images. The row gets the new checksums, by which
    the release is verified from then on, and a takedown, with the former SHA-256 of each file that
    changed; its `open` has those of the images that open files name. A process that is killed
    between the files and the row leaves nothing that a repeat doesn't mend.
    """
    with session_lock(release.lock):
        release.refresh_from_db()
        # The maker's present name; blank where a command made the release.
        made_by = release.header.get("made_by", "")
        if made_by and release.created_by:
            made_by = release.created_by.get_username()
        renamed = made_by != release.header.get("made_by", made_by)
        original = Snapshot(release.snapshot_directory)
        redacted = {image_id for each in release.takedowns for image_id in each["images"]}
        images = original.contained(set(image_ids) - redacted)
        if not images and not renamed:
            return False
        takedown: dict[str, Any] = {
            "moment": timezone.now().isoformat(timespec="seconds"),
            "images": images,
            "open": original.open.contained(images),
            "software": software(),
        }
        before = release.file_list
        release.takedowns = [*release.takedowns, takedown]
        with storage.writing_directory(release.directory) as partial:
            snapshot = partial / SNAPSHOT_FOLDER
            snapshot.mkdir()
            redacted_tables = tables_redact(original, snapshot, images)
            for path in original.directory.iterdir():
                if path.name not in (HEADER_FILE, *redacted_tables):
                    os.link(path, snapshot / path.name)
            write_header(snapshot, original.header_data | {"made_by": made_by})
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


def tables_redact(
    snapshot: Snapshot,
    target: Path,
    image_ids: Collection[int],
    tables: Collection[str] = ("images", "custom_fields"),
) -> list[str]:
    """Copy the tables that have personal data of images, without those of these images: of the
    table of images their personal columns are blank, and in custom fields they have no values.
    Returns the names of the files.
    """
    redacted = pa.array(image_ids, type=pa.int64())

    def blank(batch: pa.RecordBatch) -> pa.RecordBatch:
        taken_down = pc.is_in(batch["image_id"], value_set=redacted)
        for index, field in enumerate(batch.schema):
            if field.name in _PERSONAL:
                value = pa.scalar(_PERSONAL[field.name], field.type)
                column = pc.if_else(taken_down, value, batch.column(index))
                batch = batch.set_column(index, field, column)
        return batch

    def left(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.invert(pc.is_in(batch["image_id"], value_set=redacted)))

    changes = {"images": blank, "custom_fields": left}
    paths = [snapshot.path(name) for name in tables if snapshot.has_table(name)]
    for path in paths:
        with (
            pq.ParquetFile(path) as table,
            pq.ParquetWriter(target / path.name, table.schema_arrow, compression="zstd") as file,
        ):
            for batch in table.iter_batches(batch_size=ROWS_AT_A_TIME):
                file.write_batch(changes[path.stem](batch))
    return [path.name for path in paths]
