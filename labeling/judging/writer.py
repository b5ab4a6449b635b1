"""Reading and storing the judgments of one annotator for one query in batches."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import EllipsisType
from typing import Any

from django.utils import timezone

from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.judging.models import AbstractJudgment, Judgment, JudgmentEvent
from labeling.judging.sources import BLIND, OUTSIDE_LIST, JudgmentSource
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal

ROWS_AT_A_TIME = 1000
LONGEST_WAIT = timedelta(days=30)


def lock_annotator(annotator: Any) -> None:
    """Hold the lock on writing this annotator's judgments until the transaction ends."""
    transaction_lock(lock_key("annotator", annotator.pk))


@dataclass(frozen=True, slots=True)
class JudgmentInput:
    """One judgment, or the removal of one, as a client sends it."""

    image_id: int
    relevance: str | None
    """None takes the judgment back."""
    client_id: uuid.UUID
    """Made by the client once for this judgment and sent with every repeat."""
    seconds: float = 0.0
    """Active time spent, from 0 to 3600."""
    source: str = JudgmentSource.LIST
    expected: str | EllipsisType | None = ...
    """The current judgment as the client knows it, None for none; an ellipsis skips the check."""
    age: float = 0.0
    """How many seconds ago the person judged."""
    revision_id: int | None = None
    """Of the revision in whose queue the image was met; None for none."""
    place: int | None = None
    """The place in that queue, from 1."""
    grade: int | None = None
    """From 0 to 3, of a query that asks for grades; its relevance must be what the query makes of
    it."""
    reason: str = ""
    """Why it has this grade."""


@dataclass(slots=True)
class ImageFacts:
    """What a new judgment of an image depends on."""

    rank: int | None
    """In the query's current list; None too while that isn't ready."""
    withdrawn: bool
    judgment: Judgment
    """The annotator's, with what was collected; without a relevance where there is none."""
    stored: bool = False
    """Whether the database has a judgment."""

    @property
    def current(self) -> str:
        """The annotator's current relevance; empty for none."""
        return self.judgment.relevance


# An image without a row isn't in the corpus.
_FACTS = f"""
SELECT image.id, candidate.rank, withdrawal.id IS NOT NULL,
       judgment.relevance, judgment.source, judgment.seconds, judgment.revision_id, judgment.place
  FROM {Image._meta.db_table} image
  LEFT JOIN {Candidate._meta.db_table} candidate
       ON candidate.list_id = %(list)s AND candidate.image_id = image.id
  LEFT JOIN {ImageWithdrawal._meta.db_table} withdrawal
       ON withdrawal.image_id = image.id AND withdrawal.restored_at IS NULL
  LEFT JOIN {Judgment._meta.db_table} judgment
       ON judgment.query_id = %(query)s AND judgment.annotator_id = %(annotator)s
          AND judgment.image_id = image.id
 WHERE image.id = ANY(%(images)s::bigint[])
"""


@dataclass
class JudgmentWriter:
    """Collects the judgments of one annotator for one query, then stores them.

    The caller holds the query's lock shared, and the annotator's lock.
    """

    query: Query
    annotator: Any
    images: dict[int, ImageFacts]
    """The requested images that are in the corpus, with the collected judgments applied."""
    now: datetime = field(default_factory=timezone.now)
    events: list[JudgmentEvent] = field(default_factory=list)

    @classmethod
    def load(cls, *, query: Query, annotator: Any, image_ids: Iterable[int]) -> JudgmentWriter:
        """Read the facts of these images, in one statement."""
        values = {
            "list": query.current_list_id,
            "query": query.pk,
            "annotator": annotator.pk,
            "images": list(set(image_ids)),
        }
        images = {}
        for image_id, rank, withdrawn, relevance, *rest in fetch_all(_FACTS, values):
            judgment = Judgment(
                query=query, annotator=annotator, image_id=image_id, relevance=relevance or ""
            )
            if relevance is not None:
                judgment.source, judgment.seconds, judgment.revision_id, judgment.place = rest
            images[image_id] = ImageFacts(rank, withdrawn, judgment, stored=relevance is not None)
        return cls(query, annotator, images)

    def acted_at(self, age: float) -> datetime:
        """When the person judged: `age` seconds ago, clamped to 0..LONGEST_WAIT."""
        return self.now - timedelta(seconds=min(max(age, 0.0), LONGEST_WAIT.total_seconds()))

    def add(self, item: JudgmentInput) -> JudgmentEvent:
        """Collect one judgment; without a relevance it takes back the current one."""
        image = self.images[item.image_id]
        judgment = image.judgment
        judgment.rank = image.rank
        judgment.candidate_list_id = self.query.current_list_id if image.rank else None
        event = JudgmentEvent(
            query=self.query,
            image_id=item.image_id,
            annotator=self.annotator,
            client_id=item.client_id,
            previous=judgment.relevance,
            relevance=item.relevance or "",
            grade=item.grade,
            reason=item.reason,
            source=item.source,
            candidate_list_id=judgment.candidate_list_id,
            rank=image.rank,
            revision_id=item.revision_id,
            place=item.place,
            seconds=item.seconds,
            acted_at=self.acted_at(item.age),
        )
        # A change keeps where the image was met: outside the list that it was judged in the list,
        # and in the list that it was met in a queue. What was met blindly stays so, and a
        # correction replaces no other source.
        outside = judgment.source not in OUTSIDE_LIST and item.source in OUTSIDE_LIST
        from_queue = judgment.revision_id is not None and item.revision_id is None
        blind = not BLIND.isdisjoint((judgment.source, item.source))
        corrects = item.source == JudgmentSource.CORRECTION
        if not (judgment.relevance and (outside or from_queue or blind or corrects)):
            judgment.source = item.source
            judgment.revision_id, judgment.place = item.revision_id, item.place
        judgment.relevance = event.relevance
        judgment.grade, judgment.reason = item.grade, item.reason
        judgment.seconds = judgment.seconds + item.seconds if judgment.relevance else 0.0
        self.events.append(event)
        return event

    def store(self) -> None:
        """Write everything collected; at most three statements for a thousand judgments."""
        changed = [self.images[pk] for pk in dict.fromkeys(event.image_id for event in self.events)]
        removed = [
            image.judgment.image_id for image in changed if image.stored and not image.current
        ]
        if removed:
            Judgment.objects.filter(
                query=self.query, annotator=self.annotator, image__in=removed
            ).delete()
        Judgment.objects.bulk_create(
            [image.judgment for image in changed if image.current],
            batch_size=ROWS_AT_A_TIME,
            update_conflicts=True,
            unique_fields=["query", "image", "annotator"],
            update_fields=[
                *(column.name for column in AbstractJudgment._meta.local_fields),
                "updated_at",
            ],
        )
        JudgmentEvent.objects.bulk_create(self.events, batch_size=ROWS_AT_A_TIME)
