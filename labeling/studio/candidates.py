"""Images as a person sees them: candidates of the list, to review, drawn, similar to one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, OuterRef, Subquery, prefetch_related_objects

from core.access import names_hidden_from
from core.errors import Conflict
from labeling.audits.selectors import AuditState
from labeling.candidates.models import Candidate
from labeling.candidates.pools import ModelRank, model_ranks
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from labeling.review.selectors import images_to_review
from retrieval.corpus.models import Image, Species
from retrieval.corpus.places import hide_places
from retrieval.custom_fields.selectors import CustomValue, shown_field_names, values_of
from retrieval.embedding.models import Embedding
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import is_withdrawn
from retrieval.ranking.selectors import rank_images

#: So many drawn images stay on the page after one has judged them.
LAST_JUDGED: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedImage:
    """An image for one person, with their own judgment of it."""

    image: Image
    species: Species | None
    """None too where its name is hidden from the person."""
    relevance: str | None
    """None without a judgment."""
    grade: int | None
    reason: str
    flags: list[str]
    """The kinds of its open flags, whoever raised them."""
    custom_fields: dict[str, CustomValue]
    """Its values in the fields that an admin has shown to annotators, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedImage(JudgedImage):
    """A candidate."""

    rank: int
    score: float
    """Cosine similarity to the query's text, -1..1."""


def candidates_at(*, query: Query, user: Any, ranks: Collection[int]) -> list[RankedImage]:
    """The candidates of the current list at these ranks, in the list's order and without withdrawn
    images; empty while the list isn't ready. Two SQL queries, one more for HIDDEN_PLACES
    and one for custom fields.
    """
    current = query.current_list
    if current is None or not current.ready:
        return []
    candidates = (
        Candidate.objects.filter(~is_withdrawn("image_id"), list=current, rank__in=ranks)
        .annotate(**_own_judgment(query, user, "image_id"))
        .select_related("image")
        .order_by("rank")
    )
    hidden = names_hidden_from(user)
    if not hidden:
        candidates = candidates.select_related("image__species").prefetch_related(
            "image__species__names"
        )
    images = [candidate.image for candidate in candidates]
    hide_places(images, user)
    names = shown_field_names(images)
    return [
        RankedImage(rank=row.rank, score=row.score, **_judged(row, row.image, hidden, names))
        for row in candidates
    ]


def _own_judgment(query: Query, user: Any, image: str) -> dict[str, Any]:
    """What `_judged` reads of a row whose field `image` has the image: annotations."""
    own = Judgment.objects.filter(query=query, annotator=user, image=OuterRef(image))
    flags = ImageFlag.objects.filter(image=OuterRef(image), state=ImageFlag.State.OPEN)
    return {
        "own_relevance": Subquery(own.values("relevance")),
        "own_grade": Subquery(own.values("grade")),
        "own_reason": Subquery(own.values("reason")),
        "open_flags": ArraySubquery(flags.order_by("kind").values("kind").distinct()),
    }


def _judged(row: Any, image: Image, names_hidden: bool, fields_shown: list[str]) -> dict[str, Any]:
    """The members of `JudgedImage`."""
    return {
        "image": image,
        "species": None if names_hidden else image.species,
        "relevance": row.own_relevance,
        "grade": row.own_grade,
        "reason": row.own_reason or "",
        "flags": row.open_flags,
        "custom_fields": values_of(image, fields_shown),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewedImage(JudgedImage):
    """An image to review."""

    rank: int | None
    """In the query's current list; None for an image that isn't in it."""
    score: float | None
    """Cosine similarity to the query's text; None outside the list."""
    source: str | None
    """Where the person's own judgment was made."""
    votes: list[Judgment]
    """Everybody's current judgment, the latest last."""
    model_ranks: list[ModelRank]
    """By each model of a pooled list that ranked it; else empty."""


def review_candidates(*, query: Query, user: Any, kind: str = "") -> list[ReviewedImage]:
    """The images of `images_to_review` with what the labeling page shows of an image. At most six
    SQL queries.
    """
    items = images_to_review(query, kind)
    hidden = names_hidden_from(user)
    if not hidden:
        prefetch_related_objects([item.image for item in items], "species__names")
    raised = ImageFlag.objects.filter(
        image__in=[item.image for item in items], state=ImageFlag.State.OPEN
    )
    flags: defaultdict[int, set[str]] = defaultdict(set)
    for image_id, flag in raised.values_list("image", "kind"):
        flags[image_id].add(flag)
    names = shown_field_names(item.image for item in items)
    current, ranks = query.current_list, defaultdict[int, list[ModelRank]](list)
    if current is not None and current.pool_models:
        for model_rank in model_ranks(current, [item.image.pk for item in items]):
            ranks[model_rank.image_id].append(model_rank)
    images = []
    for item in items:
        own = next((vote for vote in item.votes if vote.annotator_id == user.pk), None)
        image = ReviewedImage(
            rank=item.rank,
            score=item.score,
            image=item.image,
            species=None if hidden else item.image.species,
            relevance=own.relevance if own else None,
            grade=own.grade if own else None,
            reason=own.reason if own else "",
            source=own.source if own else None,
            flags=sorted(flags[item.image.pk]),
            custom_fields=values_of(item.image, names),
            votes=item.votes,
            model_ranks=ranks[item.image.pk],
        )
        images.append(image)
    return images


@dataclass(frozen=True, slots=True)
class SimilarImage:
    """An image near another one, for one person."""

    image: Image
    score: float
    """Cosine similarity of the two images, -1..1."""
    rank: int | None
    """In the query's current list; None for an image that isn't in it."""
    species: Species | None
    """None too where its name is hidden from the person."""
    relevance: str | None
    """The person's own judgment for the query."""


@dataclass(frozen=True, slots=True)
class SimilarImages:
    """The nearest images, the most similar first."""

    within: Literal["filter", "corpus"]
    """Where they were looked for: within the query's species filter, where it has one."""
    results: list[SimilarImage]


def similar_images(*, query: Query, user: Any, image_id: int, limit: int) -> SimilarImages:
    """The images nearest to one under the model of the query's list: exact, ties by image id,
    without the image itself and withdrawn ones.

    At most three SQL queries beside those of the ranking. Raises Image.DoesNotExist, and Conflict
    where the list isn't ready or the image is withdrawn or without an embedding.
    """
    current = query.current_list
    if current is None or current.embedding_model is None:
        raise Conflict("The candidate list isn't ready yet, so nothing can be compared.")
    vectors = Embedding.objects.filter(model=current.embedding_model, image=OuterRef("pk"))
    origin = (
        Image.objects.filter(pk=image_id)
        .annotate(vector=Subquery(vectors.values("vector")), withdrawn=is_withdrawn())
        .values_list("vector", "withdrawn")
        .first()
    )
    if origin is None:
        raise Image.DoesNotExist(f"There is no image {image_id}.")
    vector, withdrawn = origin
    if withdrawn:
        raise Conflict("The image was withdrawn from the corpus.")
    if vector is None:
        raise Conflict(
            f"The image has no embedding under {current.model_name} yet, so nothing can be "
            "compared with it."
        )
    nearest = rank_images(
        model=current.embedding_model,
        text_vector=vector,
        species_ids=current.species_ids,
        limit=limit + 1,
    )
    others = [(pk, score) for pk, score in nearest if pk != image_id][:limit]
    known = _images(query, user, [pk for pk, _ in others])
    hidden = names_hidden_from(user)
    results = [
        SimilarImage(
            image=known[pk],
            score=score,
            rank=known[pk].rank,
            species=None if hidden else known[pk].species,
            relevance=known[pk].own_relevance,
        )
        for pk, score in others
        if pk in known
    ]
    return SimilarImages("filter" if current.species_ids else "corpus", results)


def _images(query: Query, user: Any, image_ids: list[int]) -> dict[int, Any]:
    """Images by id, with their rank in the query's list and the person's relevance."""
    ranks = Candidate.objects.filter(list=query.current_list_id, image=OuterRef("pk"))
    own = Judgment.objects.filter(query=query, annotator=user, image=OuterRef("pk"))
    images = Image.objects.annotate(
        rank=Subquery(ranks.values("rank")), own_relevance=Subquery(own.values("relevance"))
    )
    if not names_hidden_from(user):
        images = images.select_related("species").prefetch_related("species__names")
    return images.in_bulk(image_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnImage(JudgedImage):
    """A drawn image: without rank and score, which would tell what to expect."""

    to_judge: bool
    """Whether nobody has judged it; of a seed, whether the person hasn't."""


def drawn_images(*, query: Query, user: Any, state: AuditState) -> list[DrawnImage]:
    """The images of `state.to_judge`, after the last LAST_JUDGED drawn ones that the person has
    judged; without withdrawn ones. At most six SQL queries.
    """
    own = Judgment.objects.filter(query=query, annotator=user, image=OuterRef("image"))
    judged = query.draws.filter(Exists(own)).order_by("-round__number", "-place")
    before = list(judged.values_list("image_id", flat=True)[:LAST_JUDGED])
    return audit_images(query=query, user=user, judged=before[::-1], to_judge=state.to_judge)


def audit_images(
    *, query: Query, user: Any, judged: Sequence[int], to_judge: Sequence[int]
) -> list[DrawnImage]:
    """The last LAST_JUDGED of the judged images, then those to judge; without withdrawn ones. At
    most five SQL queries.
    """
    wanted = [*judged[-LAST_JUDGED:], *to_judge]
    images = Image.objects.filter(~is_withdrawn()).annotate(**_own_judgment(query, user, "pk"))
    hidden = names_hidden_from(user)
    if not hidden:
        images = images.select_related("species").prefetch_related("species__names")
    known: dict[int, Any] = images.in_bulk(wanted)
    hide_places(known.values(), user)
    waiting, names = set(to_judge), shown_field_names(known.values())
    return [
        DrawnImage(to_judge=pk in waiting, **_judged(known[pk], known[pk], hidden, names))
        for pk in wanted
        if pk in known
    ]
