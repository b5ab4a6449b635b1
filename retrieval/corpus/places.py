"""What hides the places of threatened species from people who label."""

from __future__ import annotations

from collections.abc import Iterable
from math import floor
from typing import Any, Final

from django.conf import settings

from core.access import Role, at_least
from retrieval.corpus.models import Image, Species

#: Meters from the middle to a corner of a cell of 1° at the equator, where cells are largest.
_HALF_DIAGONAL: Final = 78_800
#: Meters from corner to corner of a cell of 0.2° at the equator: iNaturalist blurs within such.
_OBSCURED_METERS: Final = 31_500


def species_without_places(user: Any) -> list[int]:
    """Return the species whose places the user may not see: below the role of reviewer, those of
    the IUCN categories in HIDDEN_PLACES. One SQL query if the setting names any.
    """
    if not settings.HIDDEN_PLACES or at_least(user, Role.REVIEWER):
        return []
    species = Species.objects.filter(conservation_status__in=settings.HIDDEN_PLACES)
    return list(species.order_by("pk").values_list("pk", flat=True))


def rounded_place(
    latitude: float, longitude: float, uncertainty: float | None, *, degrees: float
) -> tuple[float, float, float]:
    """Return the latitude and longitude of the middle of a place's grid cell of `degrees`, and an
    uncertainty in meters that covers the cell.
    """

    def middle(coordinate: float, most: float) -> float:
        return round(min((floor(coordinate / degrees) + 0.5) * degrees, most), 6)

    covering = max(uncertainty or 0.0, round(_HALF_DIAGONAL * degrees))
    return middle(latitude, 90.0), middle(longitude, 180.0), covering


def shown_uncertainty(uncertainty: float | None, *, obscured: bool) -> float | None:
    """Return the uncertainty in meters with which a location is passed on: one that may be obscured
    isn't taken for exact.
    """
    return max(uncertainty or 0.0, _OBSCURED_METERS) if obscured else uncertainty


def hide_places(images: Iterable[Image], user: Any) -> None:
    """Remove the places that the user may not see from images that were read for display."""
    hidden = frozenset(species_without_places(user))
    for image in images:
        if image.species_id in hidden:
            image.latitude = image.longitude = image.location_uncertainty = image.elevation = None
