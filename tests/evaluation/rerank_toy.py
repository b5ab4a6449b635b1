"""A corpus with images, a release over it and a first stage, for tests of two-stage runs."""

from __future__ import annotations

import colorsys
from collections.abc import Sequence
from typing import Any

from core.jobs.models import Job
from core.jobs.services import Slice, job_slice_run
from evaluation.reranking.multimodal.answers import Prices
from evaluation.reranking.multimodal.prompt import prompt_for
from evaluation.reranking.services import RerankChoice, rerank_begin
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from evaluation.runs.store import load_run
from releases.models import Release
from retrieval.corpus.models import Image
from retrieval.images.files import ImageRef, display_file
from retrieval.images.storage import image_store
from tests.evaluation.chat_server import expected_score
from tests.evaluation.runs import scored_run
from tests.releases.snapshots import pair, query
from tests.releases.toy_release import ready_release
from tests.retrieval.making import image_row, jpeg

TEXTS = {1: "a stork on a nest", 2: "a red fox ", 3: "a dead bird"}
#: The first stage's order of each query.
FIRST = {1: [1, 2, 3, 4, 5, 6], 2: [6, 5, 4, 3, 2, 1], 3: [2, 4, 6, 1, 3]}


def toy_image(number: int) -> Image:
    """An image of the corpus with a image of its own color, 40 pixels wide."""
    color = tuple(round(255 * part) for part in colorsys.hsv_to_rgb(number * 0.618 % 1, 0.6, 0.8))
    stored = image_store(jpeg(color))
    return image_row(number, sha256=stored.sha256, width=stored.width, height=stored.height)


def bytes_of(image_id: int) -> bytes:
    """The image as it is shown and sent."""
    with display_file(ImageRef.of(Image.objects.get(pk=image_id))) as file:
        return file.read()


def small_release(**values: Any) -> Release:
    """Three queries over six images."""
    return ready_release(
        queries=[
            query(number, text, split="val" if number == 1 else "test")
            for number, text in TEXTS.items()
        ],
        pairs=[
            pair(query_id, image_id, image_id in (3, 4))
            for query_id in TEXTS
            for image_id in range(1, 7)
        ],
        **values,
    )


def first_stage(release: Release) -> Run:
    """A scored run of the three queries, one of them with five images alone."""
    return scored_run(release, FIRST, name="first stage")


def setup_of(url: str, **values: Any) -> EndpointSetup:
    """How the server of a test is asked."""
    prices = Prices(values.pop("price_in", None), values.pop("price_out", None))
    return EndpointSetup(base_url=url, model="a/model", prices=prices, **values)


def begun(release: Release, first: Run | None, depth: int, url: str = "", **values: Any) -> Run:
    """A two-stage run that nothing has worked on yet."""
    named = {name: values.pop(name) for name in ("name", "embedding_model") if name in values}
    endpoint = setup_of(url, **values) if url else None
    choice = RerankChoice(
        release=release, first_stage=first, depth=depth, endpoint=endpoint, **named
    )
    return rerank_begin(choice=choice)


def worked(run: Run) -> Job:
    """Do the run's job in this process until it ends, however it ends."""
    assert run.job is not None
    while job_slice_run(job_id=run.job.pk) is Slice.MORE:
        pass
    run.refresh_from_db()
    run.job.refresh_from_db()
    return run.job


def order_of(run: Run) -> dict[int, list[int]]:
    """query id -> image ids of the stored ranking."""
    return {
        query_id: ranking.image_ids.tolist() for query_id, ranking in load_run(run.path).items()
    }


def expected_order(depth: int, without: Sequence[tuple[int, int]] = ()) -> dict[int, list[int]]:
    """What the answers of the tests' server make of the first stage."""
    orders = {}
    for query_id, ids in FIRST.items():
        sent = [one for one in ids[:depth] if (query_id, one) not in without]
        prompt = prompt_for(TEXTS[query_id])
        sent.sort(key=lambda one: -expected_score(prompt, bytes_of(one)))
        orders[query_id] = sent + [one for one in ids if one not in sent]
    return orders
