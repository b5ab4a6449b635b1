"""Values of cells as people write them: dates, numbers, coordinates, and the kind of a column.

A date or a number may be read in two ways: by whether the day or the month comes first, by whether
a point or a comma stands before decimals. Cells that can be read in one way alone show which it is
for their whole column.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Final

from core.text import has_controls
from retrieval.importing.fields import shown
from retrieval.importing.headers import unit_of
from retrieval.importing.records import CustomValue, RecordRefused

NUMBER, DATE, TEXT, YES_NO = "number", "date", "text", "yes_no"
_MOST_LETTERS: Final = 1000

_NOTHING: Final = frozenset((
    "", "na", "n/a", "nan", "null", "none", "-", "--", "–", "—", "?", "#n/a", "#nv", "#null!",
    "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!", "#name?", "#num!", "#zahl!", "#valeur!",
))  # fmt: skip
_YES: Final = ("true", "yes", "ja", "oui", "si", "sí", "wahr", "vrai", "verdadero")
_NO: Final = ("false", "no", "nein", "non", "falsch", "faux", "falso")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.IGNORECASE)
_DATE: Final = re.compile(
    r"(?:(?P<first>\d{4})[./:-](?P<month>\d{1,2})[./:-](?P<day>\d{1,2})"
    r"|(?P<one>\d{1,2})(?P<sign>[./-])\s?(?P<two>\d{1,2})(?P=sign)\s?(?P<last>\d{4}|\d{2}))"
    r"(?:[T ,]+(?P<hour>\d{1,2})[:.h](?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?(?:\s*(?:uhr|h))?\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?",
    re.IGNORECASE,
)
_AMOUNT: Final = re.compile(r"([+\-−]?[\d.,'’\s]+(?:e[+-]?\d+)?)([^\W\d_][\w. ]*)?", re.IGNORECASE)
#: Numbers by the mark before their decimals, with groups of thousands or without.
_NUMBERS: Final = {
    mark: re.compile(
        rf"[+-]?(?:[1-9]\d{{0,2}}(?:\{other}\d{{3}})+|\d+|(?=\{mark}\d))(?:\{mark}\d*)?(?:[eE][+-]?\d+)?"
    )
    for mark, other in (".,", ",.")
}
_DEGREES: Final = re.compile(
    r"([NSEW])?\s*([+\-−]?(?:\d+(?:[.,]\d*)?|[.,]\d+)(?:e[+-]?\d+)?)\s*[°º]?\s*([NSEW])?",
    re.IGNORECASE,
)


def is_nothing(text: str) -> bool:
    """Whether a cell is blank, says that there is no value, or holds a spreadsheet's error."""
    return text.strip().lower() in _NOTHING


@lru_cache(maxsize=10_000)
def _dates(text: str) -> dict[bool, str]:
    """What a text means in ISO's form if the day comes first (True) or the month (False)."""
    found = _DATE.fullmatch(text)
    if found is None:
        return {}
    year = int(found["first"] or found["last"])
    if len(found["last"] or "") == 2:
        year += 2000 if year < 69 else 1900
    one, two = int(found["day"] or found["one"]), int(found["month"] or found["two"])
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if found["half"]:
        hour = hour % 12 + 12 * (found["half"][0] in "pP") if 1 <= hour <= 12 else 99
    zone = (found["zone"] or "").upper().replace("Z", "+00:00").replace("UTC", "+00:00")
    dates = {}
    for day_first in (True, False):
        day, month = (one, two) if day_first or found["first"] else (two, one)
        with suppress(ValueError):
            moment = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001  # of no zone
            whole = moment.isoformat(" ") if found["hour"] else moment.date().isoformat()
            dates[day_first] = whole + zone
    return dates


def iso_date(text: str, day_first: bool | None) -> str:
    """A date in ISO's form; the text itself where it isn't read as a date. `day_first` is the order
    of day and month where the text fits both; None leaves such a text alone.
    """
    dates = _dates(text.strip())
    if len(set(dates.values())) == 1:
        return next(iter(dates.values()))
    return text.strip() if day_first is None else dates.get(day_first, text.strip())


def _numbers(text: str) -> dict[str, float]:
    """What a text of digits, marks and blanks means by the mark before its decimals."""
    text = re.sub(r"(?<=\d)[\s'’](?=\d{3}(?!\d))", "", text.strip()).replace("−", "-")
    return {
        mark: float(text.replace("." if mark == "," else ",", "").replace(mark, "."))
        for mark, pattern in _NUMBERS.items()
        if pattern.fullmatch(text)
    }


def decimal_mark(text: str) -> str:
    """The mark before the decimals of a number that can be read in one way alone; else empty."""
    if "." not in text and "," not in text:
        return ""
    found = _AMOUNT.fullmatch(text)
    marks = list(_numbers(found[1])) if found else []
    return marks[0] if len(marks) == 1 else ""


def number_of(text: str, mark: str, open_marks: str, unit: float | None = None) -> float | None:
    """The number of a cell, in meters where it or the column has a unit of length.

    `mark` stands before decimals in the other cells of the column; where they don't show it, a
    number such as 1.200 could be two if its mark is one of `open_marks`: it raises RecordRefused.
    Returns None for what is no number.
    """
    found = _AMOUNT.fullmatch(text.strip())
    numbers = _numbers(found[1]) if found else {}
    factor = unit_of(found[2]) if found and found[2] else unit or 1.0
    if not numbers or factor is None:
        return None
    if len(set(numbers.values())) == 1:
        return next(iter(numbers.values())) * factor
    if not mark and any(one in text for one in open_marks):
        both = " or ".join(f"{number:.15g}" for number in sorted(numbers.values()))
        reason = f"may be {both}: no other value shows what stands before decimals, not "
        raise RecordRefused("", reason + shown(text.strip()))
    return numbers[mark or "."] * factor


def coordinate_of(text: str, positive: str, negative: str) -> float | None:
    """A latitude or longitude in degrees: `52,5`, `52.5° N`, `-33.9`; None for what is none.
    `positive` and `negative` are the letters of its hemispheres.
    """
    found = _DEGREES.fullmatch(text.strip())
    if found is None:
        return None
    letters = ((found[1] or "") + (found[3] or "")).upper()
    number = float(found[2].replace(",", ".").replace("−", "-"))
    if letters not in ("", positive, negative) or (letters and found[2][0] in "+-−"):
        return None
    return -number if letters == negative else number


@dataclass(slots=True)
class ColumnValues:
    """What all values of a column say of how they are written."""

    filled: int = 0
    emails: int = 0
    day_first: set[bool] = field(default_factory=set)
    """What dates say that fit one order of day and month alone."""
    open_dates: int = 0
    """Dates that fit both orders."""
    an_open_date: str = ""
    decimal_marks: set[str] = field(default_factory=set)
    """Marks of numbers that can be read in one way alone."""
    _kinds: list[str] = field(default_factory=lambda: [YES_NO, NUMBER, DATE])

    def add(self, text: str) -> None:
        """Take a cell into account."""
        text = text.strip()
        if is_nothing(text):
            return
        self.filled += 1
        self.emails += "@" in text and bool(_EMAIL.search(text))
        dates = _dates(text) if text[0].isdigit() else {}
        if self._kinds:
            # A zero before another digit is a code's.
            is_number = text[-1].isdigit() and not re.match(r"[+-]?0\d", text) and _numbers(text)
            fits = {YES_NO: text.lower() in (*_YES, *_NO), NUMBER: is_number, DATE: dates}
            self._kinds = [kind for kind in self._kinds if fits[kind]]
        if mark := decimal_mark(text):
            self.decimal_marks.add(mark)
        if len(dates) == 1:
            self.day_first |= dates.keys()
        elif len(set(dates.values())) == 2:
            self.open_dates += 1
            self.an_open_date = self.an_open_date or text

    @property
    def kind(self) -> str:
        """The kind that all values are of."""
        return self._kinds[0] if self.filled and self._kinds else TEXT

    @property
    def order(self) -> bool | None:
        """Whether the day comes first in dates, where the values show it."""
        return next(iter(self.day_first)) if len(self.day_first) == 1 else None

    @property
    def mark(self) -> str:
        """The mark before decimals, where the values show it."""
        return next(iter(self.decimal_marks)) if len(self.decimal_marks) == 1 else ""


def custom_value(
    text: str, kind: str, mark: str, open_marks: str, day_first: bool | None
) -> CustomValue | None:
    """The value of a custom field; None for a blank cell. Raises RecordRefused where it isn't of
    the kind.
    """
    if is_nothing(text):
        return None
    text = " ".join(text.split())
    if kind == NUMBER:
        number = number_of(text, mark, open_marks)
        if number is None or not abs(number) < 1e300:
            raise RecordRefused("", f"must be a number, not {shown(text)}")
        return int(number) if number.is_integer() and abs(number) < 1e15 else number
    if kind == DATE:
        iso = iso_date(text, day_first)
        if not is_iso(iso):
            raise RecordRefused("", f"must be a date, not {shown(text)}")
        return iso
    if kind == YES_NO:
        if text.lower() not in (*_YES, *_NO):
            raise RecordRefused("", f"must be yes or no, not {shown(text)}")
        return text.lower() in _YES
    if len(text) > _MOST_LETTERS:
        raise RecordRefused("", f"has {len(text):,} letters; at most {_MOST_LETTERS:,} are kept")
    if has_controls(text):
        raise RecordRefused("", "holds control characters")
    return text


def is_iso(text: str) -> bool:
    """Whether a text is a date in ISO's form, or with slashes as tables have always had them."""
    with suppress(ValueError):
        return bool(datetime.fromisoformat(text.strip().replace("/", "-")))
    return False
