"""The filters of the images' page, one class for each kind: its condition in SQL and how its images
are counted.

A condition is a text about the images `i` with its values, which are texts, numbers and lists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from calendar import monthrange
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from json import dumps
from typing import Any, ClassVar, Final

from django.conf import settings

from core.access import Role, at_least, names_hidden_from
from core.ids import id_of
from core.sql import fetch_all
from retrieval.corpus.counts import WITHDRAWN_BY_SPECIES, image_count
from retrieval.corpus.models import CustomField, Image, ImageTakedown, ImageWithdrawal, SpeciesCount
from retrieval.custom_fields.selectors import fields_visible_to
from retrieval.flags.models import ImageFlag
from retrieval.species.search import like_pattern
from retrieval.species.selectors import species_by_ids

Condition = tuple[str, list[Any]]

MOST_VALUES: Final = 50
"""How many values of a filter are listed with their counts."""
BINS: Final = 20
NONE: Final = "none"

IMAGE: Final = Image._meta.db_table
_WITHDRAWN: Final = (
    f"EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w"
    " WHERE w.image_id = i.id AND w.restored_at IS NULL)"
)
IN_CORPUS: Final = f"NOT {_WITHDRAWN}"
_TO_RESTORE: Final = (
    f"{_WITHDRAWN} AND NOT EXISTS"
    f" (SELECT FROM {ImageTakedown._meta.db_table} t WHERE t.image_id = i.id)"
)


@dataclass(frozen=True, slots=True)
class ValueCount:
    """How many images have a value of a filter, or lie in a range `start..end`."""

    value: str
    label: str
    count: int


class ImageFilter(ABC):
    """A filter of images. `read` refuses what it doesn't know with a ValueError for people."""

    shows: str = "values"
    """How the page draws it: values, folders, species, text, numbers or dates."""
    is_quick: ClassVar[bool] = False
    """Whether its numbers come from few rows, and so before others."""
    takes_empty: ClassVar[bool] = False
    """Whether an empty text means images without; else it is ignored."""

    def __init__(self, parameter: str, label: str, key: str = "") -> None:
        self.parameter, self.label, self.key = parameter, label, key or parameter

    @abstractmethod
    def read(self, texts: Sequence[str]) -> Any:
        """The value that the parameter's texts mean."""

    @abstractmethod
    def where(self, value: Any) -> Condition:
        """The condition on the images."""

    @abstractmethod
    def count(self, among: Condition, chosen: Any) -> list[ValueCount]:
        """Count the images that meet a condition; `chosen` is the filter's value or None."""


class ValueFilter(ImageFilter):
    """One or more values of an expression; the empty one is that of images without."""

    takes_empty = True

    def __init__(
        self,
        parameter: str,
        label: str,
        expression: str,
        words: Mapping[str, str] | None = None,
        name: str = "",
    ) -> None:
        """With `words` for all values that there are; `name` is the expression's parameter."""
        super().__init__(parameter, label, f"{parameter}:{name}" if name else "")
        self.expression, self.words, self.name = expression, words, name

    def read(self, texts: Sequence[str]) -> list[str]:
        _require_known(texts, self.words)
        return list(dict.fromkeys(texts))

    def where(self, value: list[str]) -> Condition:
        # For one value an index gives the images in their order.
        if len(value) == 1:
            return f"{self.expression} = %s", value
        return f"{self.expression} = ANY(%s)", [value]

    def count(self, among: Condition, chosen: list[str] | None) -> list[ValueCount]:
        """The most frequent ones, and those that are chosen."""
        rows = fetch_all(
            f"SELECT value, images FROM (SELECT {self.expression} AS value, count(*) AS images"
            f" FROM {IMAGE} i WHERE {among[0]} GROUP BY 1) counted"
            " ORDER BY value = ANY(%s::text[]) DESC, images DESC, value LIMIT %s",
            [*([self.name] if self.name else []), *among[1], chosen or [], MOST_VALUES],
        )
        words = {"": "Not known", **(self.words or {})}
        found = sorted(rows, key=lambda row: (-row[1], row[0]))
        return [ValueCount(value, words.get(value, value), count) for value, count in found]


class TaxonTextFilter(ValueFilter):
    """A part of what the source calls the taxon."""

    shows = "text"
    takes_empty = False

    def read(self, texts: Sequence[str]) -> Any:
        if not texts[-1].strip():
            raise ValueError("Give a part of the taxon text.")
        return texts[-1].strip()

    def where(self, value: Any) -> Condition:
        return "(i.taxon_text <> '' AND i.taxon_text ILIKE %s)", [f"%{like_pattern(value)}%"]

    def count(self, among: Condition, chosen: Any) -> list[ValueCount]:
        return super().count((f"{among[0]} AND i.taxon_text <> ''", among[1]), None)


class CustomValueFilter(ValueFilter):
    """The same of a custom field, as the index of all custom fields finds them."""

    def where(self, value: list[str]) -> Condition:
        conditions, values = list[str](), list[Any]()
        for one in value:
            stored = one == "yes" if self.words and one else one
            conditions.append("i.custom_fields @> %s::jsonb" if one else _WITHOUT_FIELD)
            values.append(dumps({self.name: stored}) if one else self.name)
        return f"({' OR '.join(conditions)})", values


class RangeFilter(ImageFilter):
    """From one day or number to another, both included, or images without."""

    def __init__(
        self, parameter: str, label: str, shows: str, expression: str, name: str = ""
    ) -> None:
        super().__init__(parameter, label, f"{parameter}:{name}" if name else "")
        self.shows, self.expression, self.name = shows, expression, name
        self.parameters = [name] * expression.count("%s")

    def read(self, texts: Sequence[str]) -> tuple[str, str] | None:
        """The ends of `low..high`, of which one may be missing; None for `none`."""
        text = texts[-1]
        if text == NONE:
            return None
        low, dots, high = text.partition("..")
        if not dots or not (low or high):
            raise ValueError(f"“{text[:50]}” is no range such as 1..5, 1.. or ..5.")
        for end in filter(None, (low, high)):
            if (_day(end) is None) if self.shows == "dates" else not _is_number(end):
                of_kind = "day such as 2024-05-31" if self.shows == "dates" else "number"
                raise ValueError(f"“{end[:50]}” is no {of_kind}.")
        return low, high

    def where(self, value: tuple[str, str] | None) -> Condition:
        if value is None:
            return _WITHOUT_FIELD, [self.name]
        return self._between(value, f"{self.expression} >= %s", f"{self.expression} <= %s")

    def _between(self, value: tuple[str, str], low: str, high: str) -> Condition:
        used = [(condition, end) for condition, end in zip((low, high), value, strict=True) if end]
        values = [one for _, end in used for one in (*self.parameters, end)]
        return " AND ".join(condition for condition, _ in used), values

    def count(self, among: Condition, chosen: Any) -> list[ValueCount]:
        return (self._days if self.shows == "dates" else self._numbers)(among)

    def _numbers(self, among: Condition) -> list[ValueCount]:
        rows = fetch_all(
            f"WITH v AS (SELECT {self.expression} AS x, count(*) AS images FROM {IMAGE} i"
            f" WHERE {among[0]} GROUP BY 1), b AS (SELECT min(x) AS low, max(x) AS high FROM v)"
            " SELECT CASE WHEN low = high THEN 1"
            " ELSE least(width_bucket(x, low, high, %s), %s) END AS bin,"
            " low, high, min(x), max(x), sum(images)::bigint"
            " FROM v, b WHERE x IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1",
            [*self.parameters, *among[1], BINS, BINS],
        )
        if not rows:
            return []
        low, high = rows[0][1:3]
        # From the least to the greatest number of each, so that a bin is a range of its images.
        known = {number: (start, end, count) for number, _, _, start, end, count in rows}
        width, bins = (high - low) / BINS, list[ValueCount]()
        for number in range(1, BINS + 1 if high > low else 2):
            empty = (low + width * (number - 1), low + width * number, 0)
            start, end, count = known.get(number, empty)
            bins.append(_bin(_exact(start), _exact(end), count))
        return bins

    def _days(self, among: Condition) -> list[ValueCount]:
        """By days, months, years or decades, whichever are few enough."""
        rows = fetch_all(
            f"SELECT ({self.expression})::text, count(*) FROM {IMAGE} i WHERE {among[0]}"
            " GROUP BY 1",
            [*self.parameters, *among[1]],
        )
        days = [(day, count) for text, count in rows if (day := _day(text or ""))]
        if not days:
            return []
        first, last = min(days)[0], max(days)[0]
        span = (last - first).days
        # How much of 2024-05-31 names a bin.
        length = 10 if span <= 45 else 7 if span <= 1100 else 4 if span <= 21_900 else 3
        # No month is shorter than 28 days, so that each has a day here.
        among_them = range(0, span, 1 if length == 10 else 28)
        bins = {str(first + timedelta(number))[:length]: 0 for number in among_them}
        counts = Counter(bins | {str(last)[:length]: 0})
        for day, count in days:
            counts[str(day)[:length]] += count
        return [_days_bin(name, count) for name, count in sorted(counts.items())]


class DateFilter(RangeFilter):
    """From one day to another in UTC, as the index of times finds them, or without a date."""

    def __init__(self) -> None:
        super().__init__("date", "Date", "dates", "(i.observed_at AT TIME ZONE 'UTC')::date")

    def where(self, value: tuple[str, str] | None) -> Condition:
        if value is None:
            return "i.observed_at IS NULL", []
        return self._between(
            value,
            "i.observed_at >= (%s::date)::timestamp AT TIME ZONE 'UTC'",
            "i.observed_at < (%s::date + 1)::timestamp AT TIME ZONE 'UTC'",
        )


class FolderFilter(ImageFilter):
    """A folder with all below it; the empty one is that of images without."""

    shows = "folders"
    takes_empty = True

    def read(self, texts: Sequence[str]) -> str:
        return texts[-1].rstrip("/")

    def where(self, value: str) -> Condition:
        if not value:
            return "i.folder = ''", []
        # As the index of folders has its rows.
        below = f"{like_pattern(value)}/%"
        return "(i.folder <> '' AND (i.folder = %s OR i.folder LIKE %s))", [value, below]

    def count(self, among: Condition, chosen: str | None) -> list[ValueCount]:
        """By the folders below the chosen one."""
        inside = f"{chosen}/" if chosen else ""
        rows = fetch_all(
            "SELECT split_part(substr(i.folder, %s), '/', 1) AS name, count(*)"
            f" FROM {IMAGE} i WHERE {among[0]} AND i.folder LIKE %s"
            " GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s",
            [len(inside) + 1, *among[1], f"{like_pattern(inside)}%", MOST_VALUES],
        )
        return [ValueCount(inside + name, name or "No folder", count) for name, count in rows]


class SpeciesFilter(ImageFilter):
    """One or more species by id, or none."""

    shows = "species"
    is_quick = True

    def read(self, texts: Sequence[str]) -> list[int | None]:
        ids = {text: id_of(text) for text in texts if text != NONE}
        if wrong := [text for text, number in ids.items() if number is None]:
            raise ValueError(f"“{wrong[0][:50]}” is no id of a species.")
        return [*ids.values(), *([None] if NONE in texts else [])]

    def where(self, value: list[int | None]) -> Condition:
        ids = [number for number in value if number is not None]
        if not ids:
            return "i.species_id IS NULL", []
        if len(value) == 1:
            # For one value an index gives the images in their order.
            return "i.species_id = %s", ids
        or_none = "i.species_id IS NULL OR " if None in value else ""
        return f"({or_none}i.species_id = ANY(%s))", [ids]

    def count(self, among: Condition, chosen: list[int | None] | None) -> list[ValueCount]:
        # The numbers that triggers keep, where all images are counted.
        everything = among == (IN_CORPUS, [])
        rows = fetch_all(
            f"SELECT species_id, images {_KEPT} WHERE images > 0 ORDER BY 2 DESC, 1 LIMIT %s"
            if everything
            else f"SELECT i.species_id, count(*) FROM {IMAGE} i WHERE {among[0]}"
            " GROUP BY 1 ORDER BY i.species_id IS NULL DESC, 2 DESC, 1 LIMIT %s",
            [*among[1], MOST_VALUES],
        )
        if everything:
            none = image_count() - fetch_all(f"SELECT coalesce(sum(images), 0) {_KEPT}")[0][0]
            rows = ([(None, none)] if none > 0 else []) + rows
        names: dict[int | None, str] = {
            one.pk: one.common_name or one.scientific_name
            for one in species_by_ids([pk for pk, _ in rows if pk is not None])
        } | {None: "No species"}
        return [
            ValueCount(NONE if pk is None else str(pk), names[pk], count)
            for pk, count in rows
            if pk in names
        ]


_KEPT: Final = f"""
FROM (SELECT c.species_id, c.images - coalesce(gone.images, 0) AS images
        FROM {SpeciesCount._meta.db_table} c
        LEFT JOIN ({WITHDRAWN_BY_SPECIES}) gone USING (species_id)) kept
"""


class FlagFilter(ImageFilter):
    """Images with open flags, of any kind or of some, and for reviewers those withdrawn."""

    is_quick = True
    ANY: Final = "any"
    WITHDRAWN: Final = "withdrawn"

    def __init__(self, *, withdrawn: bool) -> None:
        super().__init__("flag", "Flags")
        self.words = {self.ANY: "Any flag", **dict(ImageFlag.Kind.choices)}
        if withdrawn:
            self.words[self.WITHDRAWN] = "Withdrawn"

    def read(self, texts: Sequence[str]) -> list[str]:
        _require_known(texts, self.words)
        return list(dict.fromkeys(texts))

    def where(self, value: list[str]) -> Condition:
        kinds = [kind for kind in value if kind != self.WITHDRAWN]
        flagged = (
            f"({IN_CORPUS} AND EXISTS (SELECT FROM {ImageFlag._meta.db_table} f WHERE"
            " f.image_id = i.id AND f.state = 'open' AND (f.kind = ANY(%s) OR 'any' = ANY(%s))))"
        )
        if self.WITHDRAWN not in value:
            return flagged, [kinds, kinds]
        return f"({_TO_RESTORE} OR {flagged})", [kinds, kinds]

    def count(self, among: Condition, chosen: list[str] | None) -> list[ValueCount]:
        # From the few flags and withdrawals to their images.
        where, values = among
        rows = fetch_all(
            f"SELECT f.kind, count(DISTINCT i.id) FROM {ImageFlag._meta.db_table} f"
            f" JOIN {IMAGE} i ON i.id = f.image_id WHERE f.state = 'open' AND {where}"
            " GROUP BY GROUPING SETS ((f.kind), ())",
            values,
        )
        counts = {self.ANY if kind is None else kind: count for kind, count in rows}
        if self.WITHDRAWN in self.words:
            others = where.replace(IN_CORPUS, _TO_RESTORE, 1)
            [(counts[self.WITHDRAWN],)] = fetch_all(
                f"SELECT count(*) FROM {IMAGE} i WHERE i.id IN (SELECT image_id FROM"
                f" {ImageWithdrawal._meta.db_table} WHERE restored_at IS NULL) AND {others}",
                values,
            )
        return [ValueCount(k, words, counts[k]) for k, words in self.words.items() if counts.get(k)]


_WITHOUT_FIELD: Final = "NOT i.custom_fields ? %s"
_LOCATION: Final = "(CASE WHEN i.latitude IS NULL THEN 'none' ELSE 'known' END)"
_YES_NO: Final = (
    "(CASE i.custom_fields ->> %s WHEN 'true' THEN 'yes' WHEN 'false' THEN 'no' ELSE '' END)"
)
_NUMBER: Final = (
    "(CASE WHEN jsonb_typeof(i.custom_fields -> %s) = 'number'"
    " THEN (i.custom_fields -> %s)::float8 END)"
)
_DAY: Final = (
    r"(CASE WHEN i.custom_fields ->> %s ~ '^\d{4}-\d\d-\d\d'"
    " THEN left(i.custom_fields ->> %s, 10) END)"
)
#: For a custom field's name; its texts are `name:value`.
_CUSTOM: Final[dict[str, Callable[[str], ImageFilter]]] = {
    CustomField.Kind.TEXT: lambda name: CustomValueFilter(
        "field", name, "coalesce(i.custom_fields ->> %s, '')", name=name
    ),
    CustomField.Kind.YES_NO: lambda name: CustomValueFilter(
        "field", name, _YES_NO, {"yes": "Yes", "no": "No", "": "Not known"}, name
    ),
    CustomField.Kind.NUMBER: lambda name: RangeFilter("field", name, "numbers", _NUMBER, name),
    CustomField.Kind.DATE: lambda name: RangeFilter("field", name, "dates", _DAY, name),
}


def filters_for(user: Any) -> list[ImageFilter]:
    """The filters that a user may use, in the order of the page: none that tells what is hidden
    from them. One SQL query.
    """
    reviewer = at_least(user, Role.REVIEWER)
    names = [
        FolderFilter("folder", "Folder"),
        SpeciesFilter("species", "Species"),
        TaxonTextFilter("taxon", "Taxon text", "i.taxon_text"),
    ]
    location = ValueFilter("location", "Location", _LOCATION, {"known": "Known", NONE: "Not known"})
    return [
        ValueFilter("dataset", "Data set", "i.dataset"),
        *(() if names_hidden_from(user) else names),
        DateFilter(),
        ValueFilter("license", "License", "i.license"),
        FlagFilter(withdrawn=reviewer),
        *([location] if reviewer or not settings.HIDDEN_PLACES else ()),
        *(_CUSTOM[one.kind](one.name) for one in fields_visible_to(user)),
    ]


def _require_known(texts: Sequence[str], words: Mapping[str, str] | None) -> None:
    for text in texts:
        if words is not None and text not in words:
            raise ValueError(f"“{text[:50]}” is none of its values.")


def _day(text: str) -> date | None:
    """The day that a text means; None for what is no day, or of a year that means “never”."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year < 9000 else None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _days_bin(name: str, count: int) -> ValueCount:
    """The bin of the day, month, year or decade with which its days begin."""
    last = "9999-12-31"[len(name) :]
    if len(name) == 7:
        last = f"-{monthrange(int(name[:4]), int(name[5:]))[1]}"
    return _bin(name + "0000-01-01"[len(name) :], name + last, count)


def _bin(start: str, end: str, count: int) -> ValueCount:
    return ValueCount(f"{start}..{end}", f"{start} – {end}" if start != end else start, count)


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")
