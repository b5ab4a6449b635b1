"""Several questions at once, each in a thread of its own that knows no database."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from types import TracebackType

from benchmark.reranking.multimodal.answers import Question
from benchmark.reranking.multimodal.replies import Reply


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one question: a reply, or why there is none."""

    question: Question
    begun: float
    """When it was sent, by the caller's clock."""
    reply: Reply | None
    error: Exception | None


class Asker:
    """Up to `at_once` questions under way; leaving the block waits for them."""

    def __init__(self, ask: Callable[[Question], Reply], *, at_once: int) -> None:
        self._ask = ask
        self._at_once = at_once
        self._pool = ThreadPoolExecutor(max_workers=at_once, thread_name_prefix="ask")
        self._running: dict[Future[Reply], tuple[Question, float]] = {}

    def __enter__(self) -> Asker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._pool.shutdown(wait=True)

    @property
    def under_way(self) -> int:
        """How many questions have no outcome yet."""
        return len(self._running)

    @property
    def free(self) -> bool:
        """Whether another question may begin."""
        return self.under_way < self._at_once

    def begin(self, question: Question, now: float) -> None:
        """Send a question."""
        self._running[self._pool.submit(self._ask, question)] = (question, now)

    def collect(self, timeout: float) -> list[Outcome]:
        """What has come, after at most `timeout` seconds; waits for the first."""
        done, _ = wait(self._running, timeout=timeout, return_when=FIRST_COMPLETED)
        outcomes = []
        for future in done:
            question, begun = self._running.pop(future)
            error = future.exception()
            if error is not None and not isinstance(error, Exception):
                raise error
            reply = None if error is not None else future.result()
            outcomes.append(Outcome(question, begun, reply, error))
        return outcomes
