"""Ranges of image ids that the workers of an embedding job claim."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import ExitStack
from enum import Enum, auto
from types import TracebackType
from typing import Any, Final

from django.db import connection, transaction

from core.jobs.models import Job
from core.jobs.services import job_advance
from core.locks import lock_key, transaction_lock, try_session_lock
from retrieval.embedding.models import EmbeddingModel, EmbeddingRange
from retrieval.embedding.pipeline import Item
from retrieval.images.files import ImageRef

# By key, so that memory and time do not grow with the corpus. Images that this job failed on are
# skipped; a later job tries them again.
_UNEMBEDDED: Final = """
SELECT i.id, i.sha256, i.root_id, i.file_name
FROM retrieval_image i
WHERE i.id >= %(first)s AND i.id <= %(last)s
  AND NOT EXISTS (SELECT FROM retrieval_embedding e
                  WHERE e.model_id = %(model)s AND e.image_id = i.id
                    AND e.image_id >= %(first)s AND e.image_id <= %(last)s)
  AND NOT EXISTS (SELECT FROM core_jobitemerror x
                  WHERE x.job_id = %(job)s AND x.image_id = i.id)
  AND NOT EXISTS (SELECT FROM retrieval_imagetakedown t WHERE t.image_id = i.id)
ORDER BY i.id
LIMIT %(limit)s
"""
# Forces a merge join by the keys: with outdated statistics, of tables that may have grown a
# thousandfold, the planner would read all of one for each row of the other, or sort the corpus.
_BY_KEY: Final = ("nestloop", "hashjoin", "seqscan", "bitmapscan")
_HIGHEST: Final = 2**63 - 1

START: Final[dict[str, Any]] = {"last": -1, "found": False}
"""The cursor of a new job: `last` is the highest claimed image id, `found` whether this pass over
the corpus has found images to embed."""


class Remaining(Enum):
    """The remaining images, as known to a worker that got no more."""

    UNKNOWN = auto()
    ELSEWHERE = auto()  # other workers have the rest
    NOTHING = auto()


class Ranges:
    """The ranges of one started job that this connection holds; a context that releases them.

    Each method uses the database connection of the calling thread.
    """

    def __init__(self, *, job: Job, model: EmbeddingModel) -> None:
        self.left = Remaining.UNKNOWN
        self._job = job
        self._model = model
        self._waiting: deque[Item] = deque()
        self._held: dict[int, ExitStack] = {}
        self._unsettled: dict[int, int] = {}

    def __enter__(self) -> Ranges:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release all ranges, which other workers may take over at once."""
        while self._held:
            self._held.popitem()[1].close()

    @property
    def held(self) -> list[int]:
        """The keys of the ranges that have images left."""
        return list(self._unsettled)

    def take(self, count: int, *, range_size: int) -> list[Item]:
        """Return up to `count` images without embeddings, by id.

        They come from abandoned ranges, then from new ones of `range_size` images. An empty result
        sets `left`. Raises JobCanceled if the job has ended.
        """
        taken: list[Item] = []
        while len(taken) < count:
            if not self._waiting and not self._claim(range_size):
                break
            taken.append(self._waiting.popleft())
        return taken

    def settle(self, items: Sequence[Item]) -> None:
        """Record that these images are done, in the transaction that stores them."""
        for item in items:
            self._unsettled[item.range_id] -= 1
        done = [range_id for range_id, count in self._unsettled.items() if not count]
        for range_id in done:
            del self._unsettled[range_id]
        if done:
            EmbeddingRange.objects.filter(pk__in=done).delete()

    def _claim(self, size: int) -> bool:
        self.left = Remaining.UNKNOWN
        with transaction.atomic():
            transaction_lock(lock_key("embedding_ranges", self._job.pk))
            if self._take_over() or self._claim_new(size):
                return True
            if self._unsettled or self._others():
                self.left = Remaining.ELSEWHERE
                return False
            if not self._job.cursor["found"]:
                self.left = Remaining.NOTHING
                return False
            # Images before the cursor may be new or changed: repeat until a pass finds nothing.
            job_advance(job=self._job, cursor=START)
            if self._claim_new(size):
                return True
            self.left = Remaining.NOTHING
            return False

    def _take_over(self) -> bool:
        """Claim a range that its worker abandoned, at the end of a slice or by dying."""
        for range in self._others():
            held = ExitStack()
            free = held.enter_context(try_session_lock(lock_key("embedding_range", range.pk)))
            # Its worker may have finished it between the two queries.
            if not free or not EmbeddingRange.objects.filter(pk=range.pk).exists():
                held.close()
                continue
            rows = self._unembedded(range.first_image, range.last_image, None)
            if rows:
                self._hold(range.pk, held, rows)
                return True
            range.delete()
            held.close()
        return False

    def _claim_new(self, size: int) -> bool:
        """Claim the images after the cursor, and move it."""
        self._job.cursor = Job.objects.values_list("cursor", flat=True).get(pk=self._job.pk)
        rows = self._unembedded(self._job.cursor["last"] + 1, _HIGHEST, size)
        if not rows:
            return False
        range = EmbeddingRange.objects.create(
            job=self._job, first_image=rows[0][0], last_image=rows[-1][0]
        )
        held = ExitStack()
        held.enter_context(try_session_lock(lock_key("embedding_range", range.pk)))
        self._hold(range.pk, held, rows)
        job_advance(job=self._job, cursor={"last": rows[-1][0], "found": True})
        return True

    def _others(self) -> list[EmbeddingRange]:
        ranges = EmbeddingRange.objects.filter(job=self._job).exclude(pk__in=self._held)
        return list(ranges.order_by("pk"))

    def _hold(self, range_id: int, held: ExitStack, rows: list[tuple[Any, ...]]) -> None:
        self._held[range_id] = held
        self._unsettled[range_id] = len(rows)
        self._waiting.extend(
            Item(image_id, ImageRef(sha256, root_id, file_name), range_id)
            for image_id, sha256, root_id, file_name in rows
        )

    def _unembedded(self, first: int, last: int, limit: int | None) -> list[tuple[Any, ...]]:
        values = {
            "first": first,
            "last": last,
            "model": self._model.pk,
            "job": self._job.pk,
            "limit": limit,
        }
        with connection.cursor() as cursor:
            cursor.execute("; ".join(f"SET LOCAL enable_{kind} = off" for kind in _BY_KEY))
            cursor.execute(_UNEMBEDDED, values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            cursor.execute("; ".join(f"RESET enable_{kind}" for kind in _BY_KEY))
            return rows
