"""The image files of an import: read and stored, or left in place."""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final

from django.conf import settings
from PIL import Image as PillowImage

from core.files import open_regular
from retrieval.corpus.models import Image, ImageTakedown
from retrieval.images.decoding import FORMATS, MAX_BYTES, ImageRefused
from retrieval.images.storage import StoredImage, content_hash, image_store, is_stored
from retrieval.importing.fields import check_inside, file_inside
from retrieval.importing.records import Effect, ImageRecord, RecordRefused, Refusal
from retrieval.importing.rows import Facts

BATCH: Final = 200
BLOCK_IN_PLACE: Final = 1000

Refuse = Callable[[Refusal], None]
Batch = tuple[int, list[tuple[ImageRecord, Facts]]]
"""The number of records, and the valid ones with their facts."""

_FACTS: Final = ("sha256", "format", "width", "height", "size_bytes")
_FORMAT_BY_SUFFIX: Final = {
    suffix: kind for suffix, kind in PillowImage.registered_extensions().items() if kind in FORMATS
}


def images_in_place(*, images: Iterator[ImageRecord], refuse: Refuse) -> Iterator[Batch]:
    """Yield images as declared, 1,000 at a time; no file is read.

    Refuses images without a declared size or with more pixels than the setting allows, and file
    names that lead out of the data set's folder or have no known image suffix.
    """
    most = settings.IMAGE_MAX_PIXELS
    while batch := list(islice(images, BLOCK_IN_PLACE)):
        valid = []
        for record in batch:
            try:
                valid.append((record, _declared_facts(record, most)))
            except RecordRefused as error:
                refuse(Refusal(record.file_name, record.record, error.field, error.reason))
        yield len(batch), valid


def _declared_facts(record: ImageRecord, most: int) -> Facts:
    check_inside(record.file_name)
    _, point, suffix = record.file_name.rpartition(".")
    kind = _FORMAT_BY_SUFFIX.get(f".{suffix.lower()}") if point else None
    if kind is None:
        raise RecordRefused("file_name", "its suffix is not that of a known image format")
    width, height = record.width, record.height
    if width is None or height is None:
        raise RecordRefused(
            "width" if width is None else "height",
            "is missing; an image that is left in place needs its size in pixels",
        )
    if width * height > most:
        raise RecordRefused(
            "width", f"The image has {width} × {height} pixels; {most} are allowed."
        )
    return "", kind, width, height, 0


def images_read(
    *,
    images: Iterator[ImageRecord],
    dataset: str,
    root: Path,
    refuse: Refuse,
    store: Callable[[bytes], StoredImage] = image_store,
) -> Iterator[Batch]:
    """Read and store the files of images below `root`, 200 at a time.

    The next files are read while a batch is processed. Refuses files that are no images; a file
    that hasn't changed since the last import of `dataset` isn't decoded. With `image_facts` for
    `store`, files are checked by their headers alone, as a preview does.
    """
    folder = root.resolve()
    with ThreadPoolExecutor(max_workers=os.cpu_count()) as threads:
        coming: list[_Reading] = []
        while batch := list(islice(images, BATCH)):
            known = _known_images(dataset, batch)
            removed = set(ImageTakedown.objects.values_list("sha256", flat=True))
            reading = [
                (record, threads.submit(_read, folder, record, known, removed, refuse, store))
                for record in batch
            ]
            if coming:
                yield _read_batch(coming, refuse)
            coming = reading
        if coming:
            yield _read_batch(coming, refuse)


_Reading = tuple[ImageRecord, "Future[StoredImage | Refusal]"]


def _read_batch(reading: Sequence[_Reading], refuse: Refuse) -> Batch:
    valid = []
    for record, future in reading:
        stored = future.result()
        if isinstance(stored, Refusal):
            refuse(stored)
        else:
            if problem := _size_refusal(record, stored):
                refuse(problem)
            facts = (stored.sha256, stored.format, stored.width, stored.height, stored.size_bytes)
            valid.append((record, facts))
    return len(reading), valid


def _size_refusal(record: ImageRecord, stored: StoredImage) -> Refusal | None:
    """A refusal of a declared size that is neither the file's own nor the upright image's."""
    declared = record.width or stored.width, record.height or stored.height
    own = stored.width, stored.height
    if declared in (own, own[::-1]):
        return None
    reason = "left out: the file has {} × {} pixels, not {} × {}".format(*own, *declared)
    return Refusal(record.file_name, record.record, "width", reason, Effect.FIELD)


def _known_images(dataset: str, batch: Sequence[ImageRecord]) -> dict[str, StoredImage]:
    rows = Image.objects.filter(dataset=dataset, source_id__in=[r.source_id for r in batch])
    return {row[0]: StoredImage(*row[1:]) for row in rows.values_list("source_id", *_FACTS)}


def _read(
    root: Path,
    record: ImageRecord,
    known: dict[str, StoredImage],
    removed: Container[str],
    refuse: Refuse,
    store: Callable[[bytes], StoredImage],
) -> StoredImage | Refusal:
    """Read a file and `store` it, unless its SHA-256 is one of `removed`. Tells of a file whose
    name is in another Unicode form, or its path with other slashes.
    """
    try:
        path = file_inside(root, record.file_name)
        plain = record.file_name.isascii() and "\\" not in record.file_name
        if not plain and not (root / record.file_name).exists():
            reason = (
                "is written with backslashes; the file at this path with slashes is taken"
                if "\\" in record.file_name
                else "is the name of a file in another Unicode form, which is taken"
            )
            refuse(Refusal(record.file_name, record.record, "file_name", reason, Effect.NAME))
        data = _bytes_of(path)
        sha256 = content_hash(data)
        if sha256 in removed:
            raise RecordRefused("file", "was taken down, and isn't brought back")
        before = known.get(record.source_id)
        if before and before.sha256 == sha256 and is_stored(sha256):
            return before
        return store(data)
    except RecordRefused as error:
        return Refusal(record.file_name, record.record, error.field, error.reason)
    except ImageRefused as error:
        return Refusal(record.file_name, record.record, "file", str(error))


def _bytes_of(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > MAX_BYTES:
                raise RecordRefused("file", f"has {size} bytes; at most {MAX_BYTES} are allowed")
            return file.read()
    except OSError as error:
        raise RecordRefused("file", f"cannot be read: {error.strerror}") from error
