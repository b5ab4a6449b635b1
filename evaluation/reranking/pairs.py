"""What a two-stage run re-ranks: the first stage's images, and the questions about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    images = Image.objects.filter(pk__in={image_id for _, image_id in pairs})
    sendable = {
        image.pk: SentImage(ImageRef.of(image), image.width, image.height, setup.max_side)
        for image in images.only("sha256", "root_id", "file_name", "width", "height")
    }
    if any(image.ref.root_id is not None for image in sendable.values()):
        # They are read in threads, which have no database.
        roots_load()
    withdrawn = set(images.filter(is_withdrawn()).values_list("pk", flat=True))
    prompts = {query_id: prompt_for(texts[query_id], setup.prompt) for query_id, _ in pairs}
    questions, refused = [], {}
    for query_id, image_id in pairs:
        if image_id in withdrawn:
            refused[query_id, image_id] = WITHDRAWN
        elif image_id not in sendable:
            refused[query_id, image_id] = NOT_HERE
        else:
            questions.append(Question(query_id, image_id, prompts[query_id], sendable[image_id]))
    return questions, refused


def in_parts(pairs: Sequence[Pair], size: int) -> list[list[Pair]]:
    """Pairs in parts of `size`, in order."""
    rest = iter(pairs)
    return [list(islice(rest, size)) for _ in range(0, len(pairs), size)]
