"""The job that embeds the corpus with a model: every image once, resumable at any point.

It embeds the corpus range by range. If there are several workers, it creates participant jobs for
the others, which claim ranges of the corpus and add to its progress.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from decimal import Decimal
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import connection, transaction

from core.jobs.kinds import JobCanceled, JobFailed, workers_alive
from core.jobs.models import Job
from core.jobs.services import (
    job_advance,
    job_cancel,
    job_create,
    job_get_or_create,
    job_item_error,
    job_note,
    slice_prolonged,
)
from core.locks import transaction_lock
from core.parent_death import ending
from core.sql import fetch_all
from retrieval.corpus.models import Image
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.device import device_held
from retrieval.embedding.embedding_models import (
    embedding_model_get_or_create,
    embedding_model_lock,
    model_use,
)
from retrieval.embedding.fetching import loading_noted
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.pipeline import Item, encode_batches, reader_count
from retrieval.embedding.progress import PRICE, DeviceProgress
from retrieval.embedding.ranges import START, Ranges, Remaining
from retrieval.embedding.store import embeddings_copy, embeddings_stored
from retrieval.encoding.encoders import Encoder, encoder_in_use
from retrieval.encoding.model_specs import described_here
from retrieval.images.files import ImageRef, any_far, roots_load

KIND: Final = "embed"
PARTICIPANT_KIND: Final = "embed_range"
USE: Final = "use"
"""The parameter of a job that puts its model to use."""

BATCH_SIZES: Final = {"cpu": 16, "cuda": 256}
"""Images per batch; ViT-B-32 is 4 % faster with 64 on a processor."""
# The time to embed a range, about: no worker waits long for the last one.
RANGE_SECONDS: Final = 10.0
FIRST_RANGE: Final = 64
LARGEST_RANGE: Final = 8192
# Pause while other workers have the last ranges; one of them may die.
WAIT_SECONDS: Final = 0.5

_UNEMBEDDED: Final = """
SELECT count(*) FROM retrieval_image i
WHERE NOT EXISTS (SELECT FROM retrieval_embedding e
                  WHERE e.model_id = %s AND e.image_id = i.id)
  AND NOT EXISTS (SELECT FROM retrieval_imagetakedown t WHERE t.image_id = i.id)
"""

# SHARE blocks imports from replacing a file, but not judgments that refer to the image.
_CURRENT: Final = """
SELECT id, sha256, root_id, file_name FROM retrieval_image
WHERE id = ANY(%s) ORDER BY id FOR SHARE
"""


@transaction.atomic
def embedding_job_create(*, model_name: str = "", created_by: Any = None, use: bool = False) -> Job:
    """Create a job that embeds the whole corpus with a model (default: the model in use).

    Returns the unfinished job of that model if there is one. With `use` it puts the model to use
    once that has embedded an image, while the one in use has embedded nothing. Raises
    ModelSpecError for an unknown name, as far as that is known without a connection.
    """
    name = model_name or model_in_use()
    described_here(name)
    job = job_get_or_create(
        kind=KIND,
        params={"model": name},
        created_by=created_by,
        title=f"Embed the corpus with {name}",
    )
    if use:
        job.params[USE] = True
        job.save(update_fields=["params"])
    return job


def embedding_price_set(*, job: Job, price: Decimal | None) -> None:
    """Set what a device costs an hour; None for no price."""
    with transaction.atomic():
        stored = Job.objects.select_for_update().get(pk=job.pk)
        stored.params[PRICE] = None if price is None else float(price)
        stored.save(update_fields=["params"])


def embedding_step(job: Job, deadline: float) -> bool:
    """Embed images until `deadline`; True when no image is left."""
    with device_held() as held, _model(job, held) as loaded:
        if loaded is None:
            return False
        model, encoder = loaded
        if job.total is None:
            with transaction.atomic():
                EmbeddingModel.objects.filter(pk=model.pk, embeddings=None).update(
                    precision=encoder.precision
                )
                job_advance(job=job, total=_remaining(model), cursor=START)
        _participants_create(job)
        left = _Slice(job, job, model, encoder).work(deadline)
    if left is Remaining.ELSEWHERE:
        time.sleep(WAIT_SECONDS)
    if left is Remaining.NOTHING and job.done:
        embeddings_stored.send(sender=None, model=model, created_by=job.created_by)
    return left is Remaining.NOTHING


def embedding_participant_step(participant: Job, deadline: float) -> bool:
    """Embed images of the job that `participant` takes part in until `deadline`; True when none is
    left.
    """
    job = Job.objects.filter(pk=participant.params["job"]).first()
    if job is None or job.state not in (*Job.UNFINISHED, Job.State.DONE):
        job_cancel(job=participant)
        raise JobCanceled
    if job.state == Job.State.DONE or workers_alive() < 2:
        return True
    with device_held() as held, _model(job, held) as loaded:
        if loaded is None:
            return False
        model, encoder = loaded
        try:
            left = _Slice(job, participant, model, encoder).work(deadline)
        except JobCanceled:
            job_cancel(job=participant)
            raise
    return left is not Remaining.UNKNOWN


@contextmanager
def _model(job: Job, device_is_held: bool) -> Iterator[tuple[EmbeddingModel, Encoder] | None]:
    """The job's model, loaded; None without the device."""
    if not device_is_held:
        yield None
        return
    with ExitStack() as stack:
        with loading_noted(job):
            encoder = stack.enter_context(encoder_in_use(job.params["model"]))
        model = embedding_model_get_or_create(name=job.params["model"])
        if settings.EMBEDDING_COMPILE != "off":
            encoder.images.compile(settings.EMBEDDING_COMPILE)
        yield model, encoder


def _use_first(job: Job, model: EmbeddingModel) -> None:
    """Put a model that has just embedded something to use, if the job is to and the one in use has
    embedded nothing; also one that was in use only since it suits the machines: they may change.
    """
    in_use = model_in_use()
    first = bool(job.params.get(USE)) and not has_embeddings(in_use)
    if first or (in_use == model.name and not settings.EMBEDDING_MODEL):
        model_use(name=model.name)


def _remaining(model: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_UNEMBEDDED, [model.pk])
        return int(cursor.fetchone()[0])


def _participants_create(job: Job) -> None:
    """Create participant jobs for the other workers while enough images are unclaimed; failed ones
    are not replaced.
    """
    remaining = (job.total or 0) - job.done - job.failed
    others = min(workers_alive() - 1, remaining // FIRST_RANGE)
    if others < 1 or not Image.objects.filter(pk__gt=job.cursor["last"]).exists():
        return
    ended = (Job.State.DONE, Job.State.CANCELED)
    jobs = Job.objects.filter(kind=PARTICIPANT_KIND, params__job=job.pk).exclude(state__in=ended)
    for _ in range(others - jobs.count()):
        job_create(
            kind=PARTICIPANT_KIND,
            params={"job": job.pk, "model": job.params["model"]},
            created_by=job.created_by,
            title=f"Take part in job {job.pk}: embed the corpus with {job.params['model']}",
        )


class _Slice:
    """One worker's slice of a job's work; `own` is the job or participant whose turn it is."""

    def __init__(self, job: Job, own: Job, model: EmbeddingModel, encoder: Encoder) -> None:
        self._job = job
        self._own = own
        self._model = model
        self._encoder = encoder
        self._began = time.monotonic()
        self._taken = self._stored = 0
        self._rate: float | None = None
        self._late = self._worked = False
        self._device = DeviceProgress(job)

    def work(self, deadline: float) -> Remaining:
        """Embed at least one batch, then more until `deadline`; returns what is left."""
        roots_load()
        readers = reader_count(far=any_far())
        with Ranges(job=self._job, model=self._model) as ranges:
            while True:
                before = self._stored
                batches = self._batches(ranges, deadline)
                with closing(encode_batches(self._encoder, batches, readers=readers)) as done:
                    for items in done:
                        self._store(ranges, items)
                        self._stored += len(items)
                        self._rate = self._stored / (time.monotonic() - self._began)
                        if ending():
                            # The images in progress go back with the ranges.
                            self._late = True
                            break
                if self._late or self._stored == before:
                    job_note(job=self._job, members=self._device.line_after(0, []))
                    return Remaining.UNKNOWN if self._late else ranges.left

    @transaction.atomic
    def _store(self, ranges: Ranges, items: list[Item]) -> None:
        """Store a batch's vectors and the job's progress in one transaction."""
        job, model = self._job, self._model
        if all(item.unavailable for item in items):
            raise JobFailed(items[0].problem)
        # Shared with other inserts; freezing a candidate list takes it exclusively.
        transaction_lock(embedding_model_lock(model), shared=True)
        # An image whose file was replaced since it was read gets its vector in the next pass.
        rows = fetch_all(_CURRENT, [[item.image_id for item in items]])
        current = {row[0]: ImageRef(*row[1:]) for row in rows}
        unchanged = [item for item in items if current.get(item.image_id) == item.ref]
        ready = [(item.image_id, item.vector) for item in unchanged if item.vector is not None]
        failed = [item for item in unchanged if item.problem]
        if ready:
            embeddings_copy(
                model=model,
                image_ids=np.array([image_id for image_id, _ in ready], dtype=np.int64),
                vectors=np.stack([vector for _, vector in ready]),
            )
            if not self._worked:
                _use_first(job, model)
                self._worked = True
        for item in failed:
            name, image_id = f"image {item.image_id}", item.image_id
            job_item_error(job=job, item=name, message=item.problem, image_id=image_id)
        ranges.settle(items)
        job_advance(job=job, done=len(ready), failed=len(failed))
        job_note(job=job, members=self._device.line_after(len(ready) + len(failed), ranges.held))
        if self._own.pk != job.pk:
            job_advance(job=self._own, done=len(ready), failed=len(failed))

    def _batches(self, ranges: Ranges, deadline: float) -> Iterator[list[Item]]:
        """Yield batches of images while there are some and there is time."""
        while True:
            if ending():
                self._late = True
                return
            if self._taken and time.monotonic() + self._seconds_ahead() >= deadline:
                deadline = slice_prolonged(
                    deadline=deadline, began=self._began, beside=self._family()
                )
                self._late = time.monotonic() + self._seconds_ahead() >= deadline
                if self._late:
                    return
            size = batch_size(self._encoder)
            items = ranges.take(size, range_size=max(size, self._range_size()))
            if not items:
                return
            self._taken += len(items)
            yield items

    def _seconds_ahead(self) -> float:
        """Estimate how long the images in progress will take."""
        return (self._taken - self._stored) / self._rate if self._rate else 0.0

    def _range_size(self) -> int:
        if self._rate is None:
            return FIRST_RANGE
        return min(int(self._rate * RANGE_SECONDS), LARGEST_RANGE)

    def _family(self) -> list[int]:
        """Return the ids of the job and its participants, which don't wait for each other."""
        participants = Job.objects.filter(
            kind=PARTICIPANT_KIND, params__job=self._job.pk, state__in=Job.UNFINISHED
        )
        return [self._job.pk, *participants.values_list("pk", flat=True)]


def batch_size(encoder: Encoder) -> int:
    """Return the batch size: settings.EMBEDDING_BATCH_SIZE, or by kind of device; smaller if that
    was too large for its memory.
    """
    usual = BATCH_SIZES.get(encoder.device.partition(":")[0], BATCH_SIZES["cpu"])
    return min(settings.EMBEDDING_BATCH_SIZE or usual, encoder.largest_batch)
