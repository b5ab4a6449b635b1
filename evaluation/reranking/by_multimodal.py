"""The second stage of a run by a multimodal model behind an OpenAI-compatible address.

Pairs of query and image are processed in parts. Answers are stored in small batches as they arrive,
so a slice that is cut short loses a batch at most. The client retries requests and pauses between.
"""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from typing import Any, Final

import numpy as np
from django.conf import settings
from django.db import transaction

from core.jobs.kinds import JobCanceled, JobFailed
from core.jobs.models import Job, JobItemError
from core.jobs.services import job_advance, job_item_error
from evaluation.reranking.multimodal.answers import (
    Question,
    StoredAnswer,
    dollars,
    store_answers,
    stored_answers,
)
from evaluation.reranking.multimodal.client import Client
from evaluation.reranking.multimodal.prompt import EndpointRefused, ImageFailed, Reply, Usage
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
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageGone
from retrieval.importing.checks import image_contents_read

#: Pairs that are looked up at a time.
PART: Final = 256
#: Seconds after which answers are stored, and the longest wait before the job is checked.
BATCH_SECONDS: Final = 1.0
BATCH: Final = 8
#: The number of failed images at which a run stops if no image was answered.
FAILED_AT_FIRST: Final = 10

Outcome = tuple[Question, Reply | Exception]


def multimodal_rerank_step(run: Run, job: Job, deadline: float) -> bool:
    """Ask for answers until `deadline`; True when the run is scored.

    JobFailed: the server can't be used, the cost limit is reached, or too many images fail. A retry
    of the job continues the run where it stopped.
    """
    images = first_stage_images(release=run.release, first_stage=run.first_stage)
    pairs = pairs_to_score(images, run.rerank_depth or 0)
    if job.total is None or job.cursor.get("stopped"):
        _begin(job, len(pairs))
    step = _Step(run, job, deadline, total=len(pairs))
    parts = in_parts(pairs, PART)
    while step.part < len(parts):
        if not step.settle(parts[step.part]) or step.late:
            return False
    if not run.ready:
        scores, usage = step.scores(parts)
        _store(run, images, scores, usage)
        run_finish(run=Run.objects.select_related("release").get(pk=run.pk))
    return True


def _begin(job: Job, total: int) -> None:
    """Start from the first pair; after a stop, images that had failed are sent again."""
    with transaction.atomic():
        JobItemError.objects.filter(job=job).delete()
        cursor = {"part": 0, "next_at": 0.0}
        job_advance(job=job, done=-job.done, failed=-job.failed, total=total, cursor=cursor)


class _Step:
    """One slice of the work."""

    def __init__(self, run: Run, job: Job, deadline: float, *, total: int) -> None:
        self.run = run
        self.job = job
        self.deadline = deadline
        self.total = total
        self.setup = EndpointSetup.of(run)
        self.texts = query_texts(run.release)
        self.part: int = job.cursor["part"]
        #: The moment, in Unix time, before which no further request may begin.
        self.next_at: float = job.cursor["next_at"]
        self.paid = self.setup.paid
        self.stop: Exception | None = None

    def settle(self, part: list[Pair]) -> bool:
        """Get an answer or a failure for every pair of a part; False if the deadline came first."""
        # Answers are stored by the content of their image's file.
        image_contents_read(image_ids={image_id for _, image_id in part})
        questions, refused = questions_of(part, texts=self.texts, setup=self.setup)
        stored = self._stored(questions)
        failed = self._failed(part)
        self._fail({pair: text for pair, text in refused.items() if pair not in failed})
        # Counted again, since a slice may have been cut short between an answer and its count.
        before = self.part * PART - (self.job.failed - len(failed.keys() | refused.keys()))
        answered = len(stored.keys() - failed.keys() - refused.keys())
        self._advance(done=before + answered - self.job.done)
        pending = deque(
            question
            for question in questions
            if question.key not in stored and question.key not in failed
        )
        if self.stop is not None:
            self._stopped(self.stop)
        if pending and not self._ask(pending):
            return False
        self.part += 1
        self._advance()
        return True

    def scores(self, parts: list[list[Pair]]) -> tuple[dict[Pair, float], Usage | None]:
        """The score of every answered pair, and the tokens of all answers; None if the server
        didn't count them."""
        scores, usage, usage_known = dict[Pair, float](), Usage(), True
        for part in parts:
            questions, _ = questions_of(part, texts=self.texts, setup=self.setup)
            for key, answer in self._stored(questions).items():
                scores[key] = answer.score
                usage += answer.usage
                usage_known = usage_known and answer.usage_known
        return scores, usage if usage_known else None

    def _stored(self, questions: list[Question]) -> dict[Pair, StoredAnswer]:
        return stored_answers(
            endpoint=self.setup.base_url, model=self.setup.model, questions=questions
        )

    def _ask(self, pending: deque[Question]) -> bool:
        """Ask until nothing is pending; False if the deadline came first.

        In any case, waits for the answers to all requests sent and stores them: they are paid for.
        """
        client = Client(
            base_url=self.setup.base_url,
            model=self.setup.model,
            timeout=settings.MULTIMODAL_TIMEOUT,
            on_retry=self._space,
        )

        def ask(question: Question) -> Reply:
            return client.ask(prompt=question.prompt, jpeg=question.image.jpeg())

        at_once = settings.MULTIMODAL_CONCURRENCY
        with client, ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="ask") as pool:
            running: dict[Future[Reply], Question] = {}
            outcomes: list[Outcome] = []
            stored_at = time.monotonic()
            while True:
                while (
                    pending
                    and len(running) < at_once
                    and not self.stop
                    and not self.late
                    and time.time() >= self.next_at
                    and self._affordable(len(running) + len(outcomes))
                ):
                    self._space()
                    question = pending.popleft()
                    running[pool.submit(ask, question)] = question
                if not running and (self.stop or not pending or self.late):
                    break
                outcomes += self._collect(running, begin_more=len(running) < at_once)
                # Errors are handled at once, since they decide whether more is sent.
                failed = any(isinstance(result, Exception) for _, result in outcomes)
                due = time.monotonic() - stored_at >= BATCH_SECONDS
                if failed or due or len(outcomes) >= BATCH:
                    self._take(outcomes, pending)
                    outcomes, stored_at = [], time.monotonic()
            self._take(outcomes, pending)
        if self.stop is not None:
            self._stopped(self.stop)
        return not pending

    def _space(self) -> None:
        """Count a request, also a repeated one, toward the limit of requests per minute."""
        if self.setup.rpm:
            self.next_at = max(time.time(), self.next_at) + 60 / self.setup.rpm

    def _collect(
        self, running: dict[Future[Reply], Question], *, begin_more: bool
    ) -> list[Outcome]:
        """Wait for outcomes, or for the moment at which another question may begin."""
        pause = BATCH_SECONDS
        if begin_more and not self.stop and self.next_at > time.time():
            pause = min(pause, self.next_at - time.time())
        if not running:
            time.sleep(max(0.0, min(pause, self.deadline - time.monotonic())))
            return []
        done, _ = wait(running, timeout=max(pause, 0.0), return_when=FIRST_COMPLETED)
        outcomes: list[Outcome] = []
        for future in done:
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            outcomes.append((running.pop(future), error or future.result()))
        return outcomes

    def _affordable(self, uncounted: int) -> bool:
        """Whether one more question stays within the cost limit, with `uncounted` questions whose
        cost isn't known yet. If it doesn't, and there are none of these, the run stops."""
        limit, cost = self.setup.max_cost, self.setup.prices.cost(self.paid)
        if limit is None or cost is None:
            return True
        if cost + (uncounted + 1) * self.setup.cost_of_one(self.paid) <= limit:
            return True
        if not uncounted:
            self.stop = JobFailed(
                f"The cost limit of {dollars(limit)} is reached: {dollars(cost)} are spent, and "
                f"{self.job.done:,} of {self.total:,} images have their answer. Raise the limit to "
                "continue; nothing is sent twice."
            )
        return False

    def _take(self, outcomes: list[Outcome], pending: deque[Question]) -> None:
        """Store answers and report failed images; questions that got no answer for another reason
        are pending again."""
        replies, failed = list[tuple[Question, Reply]](), dict[Pair, str]()
        paid = Usage()
        for question, result in outcomes:
            if isinstance(result, Reply):
                replies.append((question, result))
                paid += result.usage
                if not result.usage_known and self.setup.max_cost is not None:
                    self.stop = self.stop or JobFailed(
                        "The server doesn't say how many tokens an answer took, so a cost limit "
                        "can't be met. Start again without one."
                    )
            elif isinstance(result, ImageFailed):
                failed[question.key] = str(result)
                paid += result.usage
            elif isinstance(result, ImageGone):
                failed[question.key] = str(result)
            elif isinstance(result, OSError | ImageRefused):
                failed[question.key] = f"Its file can't be read: {result}"
            elif isinstance(result, EndpointRefused):
                pending.appendleft(question)
                self.stop = self.stop or JobFailed(str(result))
            else:
                self.stop = self.stop or result
        self._store(replies, paid)
        try:
            self._fail(failed)
            self._advance(done=len(replies))
        except JobCanceled as error:
            self.stop = error

    def _store(self, replies: list[tuple[Question, Reply]], paid: Usage) -> None:
        """Store answers and their tokens at once, even if the job is canceled."""
        if not paid.requests:
            return
        with transaction.atomic():
            store_answers(endpoint=self.setup.base_url, model=self.setup.model, replies=replies)
            locked_run = Run.objects.select_for_update(of=("self",)).filter(pk=self.run.pk).first()
            if locked_run is not None:
                self.paid = EndpointSetup.of(locked_run).paid + paid
                locked_run.endpoint = {**locked_run.endpoint, "paid": asdict(self.paid)}
                locked_run.save(update_fields=["endpoint"])

    def _fail(self, failed: dict[Pair, str]) -> None:
        """Report failed images, and stop the run if there are too many."""
        if not failed:
            return
        with transaction.atomic():
            for pair, text in failed.items():
                job_item_error(job=self.job, item=_name(pair), message=text, image_id=pair[1])
            self._advance(failed=len(failed))
        last = next(reversed(failed.values()))
        percent = settings.MULTIMODAL_MAX_FAILURES
        if not self.job.done and self.job.failed >= FAILED_AT_FIRST:
            text = f"None of the first {self.job.failed} images got an answer. Last: {last}"
        elif self.job.failed > self.total * percent / 100:
            text = (
                f"{self.job.failed:,} of {self.total:,} images got no answer; at most {percent} % "
                f"may fail (MULTIMODAL_MAX_FAILURES). Last: {last}"
            )
        else:
            return
        self.stop = self.stop or JobFailed(text)

    def _failed(self, part: list[Pair]) -> dict[Pair, str]:
        names = {_name(pair): pair for pair in part}
        rows = JobItemError.objects.filter(job=self.job, item__in=names)
        return {names[item]: text for item, text in rows.values_list("item", "message")}

    def _advance(self, *, done: int = 0, failed: int = 0) -> None:
        cost = self.setup.prices.cost(self.paid)
        job_advance(
            job=self.job,
            done=done,
            failed=failed,
            cursor={"part": self.part, "next_at": self.next_at},
            result={**asdict(self.paid), "cost": cost},
        )

    def _stopped(self, stop: Exception) -> None:
        if isinstance(stop, JobFailed):
            job_advance(job=self.job, cursor={**self.job.cursor, "stopped": True})
        raise stop

    @property
    def late(self) -> bool:
        """Whether the slice's time is over."""
        return time.monotonic() >= self.deadline


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


def _name(pair: Pair) -> str:
    return f"query {pair[0]}, image {pair[1]}"
