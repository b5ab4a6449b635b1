"""Asking a multimodal model behind an OpenAI-compatible address about pairs of query and image, as
the work of a job.

Pairs are processed in parts. Answers are stored in small batches as they arrive, so a slice that
is cut short loses a batch at most. The client retries requests and pauses between.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final, NoReturn

from django.conf import settings
from django.db import transaction

from core.jobs.kinds import JobCanceled, JobFailed
from core.jobs.models import Job, JobItemError
from core.jobs.services import job_advance, job_item_error
from evaluation.reranking.multimodal.answers import Question, SentImage, dollars
from evaluation.reranking.multimodal.client import Client
from evaluation.reranking.multimodal.prompt import (
    EndpointRefused,
    ImageFailed,
    Reply,
    Usage,
    read_reply,
)
from evaluation.reranking.pairs import Pair
from evaluation.reranking.setup import GUESSED_TOKENS, EndpointSetup
from retrieval.images.decoding import ImageRefused
from retrieval.images.files import ImageGone
from retrieval.importing.checks import image_contents_read

#: Pairs that are looked up at a time.
PART: Final = 256
#: Seconds after which answers are stored, and the longest wait before the job is checked.
BATCH_SECONDS: Final = 1.0
BATCH: Final = 8
#: Example images that are held while a part is asked about.
EXAMPLES: Final = 16
#: The number of failed images at which the work stops if no image was answered.
FAILED_AT_FIRST: Final = 10

Outcome = tuple[Question, Reply | Exception]


def asking_begin(job: Job, total: int) -> None:
    """Start from the first pair; after a stop, images that had failed are sent again."""
    with transaction.atomic():
        JobItemError.objects.filter(job=job).delete()
        cursor = {"part": 0, "before": 0, "next_at": 0.0}
        job_advance(job=job, done=-job.done, failed=-job.failed, total=total, cursor=cursor)


class Asking(ABC):
    """One slice of the work; what is asked and where answers are stored is a subclass's.

    JobFailed from `settle`: the server can't be used, the cost limit is reached, or too many images
    fail. A retry of the job continues where it stopped.
    """

    #: How a chat completion is read.
    read: Callable[[Any], Reply] = staticmethod(read_reply)

    def __init__(self, job: Job, deadline: float, *, setup: EndpointSetup) -> None:
        self.job = job
        self.deadline = deadline
        self.setup = setup
        self.part: int = job.cursor["part"]
        #: Pairs in the parts before. Jobs of earlier versions have full parts.
        self.before: int = job.cursor.get("before", self.part * PART)
        #: The moment, in Unix time, before which no further request may begin.
        self.next_at: float = job.cursor["next_at"]
        #: Of the dearest answer so far: US dollars, and how many images were sent.
        self.dearest: list[float] | None = job.cursor.get("dearest")
        self.paid = setup.paid
        self.stop: Exception | None = None

    @abstractmethod
    def questions(self, part: Sequence[Pair]) -> tuple[list[Question], dict[Pair, str]]:
        """The questions about pairs, and for pairs without a question the reason."""

    @abstractmethod
    def answered(self, questions: Sequence[Question]) -> Collection[Pair]:
        """Those of these questions that have an answer, by their keys."""

    @abstractmethod
    def store(self, replies: list[tuple[Question, Reply]], paid: Usage) -> None:
        """Store answers and add `paid` to the tokens so far, also of a job that was canceled."""

    def settle(self, part: Sequence[Pair]) -> bool:
        """Get an answer or a failure for every pair of a part; False if the deadline came first."""
        # Answers are stored by the content of their image's file.
        image_contents_read(image_ids={image_id for _, image_id in part})
        questions, refused = self.questions(part)
        stored = set(self.answered(questions))
        failed = self._failed(part)
        self._fail({pair: text for pair, text in refused.items() if pair not in failed})
        # Counted again, since a slice may have been cut short between an answer and its count.
        before = self.before - (self.job.failed - len(failed.keys() | refused.keys()))
        answered = len(stored - failed.keys() - refused.keys())
        self._advance(done=before + answered - self.job.done)
        pending = deque(
            question
            for question in questions
            if question.key not in stored and question.key not in failed
        )
        if self.stop is not None:
            self.stopped(self.stop)
        if pending and not self.ask(pending):
            return False
        self.part += 1
        self.before += len(part)
        self._advance(done=self.before - self.job.failed - self.job.done)
        return True

    def ask(self, pending: deque[Question]) -> bool:
        """Ask until nothing is pending; False if the deadline came first.

        In any case, waits for the answers to all requests sent and stores them: they are paid for.
        """
        client = Client(
            base_url=self.setup.base_url,
            model=self.setup.model,
            timeout=settings.MULTIMODAL_TIMEOUT,
            on_retry=self._space,
        )

        # The examples of a query are sent with each of its images.
        example = lru_cache(EXAMPLES)(SentImage.jpeg)

        def ask(question: Question) -> Reply:
            return client.ask(
                prompt=question.prompt,
                jpeg=question.image.jpeg(),
                examples=[(line, example(image)) for line, image in question.examples],
                read=self.read,
            )

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
                    and self._affordable(
                        pending[0], [*running.values(), *(one for one, _ in outcomes)]
                    )
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
                if failed or due or len(outcomes) >= (1 if self._first else BATCH):
                    self.take(outcomes, pending)
                    outcomes, stored_at = [], time.monotonic()
            self.take(outcomes, pending)
        if self.stop is not None:
            self.stopped(self.stop)
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

    @property
    def _first(self) -> bool:
        """Whether the next answer is the first to show what one costs, where that is limited."""
        return self.setup.max_cost is not None and self.dearest is None

    def _affordable(self, question: Question, uncounted: Sequence[Question]) -> bool:
        """Whether one more question stays within the cost limit, with `uncounted` questions whose
        cost isn't known yet: each may cost as much as the dearest so far. The first is asked alone.
        If it doesn't stay within it, and none is uncounted, the work stops."""
        limit, cost = self.setup.max_cost, self.setup.prices.cost(self.paid)
        if limit is None or cost is None:
            return True
        if self._first and uncounted:
            return False
        if cost + sum(map(self._cost_of, (*uncounted, question))) <= limit:
            return True
        if not uncounted:
            self.stop = JobFailed(
                f"The cost limit of {dollars(limit)} is reached: {dollars(cost)} are spent, and "
                f"{self.job.done:,} of {self.job.total:,} images have their answer. Raise the "
                "limit to continue; nothing is sent twice."
            )
        return False

    def _cost_of(self, question: Question) -> float:
        """US dollars that a question may cost, more where more images are sent with it."""
        if self.dearest is None:
            prompt, completion = GUESSED_TOKENS
            usage = Usage(1, round(prompt) * question.images, round(completion))
            return self.setup.prices.cost(usage) or 0.0
        cost, images = self.dearest
        return cost * max(1.0, question.images / images)

    def _count(self, question: Question, usage: Usage) -> None:
        cost = self.setup.prices.cost(usage)
        if cost is not None and usage.prompt_tokens and cost > (self.dearest or [-1.0])[0]:
            self.dearest = [cost, question.images]

    def take(self, outcomes: list[Outcome], pending: deque[Question]) -> None:
        """Store answers and report failed images; questions that got no answer for another reason
        are pending again."""
        replies, failed = list[tuple[Question, Reply]](), dict[Pair, str]()
        paid = Usage()
        for question, result in outcomes:
            if isinstance(result, Reply):
                replies.append((question, result))
                paid += result.usage
                self._count(question, result.usage)
                if not result.usage_known and self.setup.max_cost is not None:
                    self.stop = self.stop or JobFailed(
                        "The server doesn't say how many tokens an answer took, so a cost limit "
                        "can't be met. Start again without one."
                    )
            elif isinstance(result, ImageFailed):
                failed[question.key] = str(result)
                paid += result.usage
                self._count(question, result.usage)
            elif isinstance(result, ImageGone):
                failed[question.key] = str(result)
            elif isinstance(result, OSError | ImageRefused):
                failed[question.key] = f"Its file can't be read: {result}"
            elif isinstance(result, EndpointRefused):
                pending.appendleft(question)
                self.stop = self.stop or JobFailed(str(result))
            else:
                self.stop = self.stop or result
        if paid.requests:
            self.store(replies, paid)
        try:
            self._fail(failed)
            self._advance(done=len(replies))
        except JobCanceled as error:
            self.stop = error

    def _fail(self, failed: dict[Pair, str]) -> None:
        """Report failed images, and stop if there are too many."""
        if not failed:
            return
        with transaction.atomic():
            for pair, text in failed.items():
                job_item_error(job=self.job, item=_name(pair), message=text, image_id=pair[1])
            self._advance(failed=len(failed))
        last = next(reversed(failed.values()))
        percent, total = settings.MULTIMODAL_MAX_FAILURES, self.job.total or 0
        if not self.job.done and self.job.failed >= FAILED_AT_FIRST:
            text = f"None of the first {self.job.failed} images got an answer. Last: {last}"
        elif self.job.failed > total * percent / 100:
            text = (
                f"{self.job.failed:,} of {total:,} images got no answer; at most {percent} % "
                f"may fail (MULTIMODAL_MAX_FAILURES). Last: {last}"
            )
        else:
            return
        self.stop = self.stop or JobFailed(text)

    def _failed(self, part: Sequence[Pair]) -> dict[Pair, str]:
        names = {_name(pair): pair for pair in part}
        rows = JobItemError.objects.filter(job=self.job, item__in=names)
        return {names[item]: text for item, text in rows.values_list("item", "message")}

    def _advance(self, *, done: int = 0, failed: int = 0) -> None:
        cost = self.setup.prices.cost(self.paid)
        job_advance(
            job=self.job,
            done=done,
            failed=failed,
            cursor={
                "part": self.part,
                "before": self.before,
                "next_at": self.next_at,
                "dearest": self.dearest,
            },
            result={**asdict(self.paid), "cost": cost},
        )

    def stopped(self, stop: Exception) -> NoReturn:
        """End the slice, and have a retry start from the first pair."""
        if isinstance(stop, JobFailed):
            job_advance(job=self.job, cursor={**self.job.cursor, "stopped": True})
        raise stop

    @property
    def late(self) -> bool:
        """Whether the slice's time is over."""
        return time.monotonic() >= self.deadline


def _name(pair: Pair) -> str:
    return f"query {pair[0]}, image {pair[1]}"
