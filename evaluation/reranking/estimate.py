"""The estimated cost of a two-stage run, before it begins."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evaluation.reranking.multimodal.answers import mean_tokens, stored_answers
from evaluation.reranking.multimodal.prompt import Usage
from evaluation.reranking.pairs import (
    first_stage_images,
    in_parts,
    pairs_to_score,
    query_texts,
    questions_of,
)
from evaluation.reranking.services import RerankChoice
from evaluation.reranking.setup import GUESSED_TOKENS
from retrieval.embedding.models import Embedding, EmbeddingModel

_PART: Final = 4096


@dataclass(frozen=True, slots=True)
class Estimate:
    """Pairs of query and image, and what scoring them takes."""

    queries: int
    pairs: int
    unavailable: int
    """Pairs whose image has no embedding; for a multimodal model, pairs whose image is withdrawn or
    not in the corpus."""
    answered: int = 0
    """Pairs whose answer is stored already."""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    measured: bool = False
    """Whether the tokens follow from earlier answers of the model; else they are a guess."""
    cost: float | None = None
    """US dollars for the requests; None without prices."""
    minutes: float | None = None
    """The least, by the limit of requests or the pace so far; None where neither is known."""


def rerank_estimate(choice: RerankChoice) -> Estimate:
    """The estimate for a choice that `rerank_checked` accepted. Takes seconds for many pairs; sends
    nothing."""
    images = first_stage_images(release=choice.release, first_stage=choice.first_stage)
    pairs = pairs_to_score(images, choice.depth)
    if choice.embedding_model is not None:
        unavailable = _without_embedding(choice.embedding_model, [pair[1] for pair in pairs])
        return Estimate(queries=len(images), pairs=len(pairs), unavailable=unavailable)
    setup = choice.endpoint
    assert setup is not None
    texts = query_texts(choice.release)
    answered = unavailable = 0
    for part in in_parts(pairs, _PART):
        questions, refused = questions_of(part, texts=texts, setup=setup)
        unavailable += len(refused)
        answered += len(
            stored_answers(endpoint=setup.base_url, model=setup.model, questions=questions)
        )
    requests = len(pairs) - answered - unavailable
    token_means = mean_tokens(endpoint=setup.base_url, model=setup.model)
    prompt, completion = token_means or GUESSED_TOKENS
    usage = Usage(requests, round(requests * prompt), round(requests * completion))
    return Estimate(
        queries=len(images),
        pairs=len(pairs),
        unavailable=unavailable,
        answered=answered,
        requests=requests,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        measured=token_means is not None,
        cost=setup.prices.cost(usage),
        minutes=requests / setup.rpm if setup.rpm else None,
    )


def _without_embedding(model: EmbeddingModel, image_ids: list[int]) -> int:
    """How many of these ids, each as often as it occurs, have no embedding."""
    ids = sorted(set(image_ids))
    embedded = set[int]()
    for start in range(0, len(ids), _PART):
        rows = Embedding.objects.filter(model=model, image_id__in=ids[start : start + _PART])
        embedded.update(rows.values_list("image_id", flat=True))
    return sum(image_id not in embedded for image_id in image_ids)
