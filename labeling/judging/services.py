"""Recording judgments: stored before acknowledged, counted once, with their history kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.db import transaction
from django.db.models import Max, Q

from core.access import Role, at_least, role_of
from core.locks import lock_key, transaction_lock
from labeling.candidates.services import lock_query_shared
from labeling.judging.access import Act, part_of, why_not
from labeling.judging.blind import BLIND_KINDS, BlindKind, blind_to, offered_to
from labeling.judging.grades import grade_names, relevance_of
from labeling.judging.models import Judgment, JudgmentEvent, Relevance
from labeling.judging.parts import closed_to
from labeling.judging.sources import DRAWN, NOT_LABELING, JudgmentSource
from labeling.judging.writer import ImageFacts, JudgmentInput, JudgmentWriter, lock_annotator
from labeling.queries.models import Assignment, Query

LARGEST_BATCH = 500
MOST_SECONDS = 3600.0


class JudgmentStatus(StrEnum):
    """What became of an item."""

    STORED = "stored"
    REPEATED = "repeated"
    REFUSED = "refused"


class RefusalCode(StrEnum):
    """Why an item was refused, for programs; `JudgmentOutcome.detail` says it to people."""

    NONE = ""
    CLOSED = "closed"
    """The query can't be judged now, or not by this person."""
    WITHDRAWN = "withdrawn"
    """The image is out of the corpus."""
    NOT_IN_LIST = "not_in_list"
    """The image isn't in the query's candidate list, or a new list is being made."""
    NOT_DRAWN = "not_drawn"
    """No audit of the query has drawn the image, and none of its blind queues has shown it."""
    CONFLICT = "conflict"
    """The current judgment isn't the one that the client expects."""
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class JudgmentOutcome:
    """The outcome of one item."""

    image: int | None
    """Its id; None where the client sent none that can be read."""
    status: JudgmentStatus
    code: RefusalCode = RefusalCode.NONE
    detail: str = ""
    """Why it was refused."""
    relevance: str | None = None
    """The relevance stored by this item; None if it was refused or took the judgment back."""
    current: str | None = None
    """The person's judgment of the image after this item; None for none."""
    rank: int | None = None
    """The rank that it was stored with."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The outcome of a batch."""

    query: Query
    """As it was while the batch was stored, with its list."""
    outcomes: list[JudgmentOutcome]
    """One for each item, in the order given."""
    cursor: int
    """The number of the annotator's latest event on the query; 0 without any."""


@transaction.atomic
def judgments_record(*, query: Query, annotator: Any, items: Sequence[JudgmentInput]) -> Recorded:
    """Store an annotator's judgments; the outcomes are in the order of the items.

    Of `query` only the primary key is used. An item whose client id was stored before is answered
    with what was stored then and changes nothing, also when a later judgment says something else or
    the query was closed meanwhile; the same client id with another image, relevance, grade, source
    or query is refused. A new item is refused unless the query may be judged by this person now, or
    could be when they acted and nobody has decided on it since (`_closed_at`), its grade is one
    that the query asks for and means the relevance that comes with it, its image isn't withdrawn
    and is in the current list (source "list"), drawn by an audit of the query (source "audit"),
    shown to the person in a blind queue (sources as `BlindKind.source`; judged after their
    hand-in too, as long as `BlindKind.judged_in` says), judged by somebody and not waiting for the
    person's own blind judgment (source "correction", for reviewers, on a complete query too; taken
    back only where somebody else's judgment stays) or in the corpus (the others), and the
    current judgment is the one that the client expects or equals the new one; items apply one after
    another. Taking back a judgment that isn't there is stored too, so that a repeat is recognized.
    Raises ValueError for more than LARGEST_BATCH items and QueryGone, also where the query's
    benchmark is of others.

    Where a query asks for a number of people, the first judgment takes a place and makes the row of
    the part.

    Locks: the query shared, then the annotator, both until the transaction ends. So of two requests
    with the same client id one stores it and the other finds it, and batches neither deadlock nor
    wait for other annotators, but for those who take their place in the same query at that moment.
    """
    if len(items) > LARGEST_BATCH:
        raise ValueError(f"{len(items)} judgments at once; at most {LARGEST_BATCH} are taken.")
    query = lock_query_shared(query)
    lock_annotator(annotator)
    part = part_of(annotator, query)
    known = {
        event.client_id: event
        for event in JudgmentEvent.objects.filter(
            annotator=annotator, client_id__in=[item.client_id for item in items]
        )
    }
    writer = JudgmentWriter.load(
        query=query, annotator=annotator, image_ids=[item.image_id for item in items]
    )
    drawn, blind = _offered(query, annotator, items)
    takes_place = part is None and bool(query.annotators_wanted) and _is_open_to(annotator, query)
    if takes_place:
        transaction_lock(lock_key("places", query.pk))
    closed = why_not(annotator, query, part=part)
    closed_at = _closed_at(query, annotator, part) if closed else None
    correcting = why_not(annotator, query, Act.CORRECT)
    judged_by = _judged_by(query, annotator, items)
    revisions = _revisions(query, annotator, items)
    outcomes = []
    for item in items:
        event = known.get(item.client_id)
        facts = writer.images.get(item.image_id)
        if event is not None:
            outcomes.append(_repeat(query, item, event, facts))
            continue
        in_time = closed_at is not None and writer.acted_at(item.age) < closed_at
        if item.revision_id not in revisions:
            detail = "revision: it is none of this query for this person."
            outcomes.append(_refused(item, facts, RefusalCode.INVALID, detail))
            continue
        met = (item.source, item.image_id)
        goes_on = met in blind and blind[met].judged_in(query.state)
        shut = "" if in_time or (goes_on and at_least(annotator, Role.ANNOTATOR)) else closed
        corrects = item.source == JudgmentSource.CORRECTION
        if refusal := _refusal(item, facts, correcting if corrects else shut, query):
            outcomes.append(_refused(item, facts, *refusal))
            continue
        own = set() if item.relevance else {annotator.pk}
        if corrects and not judged_by[item.image_id] - own:
            outcomes.append(_refused(item, facts, RefusalCode.INVALID, _NO_LABEL))
            continue
        if item.source in DRAWN and met not in drawn and met not in blind:
            outcomes.append(_refused(item, facts, RefusalCode.NOT_DRAWN, _NOT_DRAWN))
            continue
        event = writer.add(item)
        known[item.client_id] = event
        outcomes.append(_outcome(item, event, facts, JudgmentStatus.STORED))
    writer.store()
    if takes_place and any(event.source not in NOT_LABELING for event in writer.events):
        Assignment.objects.create(query=query, annotator=annotator)
    cursor = writer.events[-1].pk if writer.events else latest_event(query, annotator)
    return Recorded(query, outcomes, cursor)


def _is_open_to(annotator: Any, query: Query) -> bool:
    """Whether an annotator's judgment would begin a part."""
    return role_of(annotator) == Role.ANNOTATOR and query.state == Query.State.OPEN


Met = tuple[str, int]
"""A source, and the id of an image."""


def _offered(
    query: Query, annotator: Any, items: Sequence[JudgmentInput]
) -> tuple[set[Met], dict[Met, BlindKind]]:
    """What items say that they met and the query's audits have drawn, and what blind queues have
    displayed that is this person's too.
    """
    images = {item.image_id for item in items if item.source in DRAWN}
    if not images:
        return set(), {}
    drawn = query.draws.filter(image__in=images).values_list("image", flat=True)
    kinds = {kind.name: kind for kind in BLIND_KINDS}
    shown = query.blind_items.filter(
        offered_to(annotator), kind__in=kinds, image__in=images, displayed_at__isnull=False
    )
    met = [(kinds[kind], image) for kind, image in shown.values_list("kind", "image")]
    return (
        {(JudgmentSource.AUDIT, image) for image in drawn},
        {(kind.source, image): kind for kind, image in met},
    )


def _judged_by(
    query: Query, annotator: Any, items: Sequence[JudgmentInput]
) -> defaultdict[int, set[int]]:
    """Who has judged each image that items correct, by the people's ids; nobody where the image
    waits for this person's blind judgment.
    """
    images = {item.image_id for item in items if item.source == JudgmentSource.CORRECTION}
    people: defaultdict[int, set[int]] = defaultdict(set)
    if not images:
        return people
    waiting = blind_to(annotator).filter(query=query, image__in=images)
    judged = Judgment.objects.filter(query=query, image__in=images)
    judged = judged.exclude(image__in=waiting.values("image"))
    for image_id, person in judged.values_list("image", "annotator"):
        people[image_id].add(person)
    return people


def _revisions(query: Query, annotator: Any, items: Sequence[JudgmentInput]) -> set[int | None]:
    """Those of the revisions that items name that are the query's and may be this person's, and
    None.
    """
    named = {item.revision_id for item in items if item.revision_id is not None}
    if not named:
        return {None}
    whose = Q(revisions__annotator=annotator) | Q(revisions__annotator=None)
    own = query.lists.filter(whose, revisions__in=named).values_list("revisions", flat=True)
    return {None, *own}


def _closed_at(query: Query, annotator: Any, part: Assignment | None) -> datetime | None:
    """When an annotator's part in an undecided query ended: their hand-in or its pause, else the
    submission. Judgments made before and sent later still count.

    None where the query is completed or rejected, for others than annotators, and for those who
    found no place in it.
    """
    if role_of(annotator) != Role.ANNOTATOR or query.state not in (
        Query.State.OPEN,
        Query.State.SUBMITTED,
    ):
        return None
    if part is not None and (ended := part.handed_in_at or part.paused_at):
        return ended
    if query.state == Query.State.OPEN or (part is None and closed_to(annotator, [query])):
        return None
    submitted = query.transitions.filter(to_state=Query.State.SUBMITTED).last()
    return submitted.made_at if submitted else None


def latest_event(query: Query, annotator: Any) -> int:
    """The number of the annotator's latest event on the query; 0 without any."""
    own = JudgmentEvent.objects.filter(query=query, annotator=annotator)
    latest: int | None = own.aggregate(latest=Max("pk"))["latest"]
    return latest or 0


def _refusal(
    item: JudgmentInput, facts: ImageFacts | None, closed: str, query: Query
) -> tuple[RefusalCode, str] | None:
    """The code and reason for which a new item is refused, or None."""
    if closed:
        return RefusalCode.CLOSED, closed
    if detail := _grade_problem(item, query):
        return RefusalCode.INVALID, f"grade: {detail}"
    from_list = item.source in (JudgmentSource.LIST, JudgmentSource.LEARNED)
    if facts is None:
        if from_list:
            return RefusalCode.NOT_IN_LIST, _not_in_list(item, query)
        return RefusalCode.INVALID, f"image: there is no image {item.image_id}."
    if facts.withdrawn:
        return RefusalCode.WITHDRAWN, "The image was withdrawn from the corpus."
    # A judgment can be taken back even if a new list no longer has the image.
    takes_back = not item.relevance and facts.current
    if from_list and facts.rank is None and not takes_back:
        return RefusalCode.NOT_IN_LIST, _not_in_list(item, query)
    # The same relevance is no conflict, whatever the client expected.
    if item.expected is not ... and facts.current not in (
        item.expected or "",
        item.relevance or "",
    ):
        return RefusalCode.CONFLICT, _conflict(item.expected, facts.current)
    return None


def _grade_problem(item: JudgmentInput, query: Query) -> str:
    """Why an item can't have its grade; empty if it can."""
    if item.grade is None:
        return ""
    if not query.grades:
        return "the query doesn't ask for grades."
    names = grade_names(query.grades)
    if item.grade not in names:
        return f"the query has no grade {item.grade}."
    relevance = relevance_of(item.grade, query.grades)
    if item.relevance == relevance:
        return ""
    shown = names[item.grade].lower()
    return f"{shown} is {Relevance(relevance).label.lower()} for this query."


_NOT_DRAWN = (
    "No audit has drawn the image, and it isn't among the second opinions, what runs request or "
    "further images."
)


_NO_LABEL = (
    "image: nobody has labeled it for this query, nobody else whose label would stay, or it waits "
    "for your own blind judgment."
)


def _not_in_list(item: JudgmentInput, query: Query) -> str:
    current = query.current_list
    if current is None or not current.ready:
        return "A new candidate list is being made; judge the image again when it is ready."
    return f"image: image {item.image_id} is not in the query's candidate list."


def _conflict(expected: str | None, current: str) -> str:
    now, here = (
        Relevance(relevance).label.lower() if relevance else "unlabeled"
        for relevance in (current, expected)
    )
    return f"It was changed elsewhere meanwhile: it is {now} now, and was {here} here."


def _repeat(
    query: Query, item: JudgmentInput, event: JudgmentEvent, facts: ImageFacts | None
) -> JudgmentOutcome:
    """Answer for a client id that is stored already."""
    stored = (event.query_id, event.image_id, event.relevance, event.source, event.grade)
    if stored != (query.pk, item.image_id, item.relevance or "", item.source, item.grade):
        detail = "client_id: it was used before for another judgment; make a new one for each."
        return _refused(item, facts, RefusalCode.INVALID, detail)
    return _outcome(item, event, facts, JudgmentStatus.REPEATED)


def _outcome(
    item: JudgmentInput, event: JudgmentEvent, facts: ImageFacts | None, status: JudgmentStatus
) -> JudgmentOutcome:
    return JudgmentOutcome(
        image=item.image_id,
        status=status,
        relevance=event.relevance or None,
        current=(facts.current if facts else "") or None,
        rank=event.rank,
    )


def _refused(
    item: JudgmentInput, facts: ImageFacts | None, code: RefusalCode, detail: str
) -> JudgmentOutcome:
    return JudgmentOutcome(
        image=item.image_id,
        status=JudgmentStatus.REFUSED,
        code=code,
        detail=detail,
        current=(facts.current if facts else "") or None,
    )
