"""What a two-stage run re-ranks: the first stage's images, and the questions about them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np
import numpy.typing as npt
from django.db.models import QuerySet

from evaluation.reranking.multimodal.answers import Question, SentImage
from evaluation.reranking.multimodal.prompt import prompt_for
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from evaluation.runs.store import load_run
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.flags.selectors import is_withdrawn
from retrieval.images.files import ImageRef, roots_load

ImageIds = npt.NDArray[np.int64]
Pair = tuple[int, int]

NOT_HERE: Final = "The image is not in this corpus."
WITHDRAWN: Final = "The image is withdrawn, so it is not sent to anybody."


def first_stages(release: Release) -> QuerySet[Run]:
    """The runs of a release that can be re-ranked: scored full rankings of a real method."""
    return Run.objects.filter(release=release, task=Run.Task.FULL, ready_at__isnull=False).exclude(
        kind__in=[Run.Kind.RANDOM, Run.Kind.BEST]
    )


def first_stage_images(*, release: Release, first_stage: Run | None) -> dict[int, ImageIds]:
    """The images of each query in the first stage's order, by query id; without a run, those of the
    release's fixed lists. NoSnapshot, RunDamaged: see `runs.selectors` and `runs.store`.
    """
    if first_stage is None:
        return release_data(release).fixed
    queries = release_data(release).queries
    rankings = load_run(first_stage.local_path)
    return {
        query_id: ranking.image_ids for query_id, ranking in rankings.items() if query_id in queries
    }


def query_texts(release: Release) -> dict[int, str]:
    """The text of each query of a release."""
    return {query_id: query.text for query_id, query in release_data(release).queries.items()}


def pairs_to_score(images: Mapping[int, ImageIds], depth: int) -> list[Pair]:
    """(query id, image id) of the first `depth` images of each query, in order."""
    return [
        (query_id, image_id)
        for query_id in sorted(images)
        for image_id in images[query_id][:depth].tolist()
    ]


def questions_of(
    pairs: Sequence[Pair], *, texts: Mapping[int, str], setup: EndpointSetup
) -> tuple[list[Question], dict[Pair, str]]:
    """The questions about pairs, and for pairs without a question the reason; at most three SQL
    queries."""
    images, refused = images_to_send({image_id for _, image_id in pairs}, side=setup.max_side)
    prompts = {query_id: prompt_for(texts[query_id], setup.prompt) for query_id, _ in pairs}
    questions = [
        Question(query_id, image_id, prompts[query_id], images[image_id])
        for query_id, image_id in pairs
        if image_id in images
    ]
    return questions, {pair: refused[pair[1]] for pair in pairs if pair[1] in refused}


def images_to_send(
    image_ids: Collection[int], *, side: int
) -> tuple[dict[int, SentImage], dict[int, str]]:
    """Images as they are sent, no longer than `side`, by id, and for those that are not sent the
    reason; at most three SQL queries."""
    rows = Image.objects.filter(pk__in=image_ids)
    withdrawn = set(rows.filter(is_withdrawn()).values_list("pk", flat=True))
    images = {
        image.pk: SentImage(ImageRef.of(image), image.width, image.height, side)
        for image in rows.only("sha256", "root_id", "file_name", "width", "height")
        if image.pk not in withdrawn
    }
    if any(image.ref.root_id is not None for image in images.values()):
        # They are read in threads, which have no database.
        roots_load()
    refused = {
        image_id: WITHDRAWN if image_id in withdrawn else NOT_HERE
        for image_id in image_ids
        if image_id not in images
    }
    return images, refused


def in_parts(pairs: Sequence[Pair], size: int) -> list[list[Pair]]:
    """Pairs in parts of `size`, in order."""
    rest = iter(pairs)
    return [list(islice(rest, size)) for _ in range(0, len(pairs), size)]
