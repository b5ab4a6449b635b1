"""Looking at the files of images that stay where they are."""

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
#: Most of a look at a bucket is waiting for it; decoding is limited by `pictures` itself.
THREADS: Final = 16

_FACTS: Final = ("sha256", "format", "width", "height", "size_bytes")

Progress = Callable[["CheckReport", int], None]
OnProblem = Callable[[int, str, str], None]


class PlaceUnavailable(Exception):
    """No file of a batch could be read because their place doesn't answer; the text says which."""


@dataclass
class CheckReport:
    """What a look at files found, up to the image `last`."""

    last: int
    """The id of the last image that was looked at: `after` for who goes on."""
    looked_at: int = 0
    filled: int = 0
    """Of an unknown SHA-256 before, and known now."""
    changed: int = 0
    """Another file than before; what was embedded of the earlier one is dropped."""
    problems: int = 0
    """Gone, unreadable, or no picture."""


def images_check(
    *,
    dataset: str | None = None,
    after: int = -1,
    again: bool = False,
    progress: Progress | None = None,
    on_problem: OnProblem | None = None,
) -> CheckReport:
    """Read the files of images that stay where they are, in the order of their ids from `after` on,
    and keep what they are: SHA-256, format, size in pixels and bytes.

    Looks only at those whose SHA-256 is unknown, so that it goes on where it was ended, in whatever
    way; with `again` at all of them, to find files that were replaced. `progress(report, total)` is
    called after each batch, `on_problem(image id, file name, reason)` for each file that is no
    readable picture; its image stays as it is. Raises PlaceUnavailable when a place doesn't answer.
    """
    wanted = Image.objects.filter(root__isnull=False)
    if dataset is not None:
        wanted = wanted.filter(dataset=dataset)
    if not again:
        wanted = wanted.filter(sha256="")
    report = CheckReport(last=after)
    total = wanted.filter(pk__gt=after).count()
    while batch := _refs(wanted.filter(pk__gt=report.last).order_by("pk")[:BATCH]):
        found, problems = _look_at(batch)
        if len(problems) == len(batch) and all(
            isinstance(error, RootUnavailable) for error in problems.values()
        ):
            raise PlaceUnavailable(str(problems[next(iter(batch))]))
        filled, changed = _keep(batch, found)
        for image_id, error in problems.items():
            if on_problem:
                on_problem(image_id, batch[image_id].file_name, str(error))
        report.last = max(batch)
        report.looked_at += len(batch)
        report.filled += filled
        report.changed += changed
        report.problems += len(problems)
        if progress:
            progress(report, total)
    return report


def image_contents_know(*, image_ids: Iterable[int]) -> None:
    """Read the files of those of these images whose SHA-256 is unknown, and keep what they are.

    For who must know an image again by its content. What cannot be read stays unknown.
    """
    wanted = Image.objects.filter(pk__in=list(image_ids), sha256="")
    batch = _refs(wanted.order_by("pk"))
    if batch:
        found, _ = _look_at(batch)
        _keep(batch, found)


def _refs(images: QuerySet[Image]) -> dict[int, ImageRef]:
    rows = images.values_list("pk", "sha256", "root_id", "file_name")
    return {image_id: ImageRef(sha256, root, name) for image_id, sha256, root, name in rows}


def _look_at(
    batch: dict[int, ImageRef],
) -> tuple[dict[int, StoredImage], dict[int, ImageGone]]:
    roots_load()
    found, problems = {}, {}
    with ThreadPoolExecutor(max_workers=THREADS) as threads:
        looks = {image_id: threads.submit(image_file_facts, ref) for image_id, ref in batch.items()}
        for image_id, look in looks.items():
            try:
                found[image_id] = look.result()
            except ImageGone as error:
                problems[image_id] = error
    return found, problems


@transaction.atomic
def _keep(batch: dict[int, ImageRef], found: dict[int, StoredImage]) -> tuple[int, int]:
    """Keep what was found of images that are as they were when their files were read; how many got
    a SHA-256, and of how many it is another one."""
    filled, stale, updated = 0, [], []
    # In the order of their ids, as imports and embedding lock them.
    rows = Image.objects.select_for_update(of=("self",), no_key=True).filter(pk__in=found)
    for image in rows.order_by("pk"):
        picture = found[image.pk]
        if ImageRef.of(image) != batch[image.pk]:
            continue
        if not image.sha256:
            filled += 1
        elif image.sha256 != picture.sha256:
            stale.append(image.pk)
        if any(getattr(image, name) != getattr(picture, name) for name in _FACTS):
            for name in _FACTS:
                setattr(image, name, getattr(picture, name))
            updated.append(image)
    Image.objects.bulk_update(updated, _FACTS)
    Embedding.objects.filter(image_id__in=stale).delete()
    return filled, len(stale)
