"""Embedding the corpus: every image once under a model, resumable at any point."""

from __future__ import annotations

import time
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import connection, transaction
from PIL import Image as PillowImage

from retrieval.encoders import Encoder, ModelSpecError, describe, load_encoder
from retrieval.imaging import ImageRefused
from retrieval.jobs import JobFailed
from retrieval.locks import lock_key, transaction_lock
from retrieval.models import EmbeddingModel, Image, Job
from retrieval.selectors.ranking import half_rounded
from retrieval.services.embedding_models import (
    embedding_model_get_or_create,
    embedding_model_lock,
)
from retrieval.services.jobs import job_advance, job_create, job_item_error
from retrieval.storage import picture_open

KIND: Final = "embed"

# Decoded images of one batch: at 3 bytes a pixel at most about 200 MB, twice while one is read
# ahead.
BATCH_PIXELS: Final = 64_000_000

# By key, so that memory and time do not grow with the corpus. Images that this job failed on are
# left alone; a later job tries them again.
_NEXT = """
SELECT i.id, i.sha256, i.width::bigint * i.height
FROM retrieval_image i
WHERE i.id > %(last)s
  AND NOT EXISTS (SELECT FROM retrieval_embedding e
                  WHERE e.model_id = %(model)s AND e.image_id = i.id AND e.image_id > %(last)s)
  AND NOT EXISTS (SELECT FROM retrieval_jobitemerror x
                  WHERE x.job_id = %(job)s AND x.image_id = i.id)
ORDER BY i.id
LIMIT %(limit)s
"""

# SHARE keeps an import from replacing a file meanwhile, and lets judgments refer to the image.
_CURRENT = """
SELECT id, sha256 FROM retrieval_image WHERE id = ANY(%s) ORDER BY id FOR SHARE
"""

_INSERT = """
INSERT INTO retrieval_embedding (model_id, image_id, vector, created_at)
SELECT %s, v.image_id, v.vector::halfvec, clock_timestamp()
FROM unnest(%s::bigint[], %s::text[]) AS v (image_id, vector)
ORDER BY v.image_id
ON CONFLICT DO NOTHING
"""


@dataclass
class _Item:
    """One image of a batch on its way from the disk to the database."""

    image_id: int
    sha256: str
    pixels: PillowImage.Image | None = None
    vector: list[float] | None = None
    problem: str = ""


def embedding_job_create(*, model_name: str = "", created_by: Any = None) -> Job:
    """Have the whole corpus embedded by a model (default: settings.EMBEDDING_MODEL).

    Returns the unfinished job of that model if there is one. Raises ModelSpecError if the name
    cannot be that of a model.
    """
    name = model_name or settings.EMBEDDING_MODEL
    describe(name)
    with transaction.atomic():
        transaction_lock(lock_key("job_kind"))
        unfinished = Job.objects.filter(
            kind=KIND, params__model=name, state__in=Job.UNFINISHED
        ).first()
        return unfinished or job_create(
            kind=KIND,
            params={"model": name},
            created_by=created_by,
            title=f"Embed the corpus with {name}",
        )


def embedding_step(job: Job, deadline: float) -> bool:
    """Embed batches of images until `deadline`; True when no image is left."""
    try:
        model = embedding_model_get_or_create(name=job.params["model"])
        encoder = load_encoder(model.name)
    except ModelSpecError as error:
        raise JobFailed(str(error)) from error
    if job.total is None:
        with transaction.atomic():
            EmbeddingModel.objects.filter(pk=model.pk, embeddings=None).update(
                precision=encoder.precision
            )
            job_advance(job=job, total=_remaining(model), cursor={"last": -1, "found": False})
    with ThreadPoolExecutor(max_workers=1) as reader:
        ahead = _read_ahead(reader, job, model, job.cursor["last"])
        while True:
            batch = ahead.result()
            if not batch:
                return _pass_ended(job)
            late = time.monotonic() >= deadline
            if not late:
                ahead = _read_ahead(reader, job, model, batch[-1].image_id)
            _encode(encoder, batch, trusted=job.done > 0)
            _store(job, model, batch)
            if late or time.monotonic() >= deadline:
                return False


def _remaining(model: EmbeddingModel) -> int:
    return Image.objects.exclude(pk__in=model.embeddings.values("image_id")).count()


def _pass_ended(job: Job) -> bool:
    """Go through the corpus again until a pass finds nothing: images may have come or changed."""
    if not job.cursor["found"]:
        return True
    with transaction.atomic():
        job_advance(job=job, cursor={"last": -1, "found": False})
    return False


def _read_ahead(
    reader: ThreadPoolExecutor, job: Job, model: EmbeddingModel, last: int
) -> Future[list[_Item]]:
    """Choose the batch behind image `last` and decode it in the reader's thread."""
    with connection.cursor() as cursor:
        cursor.execute(
            _NEXT,
            {
                "last": last,
                "model": model.pk,
                "job": job.pk,
                "limit": settings.EMBEDDING_BATCH_SIZE,
            },
        )
        rows = cursor.fetchall()
    pixels = np.cumsum([row[2] for row in rows])
    fitting = max(1, int(np.searchsorted(pixels, BATCH_PIXELS, side="right")))
    return reader.submit(_decode, [_Item(row[0], row[1]) for row in rows[:fitting]])


def _decode(batch: list[_Item]) -> list[_Item]:
    for item in batch:
        try:
            item.pixels = picture_open(item.sha256).pixels
        except ImageRefused as error:
            item.problem = str(error)
        except FileNotFoundError:
            item.problem = "The image's file is gone from the store. Import it again."
    return batch


def _encode(encoder: Encoder, batch: list[_Item], *, trusted: bool) -> None:
    """Give each decoded item its vector; what fails a batch is looked for image by image.

    A model that fails on a whole batch is itself at fault, unless it is `trusted` from earlier
    images and the batch is one image.
    """
    items = [(item, item.pixels) for item in batch if item.pixels is not None]
    if not items:
        return
    vectors: list[np.ndarray | None]
    try:
        vectors = list(encoder.encode_images([pixels for _, pixels in items]))
    except Exception:
        vectors = [_encode_one(encoder, item, pixels) for item, pixels in items]
        alone = trusted and len(items) == 1
        if not alone and all(vector is None for vector in vectors):
            raise
    for (item, _), vector in zip(items, vectors, strict=True):
        item.pixels = None
        if vector is None:
            continue
        try:
            item.vector = half_rounded(vector)
        except ValueError:
            item.problem = "The model gave no finite vector for this image."


def _encode_one(encoder: Encoder, item: _Item, pixels: PillowImage.Image) -> np.ndarray | None:
    try:
        return encoder.encode_images([pixels])[0]
    except Exception as error:
        item.problem = f"The model failed on this image: {error}"
        return None


@transaction.atomic
def _store(job: Job, model: EmbeddingModel, batch: list[_Item]) -> None:
    """Store a batch's vectors with the job's progress, as one."""
    # Shared with other inserts; a candidate list that freezes takes it alone for a moment.
    transaction_lock(embedding_model_lock(model), shared=True)
    # An image whose file was replaced since it was read gets its vector in the next pass.
    with connection.cursor() as cursor:
        cursor.execute(_CURRENT, [[item.image_id for item in batch]])
        current = set(cursor.fetchall())
    ready = [item for item in batch if item.vector and (item.image_id, item.sha256) in current]
    failed = [item for item in batch if item.problem and (item.image_id, item.sha256) in current]
    with connection.cursor() as cursor:
        cursor.execute(
            _INSERT,
            [model.pk, [i.image_id for i in ready], [str(i.vector) for i in ready]],
        )
    for item in failed:
        image = Image.objects.get(pk=item.image_id)
        job_item_error(job=job, item=f"image {item.image_id}", message=item.problem, image=image)
    job_advance(
        job=job,
        done=len(ready),
        failed=len(failed),
        cursor={"last": batch[-1].image_id, "found": True},
    )
