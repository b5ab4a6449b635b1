"""The images that a choice matches: their ids in order, what is shown of some, their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef

from core.access import names_hidden_from
from core.sql import fetch_all
from retrieval.browsing.choice import ORDERS, Choice
from retrieval.browsing.filters import IMAGE, Counts, ImageFilter
from retrieval.corpus.counts import image_count, number_of
from retrieval.corpus.models import Image
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import images_visible_to, is_withdrawn
from retrieval.search.selectors import SearchRanking, search_ranking
from retrieval.search.turns import QUERY_CANCELED, search_turn

Result = TypeVar("Result")

MOST_POSITIONS: Final = 100_000
"""How many of the matches the page shows; filters lead to the others."""
COUNT_SECONDS: Final = 1.5
"""After which counting ends: what is left is too many to count."""


@dataclass(frozen=True, slots=True)
class Matches:
    """A stretch of the matches in their order."""

    ids: list[int]
    more: bool
    """Whether others follow that can be shown."""
    found: SearchRanking | None
    """How they were ranked, with their scores; None where they aren't."""


def matches(
    choice: Choice,
    *,
    offset: int,
    limit: int,
    person: int | None = None,
    has_left: Callable[[], bool] = lambda: False,
) -> Matches:
    """Return the matches from a position on, of the first MOST_POSITIONS.

    Ranked ones are exact, as `search_ranking` says; where an index is used they are those of one
    stretch alone. Raises what that raises, and SearchTooSlow.
    """
    limit = min(limit, MOST_POSITIONS - offset)
    if limit <= 0:
        return Matches([], more=False, found=None)

    def follows(ids: list[int]) -> bool:
        return len(ids) > limit and offset + limit < MOST_POSITIONS

    if choice.is_ranked:
        species = choice.species_ids
        found = search_ranking(
            text=choice.text,
            like=choice.like,
            species_ids=species,
            matching=choice.condition() if species is None else None,
            offset=offset,
            limit=limit + 1,
            person=person,
            has_left=has_left,
        )
        ids = [image_id for image_id, _ in found.ranking]
        found = replace(found, ranking=found.ranking[:limit])
        return Matches(ids[:limit], more=found.method.exact and follows(ids), found=found)
    where, values = choice.condition()
    with search_turn():
        rows = fetch_all(
            f"SELECT i.id FROM {IMAGE} i WHERE i.id >= 0 AND {where}"
            f" ORDER BY {ORDERS[choice.order]}"
            " LIMIT %s OFFSET %s",
            [*values, limit + 1, offset],
        )
    ids = [image_id for (image_id,) in rows]
    return Matches(ids[:limit], more=follows(ids), found=None)


@dataclass(frozen=True, slots=True)
class Tile:
    """What the grid shows of an image."""

    image: Image
    name: str
    """Of its species, or what the source calls the taxon; empty where it is hidden or not known."""
    file_name: str
    """Empty where names are hidden."""
    is_flagged: bool
    is_withdrawn: bool


def tiles(image_ids: Sequence[int], user: Any) -> list[Tile]:
    """Return what the user may see of these images, in this order. Three SQL queries."""
    images = (
        images_visible_to(user)
        .select_related("species")
        .prefetch_related("species__names")
        .annotate(
            flagged=Exists(ImageFlag.objects.filter(image=OuterRef("pk"), state="open")),
            withdrawn=is_withdrawn(),
        )
    )
    by_id = images.in_bulk(list(image_ids))
    hidden = names_hidden_from(user)
    return [
        Tile(
            image=image,
            name="" if hidden else _name_of(image),
            file_name="" if hidden else image.file_name,
            is_flagged=image.flagged,
            is_withdrawn=image.withdrawn,
        )
        for image_id in image_ids
        if (image := by_id.get(image_id)) is not None
    ]


def _name_of(image: Image) -> str:
    species = image.species
    return (species.common_name or species.scientific_name) if species else image.taxon_text


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of matches, and the images by each filter, given all others; None for what took
    too long to count.
    """

    total: int | None
    by_filter: dict[str, Counts | None]


def counted(choice: Choice, *, keys: Collection[str] | None = None) -> Counted:
    """Count the matches, and by the filters of these keys, by default all, in COUNT_SECONDS."""
    ends = time.monotonic() + COUNT_SECONDS
    total = _in_time(ends, lambda: match_count(choice))
    by_filter = {
        one.key: _in_time(ends, partial(_counted_by, choice, one))
        for one in sorted(choice.filters, key=lambda one: not one.is_quick)
        if keys is None or one.key in keys
    }
    return Counted(total, by_filter)


def _counted_by(choice: Choice, one: ImageFilter) -> Counts:
    return one.count(choice.condition(without=one.key), choice.values.get(one.key))


def match_count(choice: Choice) -> int:
    """Return the number of images that pass the filters: the one that triggers keep, where that is
    enough.
    """
    if (species := choice.species_ids) is not None:
        return image_count(species_ids=species)
    where, values = choice.condition()
    return number_of(f"SELECT count(*) FROM {IMAGE} i WHERE {where}", values)


def _in_time(ends: float, count: Callable[[], Result]) -> Result | None:
    """What is counted; None where that would go on after a moment."""
    left = int((ends - time.monotonic()) * 1000)
    if left < 1:
        return None
    try:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(left)])
            result = count()
            # Undoes the setting, whatever transaction this is part of.
            transaction.set_rollback(True)
            return result
    except OperationalError as error:
        if getattr(error.__cause__, "pgcode", None) != QUERY_CANCELED:
            raise
        return None
