"""Holding shards: a process claims some, packs and maps them, and then answers their messages.

A shard belongs to the process that holds its session advisory lock, which ends with the process.
Nobody takes more shards than the least number at which all are taken if nobody takes more; who has
more gives some back, and answers for them until the next holder does. Each takes first of the model
of which it has fewest, so that all work for a ranking.
"""

from __future__ import annotations

import logging
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import numpy as np
from celery import shared_task
from django.db import Error, ProgrammingError, connection, transaction
from django.db.models import F
from django.db.models.functions import Now

from core.ids import LARGEST_ID
from core.locks import lock_key, lock_owners, session_lock_try, session_unlock
from core.sql import repeatable_read
from extras.sharding.models import RankingShard
from extras.sharding.ranking import (
    CHECK,
    RANK,
    Answer,
    array_of,
    embeddings_in,
    places_of,
    queue_of,
    shards_as_cut,
    span_of,
)
from extras.sharding.settings import shard_settings
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.building import MatrixRefused, pack
from retrieval.ranking.corpus_filter import CorpusFilter
from retrieval.ranking.current import current_matrix, lag_of
from retrieval.ranking.files import MatrixUnusable, folder_of, open_matrix
from retrieval.ranking.matrices import should_repack, state_folder_id
from retrieval.ranking.reading import Span, partition_name
from retrieval.ranking.scan import ImpreciseProduct
from retrieval.ranking.selectors import rank_by_matrix

logger = logging.getLogger(__name__)

TURN_SECONDS: Final = 1.0
# Between two looks whether a shard lacks newer embeddings.
_LAG_SECONDS: Final = 15.0
MOST: Final = 2**31

# The shards whose files a message has found wrong.
_suspect_shards: set[int] = set()

# By a look at the key for each shard, however many images it has.
_CUTS: Final = """
WITH RECURSIVE cut AS (
    (SELECT image_id / {size} AS number FROM {table} ORDER BY image_id LIMIT 1)
    UNION ALL
    SELECT (SELECT image_id / {size} FROM {table}
            WHERE image_id >= (cut.number + 1) * {size} ORDER BY image_id LIMIT 1)
    FROM cut WHERE cut.number < {last}
)
SELECT number FROM cut WHERE number IS NOT NULL
"""


@shared_task(
    name=RANK, ignore_result=False, acks_late=False, throws=(MatrixUnusable, ImpreciseProduct)
)
def rank_shard(
    *,
    shard: int,
    model: int,
    images: Sequence[int],
    moment: str,
    queries: str,
    limit: int,
    species_ids: Sequence[int],
    created_before: datetime | None,
    corpus_at: datetime | None,
    behind: Sequence[Any] | None,
) -> dict[str, Any]:
    """Rank a shard's images in the snapshot `moment`: the message of an `Answer`."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            try:
                cursor.execute("SET TRANSACTION SNAPSHOT %s", [moment])
            except ProgrammingError as error:
                raise MatrixUnusable("who asked no longer waits") from error
        known = EmbeddingModel.objects.get(pk=model)
        halves = array_of(queries, np.float16).reshape(-1, known.dimension)
        corpus_filter = CorpusFilter(species_ids, created_before, corpus_at, Span(*images))
        place = None if behind is None else (behind[0], behind[1])
        try:
            lists, current = rank_by_matrix(known, halves, limit, corpus_filter, place)
        except MatrixUnusable:
            _suspect_shards.add(shard)
            raise
    return Answer(current.state.embedded, current.state.fingerprint, places_of(lists)).message()


@shared_task(name=CHECK, acks_late=False)
def check_shard(*, shard: int, images: Sequence[int]) -> None:
    """Have a shard's rows counted in the database."""
    _suspect_shards.add(shard)


def share(shards: int, rooms: Sequence[int]) -> int:
    """The least number of shards at which holders with such room take all, each no more than it."""
    level = 0
    while level < shards and sum(min(room, level) for room in rooms) < shards:
        level += 1
    return level


def shards_open() -> list[RankingShard]:
    """Return the shards of all models, after making those of images that are in none and removing
    those of another size.
    """
    size = shard_settings.RANKING_SHARD_IMAGES
    for model in embedded_models():
        with connection.cursor() as cursor:
            cursor.execute(
                _CUTS.format(table=partition_name(model), size=size, last=LARGEST_ID // size - 1)
            )
            firsts = {number * size for (number,) in cursor.fetchall()}
        known = set(shards_as_cut().filter(model=model).values_list("first_image", flat=True))
        RankingShard.objects.bulk_create(
            [
                RankingShard(model=model, first_image=first, last_image=first + size - 1)
                for first in sorted(firsts - known)
            ],
            ignore_conflicts=True,
        )
    # Not those that aren't known here: another process may just have made them.
    RankingShard.objects.exclude(last_image=F("first_image") + size - 1).delete()
    return list(shards_as_cut())


def _differs(shard: RankingShard) -> bool:
    """Whether a shard's files hold other embeddings than the database, though they look right."""
    images = span_of(shard)
    try:
        with repeatable_read():
            state = current_matrix(shard.model, corpus_filter=CorpusFilter(images=images)).state
            return (state.embedded, state.fingerprint) != embeddings_in(shard.model, images)
    except MatrixUnusable:
        # It is packed anew where that is needed.
        return False


class Holder:
    """The shards of a process of this name, at most `most`; `consume` and `leave` are told the
    queues.

    All methods use the database connection of the thread that calls `turn`, which holds the locks.
    """

    def __init__(
        self,
        name: str,
        most: int,
        *,
        consume: Callable[[str], object],
        leave: Callable[[str], object],
    ) -> None:
        self.name, self._most = name, most
        self._consume, self._leave = consume, leave
        self._ranked: dict[int, RankingShard] = {}
        self._looked: dict[int, float] = {}
        self._stop = threading.Event()

    def run(self, stop: threading.Event) -> None:
        """Take turns until `stop` is set, and then release all."""
        self._stop = stop
        while not stop.is_set():
            busy = False
            try:
                busy = self.turn()
            except Error as error:
                logger.warning("Shards are held on when the database answers: %s", error)
                connection.close()
            except Exception:
                logger.exception("A turn of holding shards failed; the next one tries again")
            stop.wait(0 if busy else TURN_SECONDS)
        # It frees all locks.
        connection.close()

    def turn(self) -> bool:
        """Give back and claim shards, and pack the first that needs it; returns whether one did."""
        shards = {shard.pk: shard for shard in shards_open()}
        owners, here = lock_owners("shard"), self._backend()
        room = self._room(len(shards), here)
        mine = [pk for pk in shards if here in owners.get(pk, [])]
        for pk in [pk for pk in owners if pk not in shards and here in owners[pk]]:
            session_unlock(lock_key("shard", pk))
        of_model = Counter(shards[pk].model_id for pk in mine)

        def number(pk: int) -> int:
            return of_model[shards[pk].model_id]

        while len(mine) > room:
            pk = max(mine, key=lambda pk: (pk not in self._ranked, number(pk), pk))
            session_unlock(lock_key("shard", pk))
            mine.remove(pk)
            of_model[shards[pk].model_id] -= 1
        free = {pk for pk in shards if pk not in owners}
        while free and len(mine) < room:
            pk = min(free, key=lambda pk: (not self._folder(shards[pk]).exists(), number(pk), pk))
            free.remove(pk)
            if session_lock_try(lock_key("shard", pk)):
                mine.append(pk)
                of_model[shards[pk].model_id] += 1
        for pk in [pk for pk in self._ranked if pk not in mine]:
            if pk not in shards or shards[pk].worker != self.name:
                self._leave(queue_of(self._ranked.pop(pk)))
        self._remove_moved([shards[pk] for pk in owners if pk in shards and pk not in mine])
        return any(self._keep(shards[pk]) for pk in mine)

    def _room(self, shards: int, here: int) -> int:
        """How many shards to hold, after saying to the other holders how many we could."""
        holders = lock_owners("shard_holders")
        if not any(here in pids for pids in holders.values()):
            session_lock_try(lock_key("shard_holders", self._most), shared=True)
            holders = lock_owners("shard_holders")
        rooms = [most for most, pids in holders.items() for _ in pids]
        return min(self._most, share(shards, rooms))

    def _keep(self, shard: RankingShard) -> bool:
        """Pack a held shard if it needs it, and rank it then; returns whether it was packed.

        Never fails the others' turn.
        """
        images, ranked = span_of(shard), shard.pk in self._ranked
        suspect = shard.pk in _suspect_shards
        if ranked and not (shard.rebuild_requests or suspect or self._should_repack(shard)):
            return False
        try:
            rebuild = shard.rebuild_requests > 0 or (suspect and _differs(shard))
            read = pack(
                shard.model,
                images=images,
                rebuild=rebuild,
                go_on=lambda rows, total: not self._stop.is_set(),
            )
            if read is None:
                return False
            if shard.rebuild_requests:
                RankingShard.objects.filter(
                    pk=shard.pk, rebuild_requests=shard.rebuild_requests
                ).update(rebuild_requests=0)
            _suspect_shards.discard(shard.pk)
            rows = open_matrix(shard.model, images).manifest.live
        except MatrixRefused as error:
            logger.warning("%s Others take that shard.", error)
            session_unlock(lock_key("shard_holders", self._most), shared=True)
            session_unlock(lock_key("shard", shard.pk))
            self._most = len(self._ranked)
            return False
        except (MatrixUnusable, OSError) as error:
            logger.warning("A shard, %s of %s, isn't packed: %s", shard, shard.model, error)
            return False
        changes: dict[str, Any] = {"rows": rows}
        if not ranked or shard.worker != self.name:
            changes |= {"worker": self.name, "place": state_folder_id(), "since": Now()}
        RankingShard.objects.filter(pk=shard.pk).update(**changes)
        if not ranked:
            self._ranked[shard.pk] = shard
            self._consume(queue_of(shard))
        return True

    def _should_repack(self, shard: RankingShard) -> bool:
        now = time.monotonic()
        if now < self._looked.get(shard.pk, 0.0):
            return False
        self._looked[shard.pk] = now + _LAG_SECONDS
        try:
            return should_repack(*lag_of(shard.model, span_of(shard)))
        except MatrixUnusable:
            return True

    def _remove_moved(self, shards: Sequence[RankingShard]) -> None:
        """Remove the files of shards that a process with another state folder ranks."""
        for shard in shards:
            folder = self._folder(shard)
            if shard.worker and shard.place != state_folder_id() and shard.pk not in self._ranked:
                with suppress(FileNotFoundError):
                    if folder.exists():
                        shutil.rmtree(folder)

    @staticmethod
    def _folder(shard: RankingShard) -> Any:
        return folder_of(shard.model, span_of(shard))

    @staticmethod
    def _backend() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            return int(cursor.fetchone()[0])
