"""The images that a choice matches: their ids in order, what is shown of some, their numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeVar

from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef

from core.access import names_hidden_from
from core.errors import Unavailable
from core.sql import fetch_all
from retrieval.browsing.choice import ORDERS, Choice
from retrieval.browsing.filters import IMAGE, ImageFilter, ValueCount
from retrieval.corpus.counts import image_count, number_of
from retrieval.encoding.model_specs import ModelSpecError
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
    ranked: SearchRanking | None = None
    """How they were ranked, with their scores; None where they aren't."""
    tiles: list[dict[str, Any]] = field(default_factory=list)
    """Of the first ones."""

    @property
    def scores(self) -> list[float] | None:
        """Of the ids."""
        return [score for _, score in self.ranked.ranking] if self.ranked else None


def matches(
    choice: Choice,
    *,
    offset: int,
    limit: int,
    with_tiles: int = 0,
    has_left: Callable[[], bool] = lambda: False,
) -> Matches:
    """Return the matches from a position on, of the first MOST_POSITIONS.

    Ranked ones are exact, as `search_ranking` says; where an index is used they are those of one
    stretch alone. Raises what that raises, SearchTooSlow and Unavailable.
    """
    limit = min(limit, MOST_POSITIONS - offset)
    if limit <= 0:
        return Matches([], more=False)
    ranked = None
    if choice.is_ranked:
        species = choice.species_ids
        try:
            found = search_ranking(
                text=choice.text,
                like=choice.like.pk if choice.like else None,
                species_ids=species,
                matching=choice.condition() if species is None else None,
                offset=offset,
                limit=limit + 1,
                person=choice.user.pk,
                has_left=has_left,
            )
        except ModelSpecError as error:
            raise Unavailable(str(error)) from error
        ids = [image_id for image_id, _ in found.ranking]
        ranked = replace(found, ranking=found.ranking[:limit])
    else:
        where, values = choice.condition()
        with search_turn():
            rows = fetch_all(
                f"SELECT i.id FROM {IMAGE} i WHERE i.id >= 0 AND {where}"
                f" ORDER BY {ORDERS[choice.order]} LIMIT %s OFFSET %s",
                [*values, limit + 1, offset],
            )
        ids = [image_id for (image_id,) in rows]
    can_follow = offset + limit < MOST_POSITIONS and (ranked is None or ranked.method.exact)
    return Matches(
        ids=ids[:limit],
        more=can_follow and len(ids) > limit,
        ranked=ranked,
        tiles=tiles(ids[: min(limit, with_tiles)], choice.user),
    )


def tiles(image_ids: Sequence[int], user: Any) -> list[dict[str, Any]]:
    """Return what the user may see of these images, in this order, as the API gives it. Three SQL
    queries.
    """
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
    found = []
    for image in filter(None, map(by_id.get, image_ids)):
        kind = image.species
        name = (kind.common_name or kind.scientific_name) if kind else image.taxon_text
        found.append(
            {
                "id": image.pk,
                "thumbnail_url": image.thumbnail_url,
                "name": "" if hidden else name,
                "file_name": "" if hidden else image.file_name,
                "flagged": image.flagged,
                "withdrawn": image.withdrawn,
            }
        )
    return found


def match_count(choice: Choice) -> int:
    """Return the number of images that pass the filters: the one that triggers keep, where that is
    enough.
    """
    if (species := choice.species_ids) is not None:
        return image_count(species_ids=species)
    where, values = choice.condition()
    return number_of(f"SELECT count(*) FROM {IMAGE} i WHERE {where}", values)


def counted(
    choice: Choice, *, keys: Collection[str] | None = None
) -> tuple[int | None, list[tuple[ImageFilter, list[ValueCount] | None]]]:
    """Count the matches, and by the filters of these keys, by default all, the images given all
    others, in COUNT_SECONDS; None for what would take longer.
    """
    ends = time.monotonic() + COUNT_SECONDS
    total = _in_time(ends, lambda: match_count(choice))
    wanted = [one for one in choice.filters if keys is None or one.key in keys]
    by_key = {}
    for one in sorted(wanted, key=lambda one: not one.is_quick):
        given = choice.condition(without=one.key), choice.values.get(one.key)
        by_key[one.key] = _in_time(ends, partial(one.count, *given))
    return total, [(one, by_key[one.key]) for one in wanted]


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
