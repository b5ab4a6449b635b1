"""Checks of the files of images that are left in place."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from retrieval.corpus.models import Image
from retrieval.embedding.models import Embedding
from retrieval.images.files import (
    ImageGone,
    ImageRef,
    RootUnavailable,
    image_file_facts,
    roots_load,
)
from retrieval.images.storage import StoredImage

BATCH: Final = 200
#: Reading from a bucket is mostly waiting; `decoding` limits itself.
THREADS: Final = 16

_FACTS: Final = ("sha256", "format", "width", "height", "size_bytes")

Progress = Callable[["CheckReport", int], None]
OnProblem = Callable[[int, str, str], None]


class RootsUnavailable(Exception):
    """No file of a batch could be read, since the root doesn't answer; the message says which."""


@dataclass
class CheckReport:
    """The result of a check up to the image `last`."""

    last: int
    """The id of the last checked image: `after` to continue."""
    checked: int = 0
    filled: int = 0
    """Images whose SHA-256 was unknown and is known now."""
    changed: int = 0
    """Images with another file than before; their embeddings are deleted."""
    problems: int = 0
    """Files that are missing, unreadable or no image."""


def images_check(
    *,
    dataset: str | None = None,
    after: int = -1,
    again: bool = False,
    progress: Progress | None = None,
    on_problem: OnProblem | None = None,
) -> CheckReport:
    """Read the files of images left in place, by image id from `after` on, and store their SHA-256,
    format and size in pixels and bytes.

    Reads only those with an unknown SHA-256, so that it can be stopped and continued; with `again`
    all, to find files that were replaced. `progress(report, total)` is called after each batch,
    `on_problem(image id, file name, reason)` for each file that isn't a readable image; its row
    stays as it is. Raises RootsUnavailable if a root doesn't answer.
    """
    images = Image.objects.filter(root__isnull=False)
    if dataset is not None:
        images = images.filter(dataset=dataset)
    if not again:
        images = images.filter(sha256="")
    report = CheckReport(last=after)
    total = images.filter(pk__gt=after).count()
    while batch := _refs(images.filter(pk__gt=report.last).order_by("pk")[:BATCH]):
        facts, problems = _read_files(batch)
        if len(problems) == len(batch) and all(
            isinstance(error, RootUnavailable) for error in problems.values()
        ):
            raise RootsUnavailable(str(problems[next(iter(batch))]))
        filled, changed = _store(batch, facts)
        for image_id, error in problems.items():
            if on_problem:
                on_problem(image_id, batch[image_id].file_name, str(error))
        report.last = max(batch)
        report.checked += len(batch)
        report.filled += filled
        report.changed += changed
        report.problems += len(problems)
        if progress:
            progress(report, total)
    return report


def image_contents_read(*, image_ids: Iterable[int]) -> None:
    """Read the files of those of these images whose SHA-256 is unknown, and store their facts.

    For callers that identify images by content. Files that can't be read stay unknown.
    """
    images = Image.objects.filter(pk__in=list(image_ids), sha256="")
    batch = _refs(images.order_by("pk"))
    if batch:
        facts, _ = _read_files(batch)
        _store(batch, facts)


def _refs(images: QuerySet[Image]) -> dict[int, ImageRef]:
    rows = images.values_list("pk", "sha256", "root_id", "file_name")
    return {image_id: ImageRef(sha256, root, name) for image_id, sha256, root, name in rows}


def _read_files(
    batch: dict[int, ImageRef],
) -> tuple[dict[int, StoredImage], dict[int, ImageGone]]:
    roots_load()
    facts, problems = {}, {}
    with ThreadPoolExecutor(max_workers=THREADS) as threads:
        reading = {
            image_id: threads.submit(image_file_facts, ref) for image_id, ref in batch.items()
        }
        for image_id, future in reading.items():
            try:
                facts[image_id] = future.result()
            except ImageGone as error:
                problems[image_id] = error
    return facts, problems


@transaction.atomic
def _store(batch: dict[int, ImageRef], facts: dict[int, StoredImage]) -> tuple[int, int]:
    """Store the facts of files whose images haven't changed since they were read; returns how many
    got a SHA-256, and how many got another one.
    """
    filled, stale, updated = 0, [], []
    # In the order of their ids, as imports and embedding lock them.
    rows = Image.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=facts)
    for image in rows.order_by("pk"):
        file_facts = facts[image.pk]
        if ImageRef.of(image) != batch[image.pk]:
            continue
        if not image.sha256:
            filled += 1
        elif image.sha256 != file_facts.sha256:
            stale.append(image.pk)
        if any(getattr(image, name) != getattr(file_facts, name) for name in _FACTS):
            for name in _FACTS:
                setattr(image, name, getattr(file_facts, name))
            updated.append(image)
    Image.objects.bulk_update(updated, _FACTS)
    Embedding.objects.filter(image_id__in=stale).delete()
    return filled, len(stale)
