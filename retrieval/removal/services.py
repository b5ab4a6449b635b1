"""Removal of a data set that nothing was labeled in, by a job."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.dispatch import Signal

from core.errors import Conflict
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_get_or_create
from core.locks import is_locked, lock_key, transaction_lock
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.corpus.shown import shown_files_remove
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.models import ImageFlag
from retrieval.images.files import ImageRef, copies_remove
from retrieval.importing.services import IMPORT_KIND, REMOVAL_KIND
from retrieval.ranking.matrices import matrix_rebuild
from retrieval.removal.selectors import removal_preview, removal_problem

CHECKED_AT_ONCE: Final = 5000
REMOVED_AT_ONCE: Final = 500

images_removed = Signal()
"""Sent in the transaction that removes images, before their rows go, with `image_ids`."""


def dataset_removal_begin(*, dataset: str, by: Any) -> Job:
    """Create the job that removes a data set, or return the one that does so already.

    Raises Missing if there is none of that name, Conflict with a sentence where something names its
    images, as far as `removal_preview` looks, and while images are imported.
    """
    if problem := removal_preview(dataset).problem:
        raise Conflict(problem)
    with transaction.atomic():
        transaction_lock(lock_key("job_kind"))
        imports = Job.objects.filter(kind=IMPORT_KIND, state__in=Job.UNFINISHED)
        # A file that an import is about to use would be deleted as nobody's.
        if is_locked(lock_key("importing")) or imports.exists():
            raise Conflict("Images are being imported. Remove the data set after that.")
        return job_get_or_create(
            kind=REMOVAL_KIND,
            params={"dataset": dataset},
            created_by=by,
            title=f"Remove the data set {dataset}",
        )


def removal_step(job: Job, deadline: float) -> bool:
    """First check all images of the data set, then remove them; True when none is left.

    The cursor has `check`, the last checked id in the data set, while images are checked; then
    `files`, those of the images that were removed last, which are deleted once that is committed,
    again after an interruption. Raises JobFailed where something names an image.
    """
    dataset = job.params["dataset"]
    if job.total is None:
        total = Image.objects.filter(dataset=dataset).count()
        job_advance(job=job, total=total, cursor={"check": ""})
    while True:
        _files_delete(ImageRef(*ref) for ref in job.cursor.get("files", ()))
        left = _check(job, dataset) if "check" in job.cursor else _remove(job, dataset)
        if not left:
            for model in EmbeddingModel.objects.order_by("pk"):
                matrix_rebuild(model=model, created_by=job.created_by)
            return True
        if time.monotonic() >= deadline:
            return False


def _check(job: Job, dataset: str) -> bool:
    """Check the next images; always True, since they are removed after that."""
    images = Image.objects.filter(dataset=dataset, source_id__gt=job.cursor["check"])
    rows = list(
        images.order_by("dataset", "source_id").values_list("pk", "source_id")[:CHECKED_AT_ONCE]
    )
    if problem := removal_problem(dataset, [pk for pk, _ in rows]):
        raise JobFailed(problem)
    job_advance(job=job, cursor={"check": rows[-1][1]} if rows else {})
    return True


def _remove(job: Job, dataset: str) -> bool:
    """Remove the next images with what is theirs; False if there are none."""
    try:
        with transaction.atomic():
            # Locked, so that nothing begins to name them.
            chosen = Image.objects.filter(dataset=dataset).order_by("dataset", "source_id")
            images = list(chosen.select_for_update()[:REMOVED_AT_ONCE])
            ids = [image.pk for image in images]
            if problem := removal_problem(dataset, ids):
                raise JobFailed(problem)
            images_removed.send(sender=None, image_ids=ids)
            shown_files_remove(ids)
            for model in (Embedding, ImageFlag, ImageWithdrawal):
                model._default_manager.filter(image__in=ids).delete()
            # Not by Django's cascade: what else names an image has the database refuse.
            Image.objects.filter(pk__in=ids)._raw_delete(using="default")
            files = [[image.sha256, image.root_id, image.file_name] for image in images]
            job_advance(job=job, done=len(ids), cursor={"files": files})
    except IntegrityError as error:
        raise JobFailed(
            f"The data set {dataset} stays, as far as it is there: something names its images."
        ) from error
    return bool(ids)


def _files_delete(refs: Iterable[ImageRef]) -> None:
    """Delete the copies of files that no image has."""
    for ref in refs:
        same = Image.objects.filter(sha256=ref.sha256) if ref.sha256 else Image.objects.none()
        if ref.root_id is not None or not same.exists():
            copies_remove(ref)
