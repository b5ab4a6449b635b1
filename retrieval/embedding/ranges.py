"""Which worker embeds which images: ranges of image ids, claimed by the workers of a job."""

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
# left alone; a later job tries them again.
_UNEMBEDDED: Final = """
SELECT i.id, i.sha256, i.root_id, i.file_name
FROM retrieval_image i
WHERE i.id >= %(first)s AND i.id <= %(last)s
  AND NOT EXISTS (SELECT FROM retrieval_embedding e
                  WHERE e.model_id = %(model)s AND e.image_id = i.id
                    AND e.image_id >= %(first)s AND e.image_id <= %(last)s)
  AND NOT EXISTS (SELECT FROM core_jobitemerror x
                  WHERE x.job_id = %(job)s AND x.image_id = i.id)
ORDER BY i.id
LIMIT %(limit)s
"""
# Image and embedding are met side by side by their keys, whatever the planner knows of tables that
# may have grown a thousandfold since it last looked: else it reads all of one for each row of the
# other, or sorts the corpus.
_BY_KEY: Final = ("nestloop", "hashjoin", "seqscan", "bitmapscan")
_HIGHEST: Final = 2**63 - 1

START: Final[dict[str, Any]] = {"last": -1, "found": False}
"""The cursor of a job that begins: ranges were claimed up to image id `last`; `found` tells whether
this pass through the corpus met anything to do."""


class Left(Enum):
    """What a worker that can't get another image knows of those that remain."""

    UNKNOWN = auto()
    ELSEWHERE = auto()  # other workers have the rest
    NOTHING = auto()


class Ranges:
    """The ranges of one job that this connection holds; a context that gives them back.

    Needs a job that has begun, with a cursor. Every method speaks to the database of the calling
    thread.
    """

    def __init__(self, *, job: Job, model: EmbeddingModel) -> None:
        self.left = Left.UNKNOWN
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
        """Give back what is held; another worker may take it over at once."""
        while self._held:
            self._held.popitem()[1].close()

    def take(self, count: int, *, range_size: int) -> list[Item]:
        """Return up to `count` images that nobody has embedded, in the order of their ids.

        They come from ranges that others have left, then from new ones of `range_size` images. An
        empty answer sets `left`. Raises JobCanceled if the job has ended.
        """
        taken: list[Item] = []
        while len(taken) < count:
            if not self._waiting and not self._claim(range_size):
                break
            taken.append(self._waiting.popleft())
        return taken

    def settle(self, items: Sequence[Item]) -> None:
        """Note that these images are done, in the transaction that stores them."""
        for item in items:
            self._unsettled[item.range_id] -= 1
        done = [range_id for range_id, count in self._unsettled.items() if not count]
        for range_id in done:
            del self._unsettled[range_id]
        if done:
            EmbeddingRange.objects.filter(pk__in=done).delete()

    def _claim(self, size: int) -> bool:
        self.left = Left.UNKNOWN
        with transaction.atomic():
            transaction_lock(lock_key("embedding_ranges", self._job.pk))
            if self._take_over() or self._claim_new(size):
                return True
            if self._unsettled or self._others():
                self.left = Left.ELSEWHERE
                return False
            if not self._job.cursor["found"]:
                self.left = Left.NOTHING
                return False
            # Images may have come or changed behind the cursor: go through the corpus again, until
            # a pass finds nothing.
            job_advance(job=self._job, cursor=START)
            if self._claim_new(size):
                return True
            self.left = Left.NOTHING
            return False

    def _take_over(self) -> bool:
        """Claim a range that its worker left, at the end of a slice or by dying."""
        for range in self._others():
            held = ExitStack()
            free = held.enter_context(try_session_lock(lock_key("embedding_range", range.pk)))
            # Its worker may have ended it between our two looks.
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
        """Claim the images behind the cursor, and move it."""
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
            found = cursor.fetchall()
            cursor.execute("; ".join(f"RESET enable_{kind}" for kind in _BY_KEY))
            return found
