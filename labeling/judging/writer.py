"""Judgments and their history: what is there is read once, what is new is stored together."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from core.locks import lock_key, transaction_lock
from labeling.candidates.models import Candidate
from labeling.judging.models import Judgment, JudgmentEvent, JudgmentSource
from labeling.queries.models import Query
from retrieval.corpus.models import Image, ImageWithdrawal

ROWS_AT_A_TIME = 1000
LONGEST_WAIT = timedelta(days=30)
#: Sources that don't move the streak's position.
ASIDE = frozenset({JudgmentSource.SEARCH, JudgmentSource.SIMILAR})


def lock_annotator(annotator: Any) -> None:
    """Wait until no other transaction writes judgments of this annotator, and keep others out until
    this one ends.
    """
    transaction_lock(lock_key("annotator", annotator.pk))


@dataclass(slots=True)
class ImageFacts:
    """One image as a judgment of it meets it."""

    rank: int | None
    """In the query's current list; None too while that isn't ready."""
    withdrawn: bool
    standing: str
    """The annotator's own relevance; empty for none."""
    seconds: float = 0.0
    """Active time that the standing judgment took."""
    source: str = ""
    stored: bool = False
    """Whether the database has a judgment that `standing` may have replaced."""


# The images' own table comes first: an image that isn't in the answer isn't in the corpus.
_FACTS = f"""
SELECT image.id, candidate.rank, withdrawal.id IS NOT NULL,
       judgment.relevance, judgment.seconds, judgment.source
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

    The caller holds a share of the query's lock, and the annotator's lock.
    """

    query: Query
    annotator: Any
    images: dict[int, ImageFacts]
    """Those images asked for that the corpus has, as they are after what was collected."""
    now: datetime = field(default_factory=timezone.now)
    events: list[JudgmentEvent] = field(default_factory=list)

    @classmethod
    def load(cls, *, query: Query, annotator: Any, image_ids: Iterable[int]) -> JudgmentWriter:
        """Read what is there for these images, in one statement."""
        current = query.current_list
        ready = current is not None and current.ready
        values = {
            "list": current.pk if current is not None and ready else None,
            "query": query.pk,
            "annotator": annotator.pk,
            "images": list(set(image_ids)),
        }
        with connection.cursor() as cursor:
            cursor.execute(_FACTS, values)
            rows = cursor.fetchall()
        images = {
            image_id: ImageFacts(
                rank=rank,
                withdrawn=withdrawn,
                standing=relevance or "",
                seconds=seconds or 0.0,
                source=source or "",
                stored=relevance is not None,
            )
            for image_id, rank, withdrawn, relevance, seconds, source in rows
        }
        return cls(query, annotator, images)

    def acted_at(self, age: float) -> datetime:
        """When the person acted, `age` seconds ago; it counts from none to LONGEST_WAIT."""
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
    ) -> JudgmentEvent:
        """Put one act of judging on top of what was said so far; an empty relevance takes it back.

        `age` is how many seconds ago the person acted.
        """
        facts = self.images[image_id]
        event = JudgmentEvent(
            query=self.query,
            image_id=image_id,
            annotator=self.annotator,
            client_id=client_id,
            previous=facts.standing,
            relevance=relevance,
            source=source,
            candidate_list_id=self.query.current_list_id if facts.rank else None,
            rank=facts.rank,
            seconds=seconds,
            acted_at=self.acted_at(age),
        )
        if not (facts.standing and facts.source not in ASIDE and source in ASIDE):
            # Else the list's order reached the image before: a correction keeps its place there.
            facts.source = source
        facts.standing = relevance
        facts.seconds = facts.seconds + seconds if relevance else 0.0
        self.events.append(event)
        return event

    def store(self) -> None:
        """Write everything collected; at most three statements for a thousand judgments."""
        touched = {event.image_id: self.images[event.image_id] for event in self.events}
        gone = [pk for pk, facts in touched.items() if facts.stored and not facts.standing]
        if gone:
            Judgment.objects.filter(
                query=self.query, annotator=self.annotator, image__in=gone
            ).delete()
        Judgment.objects.bulk_create(
            [
                Judgment(
                    query=self.query,
                    image_id=image_id,
                    annotator=self.annotator,
                    relevance=facts.standing,
                    source=facts.source,
                    candidate_list_id=self.query.current_list_id if facts.rank else None,
                    rank=facts.rank,
                    seconds=facts.seconds,
                )
                for image_id, facts in touched.items()
                if facts.standing
            ],
            batch_size=ROWS_AT_A_TIME,
            update_conflicts=True,
            unique_fields=["query", "image", "annotator"],
            update_fields=[
                "relevance",
                "source",
                "candidate_list",
                "rank",
                "seconds",
                "updated_at",
            ],
        )
        JudgmentEvent.objects.bulk_create(self.events, batch_size=ROWS_AT_A_TIME)
