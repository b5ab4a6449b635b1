"""Places of threatened species, which are hidden from people who label."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from typing import Any, Final

from django.conf import settings

from core.access import Role, at_least
from retrieval.corpus.models import Image, Species

#: Meters from the middle to a corner of a cell of 1° at the equator, where cells are largest.
_HALF_DIAGONAL: Final = 78_800


def species_without_places(user: Any) -> list[int]:
    """The species whose images' places the user may not see: those of the IUCN categories in
    HIDDEN_PLACES, from everybody below a reviewer. One SQL query where the setting names any.
    """
    if not settings.HIDDEN_PLACES or at_least(user, Role.REVIEWER):
        return []
    found = Species.objects.filter(conservation_status__in=settings.HIDDEN_PLACES)
    return list(found.order_by("pk").values_list("pk", flat=True))


def rounded_place(
    latitude: float, longitude: float, uncertainty: float | None, *, degrees: float
) -> tuple[float, float, float]:
    """The middle of a place's cell of so many degrees, and an uncertainty in meters that covers the
    cell.
    """
    middle = (min((floor(one / degrees) + 0.5) * degrees, most)
              for one, most in ((latitude, 90.0), (longitude, 180.0)))  # fmt: skip
    north, east = (round(one, 6) for one in middle)
    return north, east, max(uncertainty or 0.0, round(_HALF_DIAGONAL * degrees))


def hide_places(images: Iterable[Image], user: Any) -> None:
    """Take the places that the user may not see off images that were read to be displayed."""
    hidden = frozenset(species_without_places(user))
    for image in images:
        if image.species_id in hidden:
            image.latitude = image.longitude = image.location_uncertainty = None
