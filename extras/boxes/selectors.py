"""Which images of a query get boxes, which wait for whom, and how far people agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils.crypto import salted_hmac

from core.access import Role, at_least
from extras.boxes.matching import BoxAgreement, agreement_of, size_of
from extras.boxes.models import BoxedQuery, BoxSet
from labeling.audits.draws import draw_number, selected
from labeling.candidates.selectors import filter_species_ids
from labeling.judging.consensus import DECIDING_ROLES
from labeling.judging.progress import relevant_images
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from retrieval.flags.selectors import images_in_corpus

#: iNat2017, section 3.3: of these kingdoms no boxes were collected.
NOT_BOXED: Final = ("Plantae", "Fungi", "Protozoa", "Chromista")
#: Of species whose kingdom isn't known.
NOT_BOXED_GROUPS: Final = ("Plants", "Fungi")

KINDS: Final = ("waiting", "own", "disputed")
"""Images that wait for one's boxes, those that one has boxed, and those on which people differ."""


@dataclass(frozen=True, slots=True)
class BoxTask:
    """An image to box or to look at."""

    image: Image
    own: BoxSet | None
    others: Sequence[BoxSet]
    """Everybody else's; none where one is to draw without seeing them."""


def images_asked(query: Query) -> str:
    """On which images people draw boxes for a query, of `BoxedQuery.Images`; empty for none."""
    boxed: BoxedQuery | None = getattr(query, "boxed", None)
    return boxed.images if boxed else ""


def complete_and_boxed() -> Q:
    """The condition on queries that they are complete and ask for boxes."""
    boxed = BoxedQuery.objects.filter(query=OuterRef("pk"))
    return Q(Exists(boxed), state=Query.State.COMPLETE)


def box_problem(user: Any, query: Query) -> str:
    """Why the user may not draw boxes for the query now; an empty string if they may."""
    if not at_least(user, Role.ANNOTATOR):
        return "Only annotators, reviewers and admins draw boxes."
    images = images_asked(query)
    if not images:
        return "The query asks for no boxes."
    if images == BoxedQuery.Images.SPECIES and query.state in (
        Query.State.OPEN, Query.State.SUBMITTED
    ):  # fmt: skip
        return ""
    if query.state != Query.State.COMPLETE:
        return "Boxes are drawn once the query is complete."
    return ""


def boxed_images(query: Query, among: Collection[int] | None = None) -> QuerySet[Image]:
    """The images that get boxes, of all or of these, by id: those in the corpus that are relevant,
    of the kingdoms that the query says, or all of its species filter. Three SQL queries at most.
    """
    images = images_in_corpus().order_by("pk")
    asked = images_asked(query)
    if asked == BoxedQuery.Images.SPECIES:
        images = images.filter(species__in=filter_species_ids(query))
        return images if among is None else images.filter(pk__in=among)
    images = images.filter(pk__in=relevant_images(query, among))
    if asked == BoxedQuery.Images.ANIMALS:
        plants = Q(species__kingdom__in=NOT_BOXED) | Q(species__iconic_group__in=NOT_BOXED_GROUPS)
        images = images.exclude(plants)
    return images


def box_sets_of_image(user: Any, image: Image) -> list[BoxSet]:
    """The current sets of an image that the user may know of, of all queries: their own; and, for
    reviewers, those of others that no second person is to draw without seeing them.
    """
    sets = BoxSet.objects.filter(image=image, current=True).select_related("query", "annotator")
    if not at_least(user, Role.REVIEWER):
        return list(sets.filter(annotator=user))
    by_query: defaultdict[int, list[BoxSet]] = defaultdict(list)
    for box_set in sets.order_by("query", "pk"):
        by_query[box_set.query_id].append(box_set)
    return [
        box_set
        for drawn in by_query.values()
        for box_set in drawn
        if len(drawn) > 1 or is_decided(drawn) or box_set.annotator_id == user.pk
    ]


def is_decided(sets: Sequence[BoxSet]) -> bool:
    """Whether a reviewer drew one of an image's current sets."""
    return any(map(_decides, sets))


def decisive(sets: Sequence[BoxSet]) -> BoxSet:
    """Of an image's current sets, the oldest first, the one that counts: the last that a reviewer
    drew, else the first.
    """
    return next(filter(_decides, reversed(sets)), sets[0])


def _decides(one: BoxSet) -> bool:
    return not one.imported and one.annotator.role in DECIDING_ROLES


class BoxWork:
    """The boxes of a query, read once: five SQL queries at most, the last for its benchmark's
    setting.
    """

    def __init__(self, query: Query) -> None:
        self.query = query
        self.images = list(boxed_images(query).values_list("pk", flat=True))
        """The ids of the images that get boxes, ascending."""
        self.sets: Mapping[int, Sequence[BoxSet]] = self._current()
        self.share: float = query.benchmark.setting("BOX_SECOND_OPINION")
        # Nobody can tell which images a second person boxes too.
        self.key = salted_hmac("boxes", str(query.query_id), algorithm="sha256").digest()

    def _current(self) -> dict[int, list[BoxSet]]:
        found: defaultdict[int, list[BoxSet]] = defaultdict(list)
        boxed = set(self.images)
        sets = self.query.box_sets.filter(current=True).select_related("annotator")
        for one in sets.order_by("pk"):
            if one.image_id in boxed:
                found[one.image_id].append(one)
        return dict(found)

    @cached_property
    def agreement(self) -> BoxAgreement:
        """Of all current sets."""
        drawn = {pk: [one.boxes for one in sets] for pk, sets in self.sets.items()}
        return agreement_of(drawn)

    @property
    def disputed(self) -> list[int]:
        """The images on which people disagree and no reviewer drew, by id."""
        return [pk for pk in self.agreement.disagreements if not is_decided(self.sets[pk])]

    @property
    def boxes(self) -> list[list[float]]:
        """The `bbox` of all boxes that count."""
        return [box["bbox"] for sets in self.sets.values() for box in decisive(sets).boxes]

    @property
    def sizes(self) -> dict[str, int]:
        """How many of those have each of COCO's sizes."""
        return dict(Counter(map(size_of, self.boxes)))

    @property
    def second(self) -> int:
        """How many images wait for a second person."""
        return sum(self._wants_second(pk) for pk in self.sets)

    def waiting(self, user: Any) -> list[int]:
        """The images that wait for the user's boxes, in an order of each person's own, so that two
        don't draw on the same image at once.
        """
        waiting = (
            pk
            for pk in self.images
            if pk not in self.sets
            or (self._wants_second(pk) and self.sets[pk][0].annotator_id != user.pk)
        )
        return sorted(waiting, key=lambda pk: draw_number(self.key, user.pk, pk))

    def tasks(self, user: Any, kind: str, *, first: int) -> tuple[int, list[BoxTask]]:
        """How many images there are of one of KINDS, and the first of them."""
        chosen: dict[str, Callable[[Any], list[int]]] = {
            "waiting": self.waiting,
            "own": self._own,
            "disputed": lambda _: self.disputed,
        }
        pks = chosen[kind](user)
        images = Image.objects.in_bulk(pks[:first])
        tasks = [self._task(images[pk], user, shown=kind == "disputed") for pk in pks[:first]]
        return len(pks), tasks

    def _own(self, user: Any) -> list[int]:
        return [
            pk
            for pk, sets in sorted(self.sets.items())
            if any(one.annotator_id == user.pk for one in sets)
        ]

    def _task(self, image: Image, user: Any, *, shown: bool) -> BoxTask:
        sets = self.sets.get(image.pk, [])
        own = next((one for one in sets if one.annotator_id == user.pk), None)
        return BoxTask(image, own, [one for one in sets if shown and one is not own])

    def _wants_second(self, pk: int) -> bool:
        sets = self.sets[pk]
        asked = selected(self.key, self.query.query_id, pk, self.share)
        return asked and len(sets) == 1 and not is_decided(sets)
