"""Questions to multimodal models, the cost of their answers, and the stored answers, so that each
is paid for once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import Avg, Q

from evaluation.reranking.multimodal.models import ModelAnswer
from evaluation.reranking.multimodal.prompt import Reply, Usage, prompt_sha256
from retrieval.images.decoding import DISPLAY_SIDE, ImageRefused, jpeg_bytes, open_image
from retrieval.images.files import ImageGone, ImageRef, display_file

_QUALITY: Final = 92


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens; None where they are not known."""

    input: float | None = None
    output: float | None = None

    def cost(self, usage: Usage) -> float | None:
        """US dollars for these tokens; None if either price is unknown."""
        if self.input is None or self.output is None:
            return None
        return (usage.prompt_tokens * self.input + usage.completion_tokens * self.output) / 1e6


def dollars(amount: float) -> str:
    """An amount for people: rounded to cents, or to hundredths of a cent below a dollar if it isn't
    whole cents."""
    fine = amount < 1 and round(amount, 4) != round(amount, 2)
    return f"${amount:.4f}" if fine else f"${amount:,.2f}"


@dataclass(frozen=True, slots=True)
class SentImage:
    """An image, and the longest side in pixels at which it is sent."""

    ref: ImageRef
    width: int
    height: int
    side: int

    @property
    def fingerprint(self) -> str:
        """What was sent: the source file's SHA-256, or, if it is sent smaller, the SHA-256 of that
        and the size. Doesn't read the file. Empty while nobody has read it.
        """
        if not self.ref.sha256 or not self._smaller:
            return self.ref.sha256
        return hashlib.sha256(f"{self.ref.sha256} {self.side}".encode()).hexdigest()

    def jpeg(self) -> bytes:
        """The image upright, as a browser shows it, no longer than `side`.

        ImageGone: its file isn't there, or its root doesn't answer.
        """
        with display_file(self.ref) as file:
            data = file.read()
        if not self._smaller:
            return data
        try:
            with open_image(data, max_pixels=DISPLAY_SIDE**2, at_least=self.side) as shown:
                return jpeg_bytes(shown.pixels, longest_side=self.side, quality=_QUALITY)
        except ImageRefused as error:
            raise ImageGone(str(error)) from error

    @property
    def _smaller(self) -> bool:
        return max(self.width, self.height) > self.side


@dataclass(frozen=True, slots=True)
class Question:
    """A question to a model: one image for one query."""

    query_id: int
    image_id: int
    prompt: str
    image: SentImage
    examples: tuple[tuple[str, SentImage], ...] = ()
    """Images that are sent before it, each with a line of text."""

    @property
    def images(self) -> int:
        """How many images are sent."""
        return 1 + len(self.examples)

    @property
    def key(self) -> tuple[int, int]:
        """(query id, image id)."""
        return self.query_id, self.image_id


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer that was paid for."""

    score: float
    usage: Usage

    @property
    def usage_known(self) -> bool:
        """No prompt takes zero tokens: the server didn't count them."""
        return self.usage.prompt_tokens > 0


def stored_answers(
    *, endpoint: str, model: str, questions: Sequence[Question]
) -> dict[tuple[int, int], StoredAnswer]:
    """The stored answers to these questions by (query id, image id). One SQL query. An answer about
    an earlier file of the image, or in another size, doesn't count.
    """
    prompts = {question.prompt: prompt_sha256(question.prompt) for question in questions}
    rows = ModelAnswer.objects.filter(
        endpoint=endpoint,
        model=model,
        prompt_sha256__in=set(prompts.values()),
        image_id__in={question.image_id for question in questions},
    ).values_list(
        "prompt_sha256", "image_id", "image_sha256", "score", "prompt_tokens", "completion_tokens"
    )
    stored = {row[:3]: StoredAnswer(row[3], Usage(1, row[4], row[5])) for row in rows.iterator()}
    answers = {}
    for question in questions:
        answer = stored.get(
            (prompts[question.prompt], question.image_id, question.image.fingerprint)
        )
        if answer is not None:
            answers[question.key] = answer
    return answers


def store_answers(*, endpoint: str, model: str, replies: Iterable[tuple[Question, Reply]]) -> None:
    """Store answers. If a question was answered before, the first answer stays; an answer about an
    earlier file or in another size is replaced.
    """
    rows = [
        ModelAnswer(
            endpoint=endpoint,
            model=model,
            prompt_sha256=prompt_sha256(question.prompt),
            image_id=question.image_id,
            image_sha256=question.image.fingerprint,
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


def mean_tokens(*, endpoint: str, model: str) -> tuple[float, float] | None:
    """Mean tokens of the model's answers: (prompt, completion); None if there are none."""
    means = ModelAnswer.objects.filter(
        endpoint=endpoint, model=model, prompt_tokens__gt=0
    ).aggregate(prompt=Avg("prompt_tokens"), completion=Avg("completion_tokens"))
    return None if means["prompt"] is None else (means["prompt"], means["completion"])
