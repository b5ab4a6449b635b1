"""The filters of the images' page, one class for each kind: its parameter, its condition in SQL and
how its images are counted.

A condition is a text about the images `i` with its values, which are texts, numbers and lists.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from json import dumps
from typing import Any, ClassVar, Final

from django.conf import settings

from core.access import Role, at_least, names_hidden_from
from core.ids import id_of
from core.sql import fetch_all
from retrieval.corpus.counts import WITHDRAWN_BY_SPECIES, image_count
from retrieval.corpus.models import CustomField, Image, ImageTakedown, ImageWithdrawal, SpeciesCount
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
    """How many images have a value of a filter."""

    value: str
    label: str
    count: int


@dataclass(frozen=True, slots=True)
class Bin:
    """How many images lie in a range, with both ends."""

    start: str
    end: str
    count: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The images by the values of a filter, or by ranges of them."""

    values: list[ValueCount] = field(default_factory=list)
    more: bool = False
    """Whether there are values that aren't listed."""
    bins: list[Bin] = field(default_factory=list)


class ImageFilter(ABC):
    """A filter of images. `read` refuses what it doesn't know with a ValueError for people."""

    shows: ClassVar[str]
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
    def count(self, among: Condition, chosen: Any) -> Counts:
        """Count the images that meet a condition; `chosen` is the filter's value or None."""


class ColumnFilter(ImageFilter):
    """One or more values of a text column; the empty one is that of images without."""

    shows = "values"
    takes_empty = True

    def __init__(self, parameter: str, label: str, column: str) -> None:
        super().__init__(parameter, label)
        self.column = column

    def read(self, texts: Sequence[str]) -> list[str]:
        return list(dict.fromkeys(texts))

    def where(self, value: list[str]) -> Condition:
        # For one value an index gives the images in their order.
        if len(value) == 1:
            return f"i.{self.column} = %s", value
        return f"i.{self.column} = ANY(%s)", [value]

    def count(self, among: Condition, chosen: list[str] | None) -> Counts:
        return _values_counted(f"i.{self.column}", [], among, chosen or [])


class FolderFilter(ImageFilter):
    """A folder with all below it; the empty one is that of images without."""

    shows = "folders"
    takes_empty = True

    def __init__(self) -> None:
        super().__init__("folder", "Folder")

    def read(self, texts: Sequence[str]) -> str:
        return texts[-1].rstrip("/")

    def where(self, value: str) -> Condition:
        if not value:
            return "i.folder = ''", []
        # As the index of folders has its rows.
        below = f"{like_pattern(value)}/%"
        return "(i.folder <> '' AND (i.folder = %s OR i.folder LIKE %s))", [value, below]

    def count(self, among: Condition, chosen: str | None) -> Counts:
        """By the folders below the chosen one."""
        inside = f"{chosen}/" if chosen else ""
        below, values = among
        if chosen:
            below += " AND i.folder LIKE %s"
            values = [*values, f"{like_pattern(inside)}%"]
        rows = fetch_all(
            "SELECT split_part(substr(i.folder, %s), '/', 1) AS name, count(*)"
            f" FROM {IMAGE} i WHERE {below} GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT %s",
            [len(inside) + 1, *values, MOST_VALUES + 1],
        )
        return _counts(
            (inside + name, name or "No folder", count)
            for name, count in rows
            if name or not chosen
        )


class TaxonTextFilter(ImageFilter):
    """A part of what the source calls the taxon."""

    shows = "text"

    def __init__(self) -> None:
        super().__init__("taxon", "Taxon text")

    def read(self, texts: Sequence[str]) -> str:
        if not texts[-1].strip():
            raise ValueError("Give a part of the taxon text.")
        return texts[-1].strip()

    def where(self, value: str) -> Condition:
        return "(i.taxon_text <> '' AND i.taxon_text ILIKE %s)", [f"%{like_pattern(value)}%"]

    def count(self, among: Condition, chosen: str | None) -> Counts:
        where, values = among
        return _values_counted("i.taxon_text", [], (f"{where} AND i.taxon_text <> ''", values), [])


class SpeciesFilter(ImageFilter):
    """One or more species by id, or none."""

    shows = "species"
    is_quick = True

    def __init__(self) -> None:
        super().__init__("species", "Species")

    def read(self, texts: Sequence[str]) -> list[int | None]:
        ids = {text: id_of(text) for text in texts if text and text != NONE}
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
        if None not in value:
            return "i.species_id = ANY(%s)", [ids]
        return "(i.species_id IS NULL OR i.species_id = ANY(%s))", [ids]

    def count(self, among: Condition, chosen: list[int | None] | None) -> Counts:
        # The numbers that triggers keep, where all images are counted.
        everything = among == (IN_CORPUS, [])
        rows = fetch_all(
            _SPECIES_OF_ALL
            if everything
            else f"SELECT i.species_id, count(*) FROM {IMAGE} i WHERE {among[0]}"
            " GROUP BY 1 ORDER BY i.species_id IS NULL DESC, 2 DESC, 1 LIMIT %s",
            [*among[1], MOST_VALUES + 2],
        )
        counts = dict(rows)
        if everything:
            none = image_count() - fetch_all(f"SELECT coalesce(sum(images), 0) {_KEPT}")[0][0]
            counts = ({None: none} if none > 0 else {}) | counts
        names = {
            one.pk: one.common_name or one.scientific_name
            for one in species_by_ids([pk for pk in counts if pk is not None])
        }
        return _counts(
            (NONE if pk is None else str(pk), "No species" if pk is None else names[pk], count)
            for pk, count in counts.items()
            if count and (pk is None or pk in names)
        )


_KEPT: Final = f"""
FROM (SELECT c.species_id, c.images - coalesce(gone.images, 0) AS images
        FROM {SpeciesCount._meta.db_table} c
        LEFT JOIN ({WITHDRAWN_BY_SPECIES}) gone USING (species_id)) kept
"""
_SPECIES_OF_ALL: Final = f"SELECT species_id, images {_KEPT} ORDER BY 2 DESC, 1 LIMIT %s"


class FlagFilter(ImageFilter):
    """Images with open flags, of any kind or of some, and for reviewers those withdrawn."""

    shows = "values"
    is_quick = True
    ANY: Final = "any"
    WITHDRAWN: Final = "withdrawn"

    def __init__(self, *, withdrawn: bool) -> None:
        super().__init__("flag", "Flags")
        self.labels = {self.ANY: "Any flag", **dict(ImageFlag.Kind.choices)}
        if withdrawn:
            self.labels[self.WITHDRAWN] = "Withdrawn"

    def read(self, texts: Sequence[str]) -> list[str]:
        if wrong := [text for text in texts if text not in self.labels]:
            raise ValueError(f"“{wrong[0][:50]}” is no kind of flag.")
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

    def count(self, among: Condition, chosen: list[str] | None) -> Counts:
        # From the few flags and withdrawals to their images.
        where, values = among
        rows = fetch_all(
            f"SELECT f.kind, count(DISTINCT i.id) FROM {ImageFlag._meta.db_table} f"
            f" JOIN {IMAGE} i ON i.id = f.image_id WHERE f.state = 'open' AND {where}"
            " GROUP BY GROUPING SETS ((f.kind), ())",
            values,
        )
        counts = {self.ANY if kind is None else kind: count for kind, count in rows}
        if self.WITHDRAWN in self.labels:
            others = where.replace(IN_CORPUS, _TO_RESTORE, 1)
            [(counts[self.WITHDRAWN],)] = fetch_all(
                f"SELECT count(*) FROM {IMAGE} i WHERE i.id IN (SELECT image_id FROM"
                f" {ImageWithdrawal._meta.db_table} WHERE restored_at IS NULL) AND {others}",
                values,
            )
        return _counts((k, label, counts[k]) for k, label in self.labels.items() if counts.get(k))


class LocationFilter(ImageFilter):
    """Whether the location is known."""

    shows = "values"
    labels: ClassVar = {"known": "Known", NONE: "Not known"}

    def __init__(self) -> None:
        super().__init__("location", "Location")

    def read(self, texts: Sequence[str]) -> str:
        if texts[-1] not in self.labels:
            raise ValueError("A location is “known” or “none”.")
        return texts[-1]

    def where(self, value: str) -> Condition:
        return ("i.latitude IS NULL" if value == NONE else "i.latitude IS NOT NULL"), []

    def count(self, among: Condition, chosen: str | None) -> Counts:
        rows = fetch_all(
            "SELECT CASE WHEN i.latitude IS NULL THEN 'none' ELSE 'known' END, count(*)"
            f" FROM {IMAGE} i WHERE {among[0]} GROUP BY 1 ORDER BY 1",
            among[1],
        )
        return _counts((value, self.labels[value], count) for value, count in rows)


class DateFilter(ImageFilter):
    """From one day to another, both included, or without a date; in UTC."""

    shows = "dates"

    def __init__(self) -> None:
        super().__init__("date", "Date")

    def read(self, texts: Sequence[str]) -> tuple[str, str] | None:
        return _range(texts[-1], _day)

    def where(self, value: tuple[str, str] | None) -> Condition:
        if value is None:
            return "i.observed_at IS NULL", []
        return _between(
            "i.observed_at",
            [],
            value,
            low="(%s::date)::timestamp AT TIME ZONE 'UTC'",
            high="((%s::date) + 1)::timestamp AT TIME ZONE 'UTC'",
            below="<",
        )

    def count(self, among: Condition, chosen: Any) -> Counts:
        return _days_counted("(i.observed_at AT TIME ZONE 'UTC')::date::text", [], among)


class CustomFilter(ImageFilter):
    """A filter by a custom field; its texts are `name:value`."""

    def __init__(self, name: str) -> None:
        super().__init__("field", name, key=f"field:{name}")
        self.name = name


class CustomTextFilter(CustomFilter):
    """One or more values of a text; the empty one is that of images without."""

    shows = "values"
    takes_empty = True

    def read(self, texts: Sequence[str]) -> list[Any]:
        return list(dict.fromkeys(texts))

    def where(self, value: list[Any]) -> Condition:
        # As the index of all custom fields finds them.
        conditions, values = list[str](), list[Any]()
        for one in value:
            if one == "":
                conditions.append("NOT i.custom_fields ? %s")
                values.append(self.name)
            else:
                conditions.append("i.custom_fields @> %s::jsonb")
                values.append(dumps({self.name: one}))
        return f"({' OR '.join(conditions)})", values

    def count(self, among: Condition, chosen: list[Any] | None) -> Counts:
        expression = "coalesce(i.custom_fields ->> %s, '')"
        return _values_counted(expression, [self.name], among, list(map(str, chosen or [])))


class CustomYesNoFilter(CustomTextFilter):
    """Yes, no, or images without."""

    _values: ClassVar[dict[str, Any]] = {"yes": True, "no": False, "": ""}
    _words: ClassVar = {"true": ("yes", "Yes"), "false": ("no", "No"), "": ("", "Not known")}

    def read(self, texts: Sequence[str]) -> list[Any]:
        if wrong := [text for text in texts if text not in self._values]:
            raise ValueError(f"“{wrong[0][:50]}” is neither yes nor no.")
        return [self._values[text] for text in dict.fromkeys(texts)]

    def count(self, among: Condition, chosen: list[Any] | None) -> Counts:
        found = super().count(among, None).values
        return _counts((*self._words.get(v.value, (v.value, v.label)), v.count) for v in found)


class CustomNumberFilter(CustomFilter):
    """From one number to another, both included, or images without."""

    shows = "numbers"
    _EXPRESSION: Final = (
        "(CASE WHEN jsonb_typeof(i.custom_fields -> %s) = 'number'"
        " THEN (i.custom_fields -> %s)::float8 END)"
    )

    def read(self, texts: Sequence[str]) -> tuple[str, str] | None:
        return _range(texts[-1], _number)

    def where(self, value: tuple[str, str] | None) -> Condition:
        if value is None:
            return "NOT i.custom_fields ? %s", [self.name]
        return _between(
            self._EXPRESSION, [self.name, self.name], value, low="%s::float8", high="%s::float8"
        )

    def count(self, among: Condition, chosen: Any) -> Counts:
        rows = fetch_all(
            f"WITH v AS (SELECT {self._EXPRESSION} AS x, count(*) AS images FROM {IMAGE} i"
            f" WHERE {among[0]} GROUP BY 1), b AS (SELECT min(x) AS low, max(x) AS high FROM v)"
            " SELECT CASE WHEN low = high THEN 1"
            " ELSE least(width_bucket(x, low, high, %s), %s) END AS bin,"
            " low, high, min(x), max(x), sum(images)::bigint"
            " FROM v, b WHERE x IS NOT NULL GROUP BY 1, 2, 3 ORDER BY 1",
            [self.name, self.name, *among[1], BINS, BINS],
        )
        if not rows:
            return Counts()
        low, high = rows[0][1:3]
        # From the least to the greatest number of each, so that a bin is a range of its images.
        bins = {number: Bin(_exact(a), _exact(b), count) for number, _, _, a, b, count in rows}
        for number in range(1, BINS + 1 if high > low else 2):
            start, end = (low + (high - low) * n / BINS for n in (number - 1, number))
            bins.setdefault(number, Bin(_exact(start), _exact(end), 0))
        return Counts(bins=[bins[number] for number in sorted(bins)])


class CustomDateFilter(CustomFilter):
    """From one day to another, both included, or images without."""

    shows = "dates"
    _EXPRESSION: Final = (
        r"(CASE WHEN i.custom_fields ->> %s ~ '^\d{4}-\d\d-\d\d'"
        " THEN left(i.custom_fields ->> %s, 10) END)"
    )

    def read(self, texts: Sequence[str]) -> tuple[str, str] | None:
        return _range(texts[-1], _day)

    def where(self, value: tuple[str, str] | None) -> Condition:
        if value is None:
            return "NOT i.custom_fields ? %s", [self.name]
        return _between(self._EXPRESSION, [self.name, self.name], value)

    def count(self, among: Condition, chosen: Any) -> Counts:
        return _days_counted(self._EXPRESSION, [self.name, self.name], among)


_CUSTOM: Final[dict[str, type[CustomFilter]]] = {
    CustomField.Kind.NUMBER: CustomNumberFilter,
    CustomField.Kind.DATE: CustomDateFilter,
    CustomField.Kind.TEXT: CustomTextFilter,
    CustomField.Kind.YES_NO: CustomYesNoFilter,
}


def filters_for(user: Any) -> list[ImageFilter]:
    """The filters that a user may use, in the order of the page: none that tells what is hidden
    from them. One SQL query.
    """
    names_shown = not names_hidden_from(user)
    reviewer = at_least(user, Role.REVIEWER)
    return [
        ColumnFilter("dataset", "Data set", "dataset"),
        *([FolderFilter(), SpeciesFilter(), TaxonTextFilter()] if names_shown else []),
        DateFilter(),
        ColumnFilter("license", "License", "license"),
        FlagFilter(withdrawn=reviewer),
        *([LocationFilter()] if reviewer or not settings.HIDDEN_PLACES else []),
        *(_CUSTOM[one.kind](one.name) for one in custom_fields_for(user)),
    ]


def custom_fields_for(user: Any) -> list[CustomField]:
    """The custom fields that a user may see, by name. One SQL query."""
    fields = CustomField.objects.order_by("name")
    if not at_least(user, Role.REVIEWER):
        fields = fields.filter(shown_to_annotators=True)
    return list(fields)


def _values_counted(
    expression: str, of_expression: list[Any], among: Condition, chosen: list[str]
) -> Counts:
    """The values of an expression, the most frequent first, chosen ones in any case."""
    rows = fetch_all(
        f"SELECT value, images FROM (SELECT {expression} AS value, count(*) AS images"
        f" FROM {IMAGE} i WHERE {among[0]} GROUP BY 1) counted"
        " ORDER BY value = ANY(%s::text[]) DESC, images DESC, value LIMIT %s",
        [*of_expression, *among[1], chosen, MOST_VALUES + 1],
    )
    found = sorted(rows, key=lambda row: (-row[1], row[0]))
    return _counts((value, value or "Not known", count) for value, count in found)


def _days_counted(expression: str, of_expression: list[Any], among: Condition) -> Counts:
    """By days, months, years or decades, whichever are few enough."""
    rows = fetch_all(
        f"SELECT {expression} AS day, count(*) FROM {IMAGE} i WHERE {among[0]} GROUP BY 1",
        [*of_expression, *among[1]],
    )
    days = [(day, count) for text, count in rows if (day := _parsed(text or ""))]
    if not days:
        return Counts()
    first, last = min(days)[0], max(days)[0]
    months = _months_of_bins((last - first).days)
    counts = Counter[date]()
    for day, count in days:
        counts[_begin(day, months)] += count
    start, bins = _begin(first, months), list[Bin]()
    while start <= last:
        following = _following(start, months)
        end = (following - timedelta(days=1)).isoformat()
        bins.append(Bin(start.isoformat(), end, counts[start]))
        start = following
    return Counts(bins=bins)


def _counts(rows: Iterable[tuple[str, str, int]]) -> Counts:
    listed = [ValueCount(*row) for row in rows]
    return Counts(values=listed[:MOST_VALUES], more=len(listed) > MOST_VALUES)


def _parsed(text: str) -> date | None:
    """The day that a text means; None for what is no day, or of a year that means “never”."""
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    return day if day.year < 9000 else None


def _months_of_bins(days: int) -> int:
    """How many months each bin of so many days has; 0 for bins of a day."""
    return 0 if days <= 45 else 1 if days <= 3 * 366 else 12 if days <= 60 * 366 else 120


def _begin(day: date, months: int) -> date:
    """The first day of the day's bin."""
    if months < 12:
        return day.replace(day=1) if months else day
    return date(day.year if months == 12 else max(1, day.year // 10 * 10), 1, 1)


def _following(day: date, months: int) -> date:
    """The first day of the next bin."""
    if not months:
        return day + timedelta(days=1)
    if months == 120:
        return date(day.year // 10 * 10 + 10, 1, 1)
    later = day.year * 12 + day.month - 1 + months
    return date(later // 12, later % 12 + 1, 1)


def _between(
    expression: str,
    of_expression: list[Any],
    value: tuple[str, str],
    *,
    low: str = "%s",
    high: str = "%s",
    below: str = "<=",
) -> Condition:
    conditions, values = list[str](), list[Any]()
    for end, compared in zip(value, (f">= {low}", f"{below} {high}"), strict=True):
        if end:
            conditions.append(f"{expression} {compared}")
            values += [*of_expression, end]
    return " AND ".join(conditions), values


def _range(text: str, checked: Any) -> tuple[str, str] | None:
    """The ends of `low..high`, of which one may be missing; None for `none`."""
    if text == NONE:
        return None
    low, dots, high = text.partition("..")
    if not dots or not (low or high):
        raise ValueError(f"“{text[:50]}” is no range such as 1..5, 1.. or ..5.")
    return checked(low), checked(high)


def _day(text: str) -> str:
    if text and _parsed(text) is None:
        raise ValueError(f"“{text[:50]}” is no day such as 2024-05-31.")
    return text


def _number(text: str) -> str:
    try:
        if text and not math.isfinite(float(text)):
            raise ValueError
    except ValueError:
        raise ValueError(f"“{text[:50]}” is no number.") from None
    return text


def _exact(number: float) -> str:
    return repr(number).removesuffix(".0")
