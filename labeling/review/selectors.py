"""What reviewers see: unsure images, disagreements, agreement, and requests to reject."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any, Final

from django.db.models import Count, F, Q

from core.access import Role, at_least
from labeling.audits.hand_in import hand_in_state
from labeling.candidates.models import Candidate
from labeling.candidates.stopping import RELEVANT
from labeling.judging.blind import BLIND_KINDS, waiting_for_anybody
from labeling.judging.consensus import Vote, consensus
from labeling.judging.models import Judgment, Relevance
from labeling.judging.progress import progress
from labeling.judging.reliability import Reliability, reliability
from labeling.queries.models import Assignment, Query
from retrieval.corpus.models import Image
from retrieval.flags.selectors import is_withdrawn

#: Kinds of doubt about an image.
KINDS: Final = ("unsure", "disputed")


@dataclass(frozen=True, slots=True)
class ReviewItem:
    """An image about which people are unsure or don't agree, with everybody's current judgment."""

    image: Image
    rank: int | None
    """In the query's current list."""
    score: float | None
    """Cosine similarity to the query's text; None outside the list."""
    votes: list[Judgment]
    """The latest last."""
    unsure: bool
    """Whether somebody is unsure; else annotators disagree."""
    decided: bool
    """Whether a reviewer has decided it."""


def images_to_review(query: Query, kind: str = "") -> list[ReviewItem]:
    """Images of a query that somebody marked unsure or on which annotators disagree, with those of
    them that a reviewer has decided; in list order, without withdrawn images.

    `kind`, one of KINDS, narrows them. Two SQL queries.
    """
    doubts = [doubt for doubt in _doubts(query, "image__species") if kind in ("", doubt.kind)]
    images = [doubt.votes[0].image for doubt in doubts]
    candidates = Candidate.objects.filter(list=query.current_list_id, image__in=images)
    places = {candidate.image_id: candidate for candidate in candidates}
    items = [
        ReviewItem(
            image=image,
            rank=places[image.pk].rank if image.pk in places else None,
            score=places[image.pk].score if image.pk in places else None,
            votes=sorted(doubt.votes, key=lambda vote: (vote.updated_at, vote.annotator_id)),
            unsure=doubt.kind == "unsure",
            decided=doubt.decided,
        )
        for image, doubt in zip(images, doubts, strict=True)
    ]
    items.sort(key=lambda item: (item.rank is None, item.rank or 0, item.image.pk))
    return items


@dataclass(frozen=True, slots=True)
class OpenPoint:
    """Something that a completion of a query would leave open."""

    kind: str
    """"rule", "unsure", "disputed", or the source of what waits to be judged blindly."""
    count: int
    """Of images; 0 for the rule."""
    text: str
    """For people."""


def left_open(query: Query) -> list[OpenPoint]:
    """What completing the query now would leave open: its rule where the consensus doesn't meet it,
    those of `images_to_review` that nobody has decided, and what waits to be judged blindly.
    """
    points = []
    rule = hand_in_state(query, progress(query).stop)
    if not rule.met:
        points.append(OpenPoint("rule", 0, rule.unmet))
    doubts = Counter(doubt.kind for doubt in _doubts(query) if not doubt.decided)
    for kind in KINDS:
        if count := doubts[kind]:
            images = "1 image is" if count == 1 else f"{count:,} images are"
            points.append(OpenPoint(kind, count, f"{images} {kind}."))
    for blind in BLIND_KINDS:
        waiting = waiting_for_anybody().filter(query=query, kind=blind.name)
        if blind.left_open and (count := waiting.count()):
            single = count == 1
            images, wait = (
                "1 image" if single else f"{count:,} images",
                "waits" if single else "wait",
            )
            text = blind.left_open.format(images=images, wait=wait)
            points.append(OpenPoint(blind.source, count, text))
    return points


@dataclass(frozen=True, slots=True)
class _Doubt:
    """The votes on an image about which people are unsure or don't agree."""

    votes: list[Judgment]
    kind: str
    """Of KINDS."""
    decided: bool
    """By a reviewer, the latest of whom isn't unsure."""


def _doubts(query: Query, *related: str) -> list[_Doubt]:
    """The doubts about a query's images, without withdrawn ones; `related` is selected along."""
    doubtful = (
        Judgment.objects.filter(query=query)
        .filter(~is_withdrawn("image_id"))
        .order_by()
        .values("image")
        .annotate(
            unsure=Count("pk", filter=Q(relevance=Relevance.UNSURE)),
            relevant=Count("pk", filter=Q(relevance=Relevance.RELEVANT)),
            votes=Count("pk"),
        )
        .filter(Q(unsure__gt=0) | Q(relevant__gt=0, relevant__lt=F("votes")))
        .values("image")
    )
    votes: defaultdict[int, list[Judgment]] = defaultdict(list)
    judgments = Judgment.objects.filter(query=query, image__in=doubtful)
    for judgment in judgments.select_related("annotator", *related).order_by("pk"):
        votes[judgment.image_id].append(judgment)
    doubts = []
    for image_votes in votes.values():
        agreed = consensus(
            Vote(vote.annotator_id, vote.annotator.role, vote.relevance, vote.updated_at)
            for vote in image_votes
        )
        unsure = any(vote.relevance == Relevance.UNSURE for vote in image_votes)
        decided = agreed.decided_by == "reviewer" and not agreed.unsure
        doubts.append(_Doubt(image_votes, "unsure" if unsure else "disputed", decided))
    return doubts


def given_up(query: Query, user: Any) -> Assignment | None:
    """The latest request to reject an open or submitted query, None without one.

    Reviewers see anybody's, annotators only their own, since they don't see each other's work.
    """
    if query.state not in (Query.State.OPEN, Query.State.SUBMITTED):
        return None
    requests = query.assignments.exclude(reason="").select_related("annotator")
    if not at_least(user, Role.REVIEWER):
        requests = requests.filter(annotator=user)
    return requests.order_by("handed_in_at").last()


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two annotators agree on the images of a query that both judged."""

    people: tuple[tuple[int, str], tuple[int, str]]
    """Their ids and names, by name."""
    agreement: Reliability


@dataclass(frozen=True, slots=True)
class QueryAgreement:
    """How far people agree on the images of a query that several judged."""

    images: int
    """That several people judged."""
    disputed: int
    """On which annotators disagree, none is unsure, and no reviewer has decided."""
    pairs: list[PairAgreement]
    """Every two people who share an image, those who share most first."""


def query_agreement(query: Query) -> QueryAgreement:
    """The agreement on a query's images, without withdrawn ones. Unsure counts as not relevant. Two
    SQL queries, over the images that several people judged.
    """
    several = (
        Judgment.objects.filter(query=query)
        .filter(~is_withdrawn("image_id"))
        .order_by()
        .values("image")
        .annotate(votes=Count("pk"))
        .filter(votes__gt=1)
        .values("image")
    )
    rows = (
        Judgment.objects.filter(query=query, image__in=several)
        .order_by("image_id", "annotator__username")
        .values_list("image_id", "annotator", "annotator__username", "relevance")
    )
    shared: defaultdict[Any, list[tuple[int, int]]] = defaultdict(list)
    images = 0
    for _, votes in groupby(rows, key=itemgetter(0)):
        images += 1
        for (_, *first, says), (_, *second, other_says) in combinations(votes, 2):
            relevant = (says == RELEVANT) + (other_says == RELEVANT)
            shared[tuple(first), tuple(second)].append((2 - relevant, relevant))
    pairs = [PairAgreement(people, reliability(counts)) for people, counts in shared.items()]
    pairs.sort(key=lambda pair: (-pair.agreement.items, *(name for _, name in pair.people)))
    disputed = (doubt for doubt in _doubts(query) if doubt.kind == "disputed")
    return QueryAgreement(images, sum(not doubt.decided for doubt in disputed), pairs)
