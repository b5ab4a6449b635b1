"""The second stage of a run by a multimodal model behind an OpenAI-compatible address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from django.db import transaction

from core.jobs.models import Job
from evaluation.reranking.asking import PART, Asking, asking_begin
from evaluation.reranking.multimodal.answers import (
    Question,
    StoredAnswer,
    store_answers,
    stored_answers,
)
from evaluation.reranking.multimodal.prompt import Reply, Usage
from evaluation.reranking.order import reranked
from evaluation.reranking.pairs import (
    Pair,
    first_stage_images,
    in_parts,
    pairs_to_score,
    query_texts,
    questions_of,
)
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from evaluation.runs.services import run_finish, run_store


def multimodal_rerank_step(run: Run, job: Job, deadline: float) -> bool:
    """Ask for answers until `deadline`; True when the run is scored. JobFailed: see `Asking`."""
    images = first_stage_images(release=run.release, first_stage=run.first_stage)
    pairs = pairs_to_score(images, run.rerank_depth or 0)
    if job.total is None or job.cursor.get("stopped"):
        asking_begin(job, len(pairs))
    step = _Step(run, job, deadline)
    parts = in_parts(pairs, PART)
    while step.part < len(parts):
        if not step.settle(parts[step.part]) or step.late:
            return False
    if not run.ready:
        scores, usage = step.scores(parts)
        _store(run, images, scores, usage)
        run_finish(run=Run.objects.select_related("release").get(pk=run.pk))
    return True


class _Step(Asking):
    """One slice of a run's work; its tokens are the run's."""

    def __init__(self, run: Run, job: Job, deadline: float) -> None:
        super().__init__(job, deadline, setup=EndpointSetup.of(run))
        self.run = run
        self.texts = query_texts(run.release)

    def questions(self, part: Sequence[Pair]) -> tuple[list[Question], dict[Pair, str]]:
        return questions_of(part, texts=self.texts, setup=self.setup)

    def answered(self, questions: Sequence[Question]) -> dict[Pair, StoredAnswer]:
        return stored_answers(
            endpoint=self.setup.base_url, model=self.setup.model, questions=questions
        )

    def store(self, replies: list[tuple[Question, Reply]], paid: Usage) -> None:
        with transaction.atomic():
            store_answers(endpoint=self.setup.base_url, model=self.setup.model, replies=replies)
            locked_run = Run.objects.select_for_update(of=("self",)).filter(pk=self.run.pk).first()
            if locked_run is not None:
                self.paid = EndpointSetup.of(locked_run).paid + paid
                locked_run.endpoint = {**locked_run.endpoint, "paid": asdict(self.paid)}
                locked_run.save(update_fields=["endpoint"])

    def scores(self, parts: list[list[Pair]]) -> tuple[dict[Pair, float], Usage | None]:
        """The score of every answered pair, and the tokens of all answers; None if the server
        didn't count them."""
        scores, usage, usage_known = dict[Pair, float](), Usage(), True
        for part in parts:
            questions, _ = self.questions(part)
            for key, answer in self.answered(questions).items():
                scores[key] = answer.score
                usage += answer.usage
                usage_known = usage_known and answer.usage_known
        return scores, usage if usage_known else None


def _store(
    run: Run, images: dict[int, Any], scores: dict[Pair, float], usage: Usage | None
) -> None:
    """Store the ranking and the tokens of its answers, including answers stored earlier."""
    depth = run.rerank_depth or 0
    rankings = {
        query_id: reranked(
            ids,
            np.array(
                [scores.get((query_id, image_id), np.nan) for image_id in ids[:depth].tolist()]
            ),
            depth=depth,
        )
        for query_id, ids in images.items()
    }
    run = run_store(run=run, rankings=rankings)
    with transaction.atomic():
        locked_run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        total = sum(min(depth, len(ids)) for ids in images.values())
        locked_run.endpoint = {
            **locked_run.endpoint,
            "answers": len(scores),
            "unscored": total - len(scores),
            "prompt_tokens": usage.prompt_tokens if usage else None,
            "completion_tokens": usage.completion_tokens if usage else None,
        }
        locked_run.cost = EndpointSetup.of(locked_run).prices.cost(usage) if usage else None
        locked_run.save(update_fields=["endpoint", "cost"])
