"""Embedding the corpus: every image once under a model, resumable at any point.

A job embeds the corpus share by share. Where more than one worker lives, it invites the others by
jobs of their own kind, which claim shares of it and add to its progress.
"""

from __future__ import annotations

import time
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import connection, transaction

from core.jobs.kinds import JobCanceled, JobFailed, workers_alive
from core.jobs.models import Job
from core.jobs.services import job_advance, job_cancel, job_create, job_item_error, slice_prolonged
from core.locks import lock_key, transaction_lock
from retrieval.corpus.models import Image
from retrieval.embedding.device import device_held
from retrieval.embedding.embedding_models import embedding_model_get_or_create, embedding_model_lock
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.pipeline import Item, Pipeline, Tuning, readers_wanted, tuning_of
from retrieval.embedding.shares import START, Left, Shares
from retrieval.embedding.signals import embeddings_stored
from retrieval.embedding.store import embeddings_copy
from retrieval.encoding.encoders import Encoder, ModelSpecError, describe, load_encoder
from retrieval.images.stored import PictureRef, any_far, roots_known

KIND: Final = "embed"
SHARE_KIND: Final = "embed_share"

# A share is what a worker does in about this time, so that none waits long for the last one.
SHARE_SECONDS: Final = 10.0
FIRST_SHARE: Final = 64
LARGEST_SHARE: Final = 8192
# What came out is stored together, so that small batches don't cost a transaction each.
STORE_IMAGES: Final = 256
STORE_SECONDS: Final = 0.25
# While others have the last shares: one of them may die and leave its own.
WAIT_SECONDS: Final = 0.5

_UNEMBEDDED: Final = """
SELECT count(*) FROM retrieval_image i
WHERE NOT EXISTS (SELECT FROM retrieval_embedding e
                  WHERE e.model_id = %s AND e.image_id = i.id)
"""

# SHARE keeps an import from replacing a file meanwhile, and lets judgments refer to the image.
_CURRENT: Final = """
SELECT id, sha256, root_id, file_name FROM retrieval_image
WHERE id = ANY(%s) ORDER BY id FOR SHARE
"""


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
    """Embed images until `deadline`; True when no image is left."""
    with device_held() as held:
        if not held:
            return False
        model, encoder = _model(job)
        if job.total is None:
            with transaction.atomic():
                EmbeddingModel.objects.filter(pk=model.pk, embeddings=None).update(
                    precision=encoder.precision
                )
                job_advance(job=job, total=_remaining(model), cursor=START)
        _invite(job)
        left = _Slice(job, job, model, encoder).work(deadline)
    if left is Left.ELSEWHERE:
        time.sleep(WAIT_SECONDS)
    if left is Left.NOTHING and job.done:
        embeddings_stored.send(sender=None, model=model, created_by=job.created_by)
    return left is Left.NOTHING


def embedding_share_step(invited: Job, deadline: float) -> bool:
    """Embed images of the job that invited this one until `deadline`; True when none is left."""
    job = Job.objects.filter(pk=invited.params["job"]).first()
    if job is None or job.state not in (*Job.UNFINISHED, Job.State.DONE):
        job_cancel(job=invited)
        raise JobCanceled
    if job.state == Job.State.DONE or workers_alive() < 2:
        return True
    with device_held() as held:
        if not held:
            return False
        model, encoder = _model(job)
        try:
            left = _Slice(job, invited, model, encoder).work(deadline)
        except JobCanceled:
            job_cancel(job=invited)
            raise
    return left is not Left.UNKNOWN


def _model(job: Job) -> tuple[EmbeddingModel, Encoder]:
    try:
        encoder = load_encoder(job.params["model"])
        model = embedding_model_get_or_create(name=job.params["model"])
    except ModelSpecError as error:
        raise JobFailed(str(error)) from error
    encoder.quicken(compiled=settings.EMBEDDING_COMPILE)
    return model, encoder


def _remaining(model: EmbeddingModel) -> int:
    with connection.cursor() as cursor:
        cursor.execute(_UNEMBEDDED, [model.pk])
        return int(cursor.fetchone()[0])


def _invite(job: Job) -> None:
    """Have the other workers take part where there is enough to do, and not all of it given out;
    one that failed isn't asked again.
    """
    remaining = (job.total or 0) - job.done - job.failed
    others = min(workers_alive() - 1, remaining // FIRST_SHARE)
    if others < 1 or not Image.objects.filter(pk__gt=job.cursor["last"]).exists():
        return
    ended = (Job.State.DONE, Job.State.CANCELED)
    invited = Job.objects.filter(kind=SHARE_KIND, params__job=job.pk).exclude(state__in=ended)
    for _ in range(others - invited.count()):
        job_create(
            kind=SHARE_KIND,
            params={"job": job.pk, "model": job.params["model"]},
            created_by=job.created_by,
            title=f"Take part in job {job.pk}: embed the corpus with {job.params['model']}",
        )


class _Slice:
    """One worker's slice of a job's work; `own` is the job whose turn it is, which counts what this
    worker did.
    """

    def __init__(self, job: Job, own: Job, model: EmbeddingModel, encoder: Encoder) -> None:
        self._job = job
        self._own = own
        self._model = model
        self._encoder = encoder
        self._tuning: Tuning = tuning_of(encoder, model.name)
        self._began = time.monotonic()
        self._begun = self._late = False

    def work(self, deadline: float) -> Left:
        """Embed at least one batch, then more until `deadline`, so that the last has come out about
        then; says what is left.
        """
        roots_known()
        with (
            Shares(job=self._job, model=self._model) as shares,
            Pipeline(
                self._encoder, self._tuning, readers=readers_wanted(far=any_far())
            ) as pipeline,
        ):
            came: list[Item] = []
            stored = time.monotonic()
            while True:
                deadline = self._feed(shares, pipeline, deadline)
                if len(came) >= STORE_IMAGES or (
                    came and (not pipeline.in_flight or time.monotonic() >= stored + STORE_SECONDS)
                ):
                    _store(self._job, self._own, self._model, shares, came)
                    came, stored = [], time.monotonic()
                elif pipeline.in_flight:
                    came += pipeline.next()
                else:
                    return Left.UNKNOWN if self._late else shares.left

    def _feed(self, shares: Shares, pipeline: Pipeline, deadline: float) -> float:
        """Give the pipeline batches as long as it has room and there is time."""
        while not self._late and pipeline.has_room():
            if self._begun and time.monotonic() + pipeline.seconds_ahead >= deadline:
                deadline = slice_prolonged(
                    deadline=deadline, began=self._began, beside=self._family()
                )
                self._late = time.monotonic() + pipeline.seconds_ahead >= deadline
                continue
            items = shares.take(pipeline.batch_size, share_size=self._share_size())
            if not items:
                break
            self._begun = True
            pipeline.feed(items)
        return deadline

    def _share_size(self) -> int:
        rate = self._tuning.rate
        size = FIRST_SHARE if rate is None else int(rate * SHARE_SECONDS)
        return max(self._tuning.size.now, min(size, LARGEST_SHARE))

    def _family(self) -> list[int]:
        """This job and those that take part in it: they don't wait for each other."""
        invited = Job.objects.filter(
            kind=SHARE_KIND, params__job=self._job.pk, state__in=Job.UNFINISHED
        )
        return [self._job.pk, *invited.values_list("pk", flat=True)]


@transaction.atomic
def _store(job: Job, own: Job, model: EmbeddingModel, shares: Shares, items: list[Item]) -> None:
    """Store a batch's vectors with the job's progress, as one."""
    if all(item.unavailable for item in items):
        raise JobFailed(items[0].problem)
    # Shared with other inserts; a candidate list that freezes takes it alone for a moment.
    transaction_lock(embedding_model_lock(model), shared=True)
    # An image whose file was replaced since it was read gets its vector in the next pass.
    with connection.cursor() as cursor:
        cursor.execute(_CURRENT, [[item.image_id for item in items]])
        current = {row[0]: PictureRef(*row[1:]) for row in cursor.fetchall()}
    standing = [item for item in items if current.get(item.image_id) == item.ref]
    ready = [(item.image_id, item.vector) for item in standing if item.vector is not None]
    failed = [item for item in standing if item.problem]
    if ready:
        embeddings_copy(
            model=model,
            image_ids=np.array([image_id for image_id, _ in ready], dtype=np.int64),
            vectors=np.stack([vector for _, vector in ready]),
        )
    for item in failed:
        name, image_id = f"image {item.image_id}", item.image_id
        job_item_error(job=job, item=name, message=item.problem, image_id=image_id)
    shares.settle(items)
    job_advance(job=job, done=len(ready), failed=len(failed))
    if own.pk != job.pk:
        job_advance(job=own, done=len(ready), failed=len(failed))
