"""Judgments: stored before acknowledged, counted once, never overwritten without a trace."""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import connection, transaction
from django.utils import timezone

from labeling.access import judging_problem
from labeling.models import (
    Candidate,
    Judgment,
    JudgmentEvent,
    JudgmentSource,
    Query,
    Relevance,
)
from labeling.services.lists import query_lock
from retrieval.models import Image

LARGEST_BATCH = 500
MOST_SECONDS = 3600.0
ROWS_AT_A_TIME = 1000

# First half of an advisory lock whose second half is the annotator; retrieval's locks are of the
# one-number kind.
ANNOTATOR_LOCK = 0x6A75


class JudgmentStatus(StrEnum):
    STORED = "stored"
    REPEATED = "repeated"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class JudgmentInput:
    """One act of judging as a client sends it."""

    image_id: int
    relevance: str
    client_id: uuid.UUID
    """Made by the client once for the act and sent with every repeat of it."""
    seconds: float = 0.0
    """Active time spent, from 0 to 3600."""
    source: str = JudgmentSource.LIST


@dataclass(frozen=True, slots=True)
class JudgmentOutcome:
    """What became of one act of judging."""

    client_id: uuid.UUID
    image_id: int
    status: JudgmentStatus
    detail: str = ""
    """Why it was refused."""
    relevance: str | None = None
    """What this act says in the database; None if it was refused."""
    rank: int | None = None
    """The rank that it was stored with."""


@dataclass
class JudgmentWriter:
    """Collects the judgments of one annotator for one query, then stores them with few statements.

    The caller holds the query's lock and the annotator's.
    """

    query: Query
    annotator: Any
    standing: dict[int, Judgment]
    """The judgments that there are, by image."""
    ranks: dict[int, int]
    """Ranks in the current list, by image."""
    now: datetime = field(default_factory=timezone.now)
    created: dict[int, Judgment] = field(default_factory=dict)
    changed: dict[int, Judgment] = field(default_factory=dict)
    events: list[JudgmentEvent] = field(default_factory=list)

    @classmethod
    def load(cls, *, query: Query, annotator: Any, image_ids: Sequence[int]) -> JudgmentWriter:
        """Read what is there for these images."""
        current = query.current_list
        ranks = {}
        if current is not None and current.ready:
            candidates = Candidate.objects.filter(list=current, image_id__in=image_ids)
            ranks = dict(candidates.values_list("image_id", "rank"))
        standing = Judgment.objects.filter(query=query, annotator=annotator, image_id__in=image_ids)
        return cls(query, annotator, {one.image_id: one for one in standing}, ranks)

    def add(
        self,
        *,
        image_id: int,
        relevance: str,
        client_id: uuid.UUID,
        seconds: float,
        source: str,
    ) -> JudgmentEvent:
        """Put one act of judging on top of what was said so far."""
        rank = self.ranks.get(image_id)
        where = {"candidate_list_id": self.query.current_list_id if rank else None, "rank": rank}
        judgment = self.standing.get(image_id)
        previous = judgment.relevance if judgment else ""
        if judgment is None:
            judgment = Judgment(query=self.query, image_id=image_id, annotator=self.annotator)
            self.standing[image_id] = self.created[image_id] = judgment
        elif image_id not in self.created:
            self.changed[image_id] = judgment
        judgment.relevance = relevance
        judgment.source = source
        judgment.candidate_list_id = where["candidate_list_id"]
        judgment.rank = rank
        judgment.seconds += seconds
        judgment.updated_at = self.now
        event = JudgmentEvent(
            judgment=judgment,
            annotator=self.annotator,
            client_id=client_id,
            previous=previous,
            relevance=relevance,
            source=source,
            seconds=seconds,
            **where,
        )
        self.events.append(event)
        return event

    def store(self) -> None:
        """Write everything collected."""
        Judgment.objects.bulk_create(self.created.values(), batch_size=ROWS_AT_A_TIME)
        Judgment.objects.bulk_update(
            self.changed.values(),
            ["relevance", "source", "candidate_list", "rank", "seconds", "updated_at"],
            batch_size=ROWS_AT_A_TIME,
        )
        for event in self.events:
            event.judgment_id = event.judgment.pk
        JudgmentEvent.objects.bulk_create(self.events, batch_size=ROWS_AT_A_TIME)


@transaction.atomic
def judgments_record(
    *, query: Query, annotator: Any, items: Sequence[JudgmentInput]
) -> list[JudgmentOutcome]:
    """Store what an annotator judged, and answer for each item in the order given.

    An item whose client id was stored before is answered with what was stored then and changes
    nothing, also when a later judgment says something else or the query was closed meanwhile; the
    same client id with another image, relevance, source or query is refused. A new item is refused
    unless the query may be judged by this person now and its image is in the current list (source
    "list") or in the corpus (source "search"). Raises ValueError for more than LARGEST_BATCH items
    and QueryGone.

    Locks: first the query, then the annotator, each held until the transaction ends. The same
    client id in two requests at once is so stored by the one and found by the other, and no two
    batches wait for each other.
    """
    if len(items) > LARGEST_BATCH:
        raise ValueError(f"{len(items)} judgments at once; at most {LARGEST_BATCH} are taken.")
    query = query_lock(query)
    annotator_lock(annotator)
    known = {
        event.client_id: event
        for event in JudgmentEvent.objects.filter(
            annotator=annotator, client_id__in=[item.client_id for item in items]
        ).select_related("judgment")
    }
    writer = JudgmentWriter.load(
        query=query, annotator=annotator, image_ids=[item.image_id for item in items]
    )
    closed = judging_problem(annotator, query)
    outside = _in_corpus(items)
    outcomes = []
    for item in items:
        event = known.get(item.client_id)
        if event is not None:
            outcomes.append(_repeat(query, item, event))
            continue
        problem = _problem(item) or closed or _image_problem(item, writer, outside)
        if problem:
            outcomes.append(_refusal(item, problem))
            continue
        event = writer.add(
            image_id=item.image_id,
            relevance=item.relevance,
            client_id=item.client_id,
            seconds=item.seconds,
            source=item.source,
        )
        known[item.client_id] = event
        outcomes.append(_outcome(item, event, JudgmentStatus.STORED))
    writer.store()
    return outcomes


def annotator_lock(annotator: Any) -> None:
    """Wait until no other transaction writes judgments of this annotator, and keep others out until
    this one ends.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [ANNOTATOR_LOCK, annotator.pk])


def _in_corpus(items: Iterable[JudgmentInput]) -> set[int]:
    """Those images of a search that exist."""
    wanted = [item.image_id for item in items if item.source == JudgmentSource.SEARCH]
    if not wanted:
        return set()
    return set(Image.objects.filter(pk__in=wanted).values_list("pk", flat=True))


def _problem(item: JudgmentInput) -> str:
    if item.relevance not in Relevance.values:
        return f"relevance: {item.relevance!r} is none of {', '.join(Relevance.values)}."
    if item.source not in (JudgmentSource.LIST, JudgmentSource.SEARCH):
        return f"source: {item.source!r} is neither list nor search."
    if not (math.isfinite(item.seconds) and 0 <= item.seconds <= MOST_SECONDS):
        return f"seconds: a number from 0 to {MOST_SECONDS:.0f} is needed."
    return ""


def _image_problem(item: JudgmentInput, writer: JudgmentWriter, in_corpus: set[int]) -> str:
    if item.source == JudgmentSource.SEARCH:
        return "" if item.image_id in in_corpus else f"image: there is no image {item.image_id}."
    if item.image_id in writer.ranks:
        return ""
    current = writer.query.current_list
    if current is None or not current.ready:
        return "The candidate list is being made anew; judge again when it is there."
    return f"image: image {item.image_id} is not in the query's candidate list."


def _repeat(query: Query, item: JudgmentInput, event: JudgmentEvent) -> JudgmentOutcome:
    """Answer for a client id that is stored already."""
    judgment = event.judgment
    stored = (judgment.query_id, judgment.image_id, event.relevance, event.source)
    if stored != (query.pk, item.image_id, item.relevance, item.source):
        return _refusal(
            item, "client_id: it was used before for another judgment; make a new one for each."
        )
    return _outcome(item, event, JudgmentStatus.REPEATED)


def _outcome(item: JudgmentInput, event: JudgmentEvent, status: JudgmentStatus) -> JudgmentOutcome:
    return JudgmentOutcome(
        client_id=item.client_id,
        image_id=item.image_id,
        status=status,
        relevance=event.relevance,
        rank=event.rank,
    )


def _refusal(item: JudgmentInput, detail: str) -> JudgmentOutcome:
    return JudgmentOutcome(
        client_id=item.client_id,
        image_id=item.image_id,
        status=JudgmentStatus.REFUSED,
        detail=detail,
    )
