"""Finding near-duplicates and bursts, and deciding on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.db.models import Count
from django.db.models.functions import Now
from PIL import Image as PillowImage

from core.errors import Conflict
from core.graphs import components
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_get_or_create
from core.locks import lock_key, try_session_lock
from extras.duplicates.likeness import bits_apart, like_pairs, perceptual_hash
from extras.duplicates.models import DuplicateGroup
from retrieval.corpus.models import Image, Species
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.selectors import is_withdrawn
from retrieval.flags.services import image_withdraw
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageGone, ImageRef, RootUnavailable, thumbnail_file

KIND: Final = "find_duplicates"
#: Cosine similarity of two images that are compared further.
LEAST_LIKENESS: Final = 0.95
#: Bits of 64 in which the hashes of copies differ at most.
MOST_BITS: Final = 8
#: Of a burst: seconds from one image to the next, and degrees.
MOST_SECONDS: Final = 600
MOST_DEGREES: Final = 0.001


def duplicates_find(
    *,
    model: EmbeddingModel,
    least: float,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[int, int]:
    """Find groups among the images of each species that aren't withdrawn; returns how many groups
    there are to decide on, and how many images they hold.

    Two images are alike if their embeddings' cosine similarity is at least `least` and they are
    copies (perceptual hashes of their thumbnails differ in at most MOST_BITS) or of one burst (one
    observer, where both are known, MOST_SECONDS and MOST_DEGREES apart at most). Groups are linked
    by such pairs. Groups that nobody decided on are replaced; those that were decided on stay, and
    their images form no new group. Raises Conflict while another process looks for them.
    """
    species = [*Species.objects.order_by("pk").values_list("pk", flat=True), None]
    groups = grouped = 0
    with _only_search():
        _open_groups_delete()
        decided = _decided()
        for done, species_id in enumerate(species, start=1):
            made = _groups_make(model, species_id, least, decided)
            groups += len(made)
            grouped += sum(made)
            if progress:
                progress(done, len(species))
    return groups, grouped


def duplicates_job_create(*, by: Any) -> Job:
    """Create a job that finds groups by the embeddings of the model in use, as `duplicates_find`;
    returns the model's unfinished one if there is one. Raises Conflict where nothing is embedded.
    """
    name = model_in_use()
    model = EmbeddingModel.objects.filter(name=name).first()
    if model is None:
        raise Conflict(f"{name} has embedded no image yet.")
    return job_get_or_create(
        kind=KIND, params={"model": model.pk}, created_by=by, title="Look for near-duplicates"
    )


def unfinished_job() -> Job | None:
    """The job that looks for near-duplicates, if there is one."""
    return Job.objects.filter(kind=KIND, state__in=Job.UNFINISHED).first()


def duplicates_step(job: Job, deadline: float) -> bool:
    """Look among the images of species after species until `deadline`; True when all are done."""
    model = EmbeddingModel.objects.filter(pk=job.params["model"]).first()
    if model is None:
        raise JobFailed("The model was deleted.")
    with _only_search():
        if job.total is None:
            with transaction.atomic():
                _open_groups_delete()
                # Those of unknown species come last.
                job_advance(job=job, total=Species.objects.count() + 1, cursor={"after": 0})
        decided = _decided()
        while True:
            following = Species.objects.filter(pk__gt=job.cursor["after"]).order_by("pk")
            species_id = following.values_list("pk", flat=True).first()
            with transaction.atomic():
                _groups_make(model, species_id, LEAST_LIKENESS, decided)
                job_advance(job=job, done=1, cursor={"after": species_id})
            if species_id is None:
                return True
            if time.monotonic() >= deadline:
                return False


@contextmanager
def _only_search() -> Iterator[None]:
    with try_session_lock(lock_key("duplicates")) as held:
        if not held:
            raise Conflict("Another process looks for near-duplicates.")
        yield


def _open_groups_delete() -> None:
    with transaction.atomic():
        # Locked, so that a decision taken meanwhile isn't deleted.
        open_groups = DuplicateGroup.objects.select_for_update().filter(decision="")
        DuplicateGroup.objects.filter(pk__in=[group.pk for group in open_groups]).delete()


def _decided() -> list[frozenset[int]]:
    """The images of each group that was decided on."""
    return [
        frozenset(image.pk for image in group.images.all())
        for group in DuplicateGroup.objects.exclude(decision="").prefetch_related("images")
    ]


def _groups_make(
    model: EmbeddingModel, species_id: int | None, least: float, decided: list[frozenset[int]]
) -> list[int]:
    """Store the groups of one species, but those that were decided on; returns their sizes."""
    sizes = []
    for kind, images in _groups_of(model, species_id, least):
        if not any(group.issuperset(images) for group in decided):
            with transaction.atomic():
                DuplicateGroup.objects.create(kind=kind).images.set(images)
            sizes.append(len(images))
    return sizes


def group_decide(*, group: DuplicateGroup, decision: str, by: Any) -> bool:
    """Decide on a group once; False if somebody has. ONE keeps the image with the most pixels, the
    first of equals, and withdraws the others; what has left the corpus since isn't kept.
    """
    with transaction.atomic():
        changed = DuplicateGroup.objects.filter(pk=group.pk, decision="").update(
            decision=decision, decided_by=by, decided_at=Now()
        )
        if not changed:
            return False
        there = group.images.filter(~is_withdrawn())
        images = sorted(there, key=lambda image: (-image.width * image.height, image.pk))
        leaving = {"kept": [], "one": images[1:], "withdrawn": images}[decision]
        for image in leaving:
            note = f"{group.get_kind_display()}: nearly the same as image {images[0].pk}"
            image_withdraw(image=image, by=by, note=note)
    return True


def duplicates_forget(*, image_ids: Sequence[int]) -> None:
    """Remove images that leave the corpus from groups; those to decide on go whole."""
    DuplicateGroup.objects.filter(images__in=image_ids, decision="").delete()
    DuplicateGroup.images.through.objects.filter(image__in=image_ids).delete()


def _groups_of(
    model: EmbeddingModel, species_id: int | None, least: float
) -> list[tuple[str, list[int]]]:
    """(kind, image ids) of the groups of one species; a group with a burst's link is a burst."""
    rows = (
        Embedding.objects.filter(model=model, image__species=species_id)
        .exclude(image__in=Image.objects.filter(is_withdrawn()).values("pk"))
        .order_by("image_id")
        .select_related("image")
    )
    images: list[Image] = []
    vectors = []
    for row in rows.iterator():
        images.append(row.image)
        vectors.append(row.vector)
    if len(images) < 2:
        return []
    hashed = lru_cache(maxsize=None)(_hash_of)
    linked: list[tuple[int, int]] = []
    bursts: set[int] = set()
    for i, j in like_pairs(np.array(vectors, dtype=np.float16), least):
        image, other = images[i], images[j]
        first, second = hashed(image), hashed(other)
        if first is not None and second is not None and bits_apart(first, second) <= MOST_BITS:
            linked.append((i, j))
        elif _is_burst(image, other):
            linked.append((i, j))
            bursts.update((i, j))
    return [
        ("burst" if bursts.intersection(group) else "copy", [images[at].pk for at in group])
        for group in components(len(images), linked)
    ]


def _hash_of(image: Image) -> int | None:
    """The perceptual hash of an image's thumbnail; None where its file can't be read."""
    try:
        with thumbnail_file(ImageRef.of(image)) as file, PillowImage.open(file) as opened:
            return perceptual_hash(opened)
    except (ImageGone, ImageRefused, RootUnavailable, OSError):
        return None


def _is_burst(image: Image, other: Image) -> bool:
    if image.observer != other.observer and image.observer and other.observer:
        return False
    places = (image.latitude, other.latitude, image.longitude, other.longitude)
    if image.observed_at is None or other.observed_at is None or None in places:
        return False
    seconds = abs((image.observed_at - other.observed_at).total_seconds())
    north, south, east, west = (float(place or 0) for place in places)
    return seconds <= MOST_SECONDS and max(abs(north - south), abs(east - west)) <= MOST_DEGREES


def duplicate_counts() -> dict[str, int]:
    """How many groups there are (`found`), and how many were decided on in each way."""
    rows = DuplicateGroup.objects.order_by().values_list("decision").annotate(Count("pk"))
    counts = dict(rows)
    decided = {decision: counts.get(decision, 0) for decision in DuplicateGroup.Decision.values}
    return {"found": sum(counts.values()), **decided}
