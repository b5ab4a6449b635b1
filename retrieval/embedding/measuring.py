"""The job that measures what a model costs here: seconds to embed an image of this corpus."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import Any, Final

from django.db import transaction

from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_get_or_create
from retrieval.corpus.models import Image
from retrieval.embedding.device import device_held
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.fetching import loading_noted
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.pipeline import Item, encode_batches, reader_count
from retrieval.encoding.encoders import encoder_in_use
from retrieval.encoding.model_specs import described_here
from retrieval.images.files import ImageRef, any_far

KIND: Final = "measure_model"
MEASURED_IMAGES: Final = 10


def measure_job_create(*, name: str, created_by: Any = None) -> Job:
    """Create a job that measures a model on ten images, or return the model's unfinished one.

    ModelSpecError: no model is called so, as far as that is known without a connection.
    """
    described_here(name)
    return job_get_or_create(
        kind=KIND,
        params={"model": name},
        created_by=created_by,
        title=f"Measure {name} on {MEASURED_IMAGES} images",
    )


def measure_step(job: Job, deadline: float) -> bool:
    """Load the model and embed ten images without storing their vectors; False without the device.

    JobFailed: the corpus has no image that can be read.
    """
    with device_held() as held:
        if not held:
            return False
        with ExitStack() as stack:
            with loading_noted(job):
                encoder = stack.enter_context(encoder_in_use(job.params["model"]))
            images = Image.objects.filter(takedown=None).order_by("pk")[:MEASURED_IMAGES]
            items = [Item(image.pk, ImageRef.of(image), 0) for image in images]
            readers = reader_count(far=any_far())
            for _ in encode_batches(encoder, iter([items[:1]]), readers=readers):
                pass  # The first image of a loaded model takes longer.
            began = time.monotonic()
            for _ in encode_batches(encoder, iter([items]), readers=readers):
                pass
            seconds = time.monotonic() - began
    read = sum(item.vector is not None for item in items)
    if not read:
        raise JobFailed("There is no image to measure with: import images first.")
    model = embedding_model_get_or_create(name=job.params["model"])
    with transaction.atomic():
        EmbeddingModel.objects.filter(pk=model.pk).update(
            seconds_per_image=seconds / read, **encoder.size.fields
        )
        job_advance(job=job, done=read, total=read)
    return True
