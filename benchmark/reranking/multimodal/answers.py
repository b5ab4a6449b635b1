"""Answers that were paid for, kept for ever: by image, prompt, model and server."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Avg, Q

from benchmark.reranking.multimodal.images import Picture
from benchmark.reranking.multimodal.models import ModelAnswer
from benchmark.reranking.multimodal.prices import Usage
from benchmark.reranking.multimodal.prompt import prompt_sha256
from benchmark.reranking.multimodal.replies import Reply


@dataclass(frozen=True, slots=True)
class Question:
    """One image of one query, to be put to a model."""

    query_id: int
    image_id: int
    prompt: str
    picture: Picture

    @property
    def key(self) -> tuple[int, int]:
        return self.query_id, self.image_id


@dataclass(frozen=True, slots=True)
class Kept:
    """A kept answer."""

    score: float
    usage: Usage

    @property
    def usage_told(self) -> bool:
        """No prompt takes zero tokens: the server didn't count them."""
        return self.usage.prompt_tokens > 0


def answers_kept(
    *, endpoint: str, model: str, questions: Sequence[Question]
) -> dict[tuple[int, int], Kept]:
    """The kept answers to these questions by (query id, image id), as one SQL query. An answer
    about an earlier picture of the image, or about it in another size, is none.
    """
    prompts = {one.prompt: prompt_sha256(one.prompt) for one in questions}
    rows = ModelAnswer.objects.filter(
        endpoint=endpoint,
        model=model,
        prompt_sha256__in=set(prompts.values()),
        image_id__in={one.image_id for one in questions},
    ).values_list(
        "prompt_sha256", "image_id", "image_sha256", "score", "prompt_tokens", "completion_tokens"
    )
    kept = {row[:3]: Kept(row[3], Usage(1, row[4], row[5])) for row in rows.iterator()}
    found = {}
    for one in questions:
        answer = kept.get((prompts[one.prompt], one.image_id, one.picture.fingerprint))
        if answer is not None:
            found[one.key] = answer
    return found


def answers_keep(*, endpoint: str, model: str, replies: Iterable[tuple[Question, Reply]]) -> None:
    """Keep answers. Of two runs that asked the same at once, the first one's stays; an answer
    about an earlier picture or another size makes way.
    """
    rows = [
        ModelAnswer(
            endpoint=endpoint,
            model=model,
            prompt_sha256=prompt_sha256(question.prompt),
            image_id=question.image_id,
            image_sha256=question.picture.fingerprint,
            yes=reply.score.yes,
            no=reply.score.no,
            score=reply.score.score,
            prompt_tokens=reply.usage.prompt_tokens,
            completion_tokens=reply.usage.completion_tokens,
        )
        for question, reply in replies
    ]
    if not rows:
        return
    stale = Q()
    for row in rows:
        stale |= Q(image_id=row.image_id, prompt_sha256=row.prompt_sha256) & ~Q(
            image_sha256=row.image_sha256
        )
    with transaction.atomic():
        ModelAnswer.objects.filter(stale, endpoint=endpoint, model=model).delete()
        ModelAnswer.objects.bulk_create(rows, ignore_conflicts=True)


def usage_of_answers(*, endpoint: str, model: str) -> tuple[float, float] | None:
    """Tokens that one question to the model took on average: (prompt, completion); None where no
    answer tells."""
    means = ModelAnswer.objects.filter(
        endpoint=endpoint, model=model, prompt_tokens__gt=0
    ).aggregate(prompt=Avg("prompt_tokens"), completion=Avg("completion_tokens"))
    return None if means["prompt"] is None else (means["prompt"], means["completion"])
