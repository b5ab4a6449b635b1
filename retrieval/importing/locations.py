"""Where a record says that its image was taken, and whether that location may be obscured.

The names are those of iNaturalist's exports, of Darwin Core and of this application, in any case
and with any blanks or underscores. Whatever may mean that a location is obscured counts as that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from core.obscured import may_be_obscured
from retrieval.importing import fields
from retrieval.importing.records import RecordRefused

_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "latitude": ("latitude", "decimalLatitude", "lat"),
    "longitude": ("longitude", "decimalLongitude", "lon", "lng", "long"),
    "uncertainty": (
        *("location_uncertainty", "coordinateUncertaintyInMeters", "public_positional_accuracy"),
        "positional_accuracy",
    ),
    "obscured": (
        *("coordinates_obscured", "obscured", "is_obscured", "location_obscured"),
        *("geoprivacy", "taxon_geoprivacy"),
    ),
    "private": ("private_latitude", "private_longitude"),
    "withheld": ("informationWithheld",),
    "generalized": ("dataGeneralizations",),
}
COLUMNS: Final = tuple(name for names in _ROLES.values() for name in names)
"""The names that `location_of` reads; of several for one thing the first that is there."""
#: Of a field that says whether a location is obscured; every other text may say that it is.
_NOT_OBSCURED: Final = frozenset({
    *("", "-", "0", "0.0", "f", "false", "n", "no", "none", "null", "na", "n/a", "nan", "open"),
    *("nein", "falsch", "offen", "non", "faux", "falso", "not obscured", "unobscured"),
})  # fmt: skip
_NUMBER: Final = re.compile(r"([+-]?[0-9]+(?:[.,][0-9]+)?) ?(k?m|°)?")


class Location(NamedTuple):
    """Degrees, meters, and whether the source may have blurred them."""

    latitude: float | None
    longitude: float | None
    uncertainty: float | None
    obscured: bool


def plain_name(name: str) -> str:
    """Return a column's name without what its spellings differ in."""
    return re.sub(r"[\W_]+", "", name).casefold()


_READ: Final = frozenset(map(plain_name, COLUMNS))


class _Keys(NamedTuple):
    """The keys of a record that have a role, in the order of their usual names."""

    latitude: tuple[str, ...]
    longitude: tuple[str, ...]
    uncertainty: tuple[str, ...]
    obscured: tuple[str, ...]
    private: tuple[str, ...]
    withheld: tuple[str, ...]
    generalized: tuple[str, ...]
    accuracies: tuple[int, ...]
    """Where `uncertainty` has that of the location that is shown, and the person's own, if both."""


@lru_cache(maxsize=1000)
def _keys(names: tuple[str, ...]) -> _Keys:
    plain = {plain_name(name): name for name in reversed(names)}
    found = {
        role: tuple(plain[plain_name(one)] for one in usual if plain_name(one) in plain)
        for role, usual in _ROLES.items()
    }
    usual = [plain.get(plain_name(f"{kind}positional_accuracy")) for kind in ("public_", "")]
    both = tuple(found["uncertainty"].index(name) for name in usual if name)
    return _Keys(**found, accuracies=both if len(both) == 2 else ())


def location_of(optional: fields.OptionalFields) -> Location:
    """Return the location of a record; of several uncertainties the largest. What can't be read is
    reported and left out.
    """
    item = optional.item
    # Most records of a source have the same keys.
    keys = _keys(tuple(item))
    latitude = _number(optional, keys.latitude[0], -90, 90) if keys.latitude else None
    longitude = _number(optional, keys.longitude[0], -180, 180) if keys.longitude else None
    if latitude is None or longitude is None:
        latitude = longitude = None
    meters = [_number(optional, key, 0, fields.FARTHEST) for key in keys.uncertainty]
    uncertainty = meters[0] if len(meters) == 1 else max(filter(None, meters), default=None)
    shown, own = (meters[at] for at in keys.accuracies) if keys.accuracies else (None, None)
    obscured = (
        _any_says_so(item, keys.obscured + keys.private)
        or (shown is not None and own is not None and shown > own)
        or may_be_obscured(
            withheld=" ".join(_text(item[key]) for key in keys.withheld) if keys.withheld else "",
            generalized=_any_says_so(item, keys.generalized),
            uncertainty=uncertainty or 0,
        )
    )
    return Location(latitude, longitude, uncertainty, obscured)


def unread(names: Iterable[str], known: Sequence[str]) -> list[str]:
    """Return the columns, in their order, that are neither known nor read for a location."""
    return [
        name
        for name in dict.fromkeys(names)
        if name and name not in known and plain_name(name) not in _READ
    ]


def _any_says_so(item: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    for key in keys:
        value = item[key]
        if value is not None and value is not False and _text(value) not in _NOT_OBSCURED:
            return True
    return False


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split()).casefold()


def _number(optional: fields.OptionalFields, key: str, low: float, high: float) -> float | None:
    value = optional.item[key]
    if type(value) is not str:
        return optional.number(key, low=low, high=high)
    if not value.strip():
        return None
    match = _NUMBER.fullmatch(_text(value))
    number = match and float(match[1].replace(",", ".")) * (1000 if match[2] == "km" else 1)
    try:
        return fields.number({key: value if number is None else number}, key, low=low, high=high)
    except RecordRefused as error:
        optional.leave_out(error)
        return None
