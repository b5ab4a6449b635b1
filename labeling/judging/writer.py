"""Reading and storing the judgments of one annotator for one query in batches."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from core.locks import lock_key, transaction_lock
from core.sql import fetch_all
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, JudgmentEvent
from labeling.judging.sources import BLIND, OUTSIDE_LIST
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal

ROWS_AT_A_TIME = 1000
LONGEST_WAIT = timedelta(days=30)


def lock_annotator(annotator: Any) -> None:
    """Hold the lock on writing this annotator's judgments until the transaction ends."""
    transaction_lock(lock_key("annotator", annotator.pk))


@dataclass(slots=True)
class ImageFacts:
    """What a new judgment of an image depends on."""

    rank: int | None
    """In the query's current list; None too while that isn't ready."""
    withdrawn: bool
    current: str
    """The annotator's current relevance; empty for none."""
    seconds: float = 0.0
    """Active seconds of the current judgment, all changes together."""
    source: str = ""
    revision_id: int | None = None
    """Of the order that learns, in whose queue the current judgment was made."""
    place: int | None = None
    grade: int | None = None
    """Of the judgment that was collected last, as is `reason`."""
    reason: str = ""
    stored: bool = False
    """Whether the database has a judgment, which `current` may differ from."""


# An image without a row isn't in the corpus.
_FACTS = f"""
SELECT image.id, candidate.rank, withdrawal.id IS NOT NULL,
       judgment.relevance, judgment.seconds, judgment.source, judgment.revision_id, judgment.place
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
        images = {
            image_id: ImageFacts(
                rank=rank,
                withdrawn=withdrawn,
                current=relevance or "",
                seconds=seconds or 0.0,
                source=source or "",
                revision_id=revision_id,
                place=place,
                stored=relevance is not None,
            )
            for (
                image_id,
                rank,
                withdrawn,
                relevance,
                seconds,
                source,
                revision_id,
                place,
            ) in fetch_all(_FACTS, values)
        }
        return cls(query, annotator, images)

    def acted_at(self, age: float) -> datetime:
        """When the person judged: `age` seconds ago, clamped to 0..LONGEST_WAIT."""
        return self.now - timedelta(seconds=min(max(age, 0.0), LONGEST_WAIT.total_seconds()))

    def add(
        self,
        *,
        image_id: int,
        relevance: str,
        client_id: uuid.UUID,
        seconds: float,
        source: str,
        age: float = 0.0,
        revision_id: int | None = None,
        place: int | None = None,
        grade: int | None = None,
        reason: str = "",
    ) -> JudgmentEvent:
        """Collect one judgment of `age` seconds ago; an empty relevance takes back the current."""
        facts = self.images[image_id]
        event = JudgmentEvent(
            query=self.query,
            image_id=image_id,
            annotator=self.annotator,
            client_id=client_id,
            previous=facts.current,
            relevance=relevance,
            grade=grade,
            reason=reason,
            source=source,
            candidate_list_id=self.query.current_list_id if facts.rank else None,
            rank=facts.rank,
            revision_id=revision_id,
            place=place,
            seconds=seconds,
            acted_at=self.acted_at(age),
        )
        # A correction keeps where the image was met: outside the list that it was judged in the
        # list, and in the list that it was met in a queue. What was met blindly stays so.
        outside = facts.source not in OUTSIDE_LIST and source in OUTSIDE_LIST
        from_queue = facts.revision_id is not None and revision_id is None
        blind = not BLIND.isdisjoint((facts.source, source))
        if not (facts.current and (outside or from_queue or blind)):
            facts.source, facts.revision_id, facts.place = source, revision_id, place
        facts.current, facts.grade, facts.reason = relevance, grade, reason
        facts.seconds = facts.seconds + seconds if relevance else 0.0
        self.events.append(event)
        return event

    def store(self) -> None:
        """Write everything collected; at most three statements for a thousand judgments."""
        changed = {event.image_id: self.images[event.image_id] for event in self.events}
        removed = [pk for pk, facts in changed.items() if facts.stored and not facts.current]
        if removed:
            Judgment.objects.filter(
                query=self.query, annotator=self.annotator, image__in=removed
            ).delete()
        Judgment.objects.bulk_create(
            [
                Judgment(
                    query=self.query,
                    image_id=image_id,
                    annotator=self.annotator,
                    relevance=facts.current,
                    grade=facts.grade,
                    reason=facts.reason,
                    source=facts.source,
                    candidate_list_id=self.query.current_list_id if facts.rank else None,
                    rank=facts.rank,
                    revision_id=facts.revision_id,
                    place=facts.place,
                    seconds=facts.seconds,
                )
                for image_id, facts in changed.items()
                if facts.current
            ],
            batch_size=ROWS_AT_A_TIME,
            update_conflicts=True,
            unique_fields=["query", "image", "annotator"],
            update_fields=[
                "relevance",
                "grade",
                "reason",
                "source",
                "candidate_list",
                "rank",
                "revision",
                "place",
                "seconds",
                "updated_at",
            ],
        )
        JudgmentEvent.objects.bulk_create(self.events, batch_size=ROWS_AT_A_TIME)
