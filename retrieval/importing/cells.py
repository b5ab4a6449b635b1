"""Values of cells as people write them: dates, numbers, coordinates, and the kind of a column."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache, lru_cache
from typing import Final

from core.text import has_controls
from retrieval.importing.fields import shown
from retrieval.importing.headers import unit_of
from retrieval.importing.records import CustomValue, RecordRefused

NUMBER, DATE, TEXT, YES_NO = KINDS = "number", "date", "text", "yes_no"
MOST_LETTERS: Final = 1000

_NOTHING: Final = frozenset((
    "", "na", "n/a", "n.a.", "nan", "null", "none", "nil", "-", "--", "–", "—", "?", "#n/a", "#na",
    "#nv", "#null!", "#div/0!", "#value!", "#wert!", "#ref!", "#bezug!", "#name?", "#num!",
    "#zahl!", "#valeur!", "#valor!",
))  # fmt: skip
_LONGEST_NOTHING: Final = max(map(len, _NOTHING))
_TIME: Final = (
    r"(?:[T ,]+(?P<hour>\d{1,2})[:.h](?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d+)?)?"
    r"\s*(?P<half>[ap]\.?m\.?)?(?:\s*(?:uhr|h))?(?P<zone>\s*(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?$"
)
_IN_NUMBERS: Final = re.compile(
    r"(?P<one>\d{1,2})(?P<sign>[./-])\s?(?P<two>\d{1,2})(?P=sign)\s?(?P<year>\d{4}|\d{2})" + _TIME,
    re.IGNORECASE,
)
_YEAR_FIRST: Final = re.compile(
    r"(?P<year>\d{4})(?P<sign>[./:-])(?P<two>\d{1,2})(?P=sign)(?P<one>\d{1,2})" + _TIME,
    re.IGNORECASE,
)
_IN_WORDS: Final = tuple(
    re.compile(pattern + _TIME, re.IGNORECASE)
    for pattern in (
        r"(?P<one>\d{1,2})(?:\.|st|nd|rd|th|er|º)?[\s-]+(?:de\s+)?(?P<month>[^\W\d_]{3,12})\.?,?"
        r"[\s-]+(?:del?\s+)?(?P<year>\d{4}|\d{2})",
        r"(?P<month>[^\W\d_]{3,12})\.?\s+(?P<one>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<year>\d{4})",
    )
)
_MONTHS: Final = (
    "january januar jaenner janner janvier enero", "february februar fevrier febrero",
    "march marz maerz mrz mars marzo", "april avril abril", "may mai mayo", "june juni juin junio",
    "july juli juillet julio", "august aout agosto", "september septembre septiembre setiembre",
    "october oktober octobre octubre", "november novembre noviembre",
    "december dezember decembre diciembre",
)  # fmt: skip
#: Days of spreadsheets, counted from 1899-12-30: from 1954 to 2119.
_SERIAL: Final = re.compile(r"[2-7]\d{4}(?:\.\d+)?")

_AMOUNT: Final = re.compile(
    r"(?:ca\.?|circa|about|approx\.?|etwa|environ|~|≈|±|\+/-)?\s*"
    r"(?P<number>[+\-−]?(?:\d[\d.,'’\s\u00a0\u202f]*|[.,]\d+)(?:[eE][+-]?\d+)?)\s*"
    r"(?P<unit>[^\W\d_][\w. üÜ]*)?",
    re.IGNORECASE,
)
_NO_DIGIT: Final = re.compile(r"[^\d.,]")
#: Numbers by the mark before their decimals: with groups of thousands before it, with several such
#: groups alone, with decimals alone.
_MARKED: Final = {
    mark: re.compile(
        rf"\d{{1,3}}(?:\{other}\d{{3}})+\{mark}\d+|\d{{1,3}}(?:\{other}\d{{3}}){{2,}}|\d*\{mark}\d+"
    )
    for mark, other in (".,", ",.")
}
_GROUPED: Final = re.compile(r"[+-]?\d{1,3}([.,])\d{3}")
_HEMISPHERE: Final = re.compile(
    r"(?P<before>[NSEWO])?\s*(?P<middle>[^NSEWO]*?)\s*(?P<after>[NSEWO])?", re.IGNORECASE
)
_DEGREES: Final = re.compile(
    r"(?P<sign>[+\-−]?)\s*(?P<degrees>\d{1,3}(?:[.,]\d+)?)\s*[°º:\s]?"
    r"(?:\s*(?P<minutes>\d{1,2}(?:[.,]\d+)?)\s*['’′:\s]?"
    r"(?:\s*(?P<seconds>\d{1,2}(?:[.,]\d+)?)\s*(?:\"|”|″|'')?)?)?"
)
_YES: Final = ("true", "yes", "ja", "oui", "si", "wahr", "vrai", "verdadero")
_NO: Final = ("false", "no", "nein", "non", "falsch", "faux", "falso")
_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+\.[a-z]{2,}", re.IGNORECASE)


def is_nothing(text: str) -> bool:
    """Whether a cell is blank, says that there is no value, or holds a spreadsheet's error."""
    text = text.strip()
    return len(text) <= _LONGEST_NOTHING and text.casefold() in _NOTHING


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
    _kinds: dict[str, Callable[[str], bool]] = field(
        default_factory=lambda: {YES_NO: _is_yes_no, NUMBER: _is_number, DATE: _is_date}
    )

    def add(self, text: str) -> None:
        """Take a cell into account."""
        if is_nothing(text):
            return
        text = text.strip()
        self.filled += 1
        self.emails += "@" in text and bool(_EMAIL.search(text))
        if self._kinds:
            self._kinds = {kind: fits for kind, fits in self._kinds.items() if fits(text)}
        if mark := decimal_mark(text):
            self.decimal_marks.add(mark)
        both = _both(text) if text[0].isdigit() else None
        if both and max(both) > 12:
            self.day_first.add(both[0] > 12)
        elif both and both[0] != both[1]:
            self.open_dates += 1
            self.an_open_date = self.an_open_date or text

    @property
    def kind(self) -> str:
        """The kind that all values are of."""
        return next(iter(self._kinds), TEXT) if self.filled else TEXT


def _is_yes_no(text: str) -> bool:
    return _folded(text) in (*_YES, *_NO)


def _is_number(text: str) -> bool:
    found = _AMOUNT.fullmatch(text)
    code = text.lstrip("+-").startswith("0") and text.lstrip("+-")[1:2].isdigit()
    return found is not None and not found["unit"] and not code and text[0] in "+-−.,0123456789"


def _is_date(text: str) -> bool:
    return _date_in(text) is not None


@lru_cache(maxsize=10_000)
def _date_in(text: str) -> re.Match[str] | None:
    """How a text is a date, whichever order its day and month have."""
    for pattern in (_IN_NUMBERS, _YEAR_FIRST, *_IN_WORDS):
        found = pattern.fullmatch(text)
        if found and (pattern not in _IN_WORDS or _month(found["month"])):
            day, month = int(found["one"]), int(found.groupdict().get("two") or 1)
            if max(day, month) <= 31 and min(day, month) <= 12:
                return found
    return None


def _both(text: str) -> tuple[int, int] | None:
    """The day and the month of a date in numbers with the year at its end, in their order."""
    found = _date_in(text)
    return (int(found["one"]), int(found["two"])) if found and found.re is _IN_NUMBERS else None


def iso_date(text: str, day_first: bool | None) -> str:
    """A date in ISO's form; the text itself where it isn't read as a date. `day_first` is the order
    of day and month where the text fits both; None leaves such a text alone.
    """
    text = text.strip()
    if _SERIAL.fullmatch(text):
        moment = datetime(1899, 12, 30) + timedelta(days=float(text))  # noqa: DTZ001  # of no zone
        moment = (moment + timedelta(milliseconds=500)).replace(microsecond=0)
        return moment.isoformat(" ") if "." in text else moment.date().isoformat()
    found = _date_in(text)
    if found is None:
        return text
    year, day = int(found["year"]), int(found["one"])
    if len(found["year"]) == 2:
        year += 2000 if year < 69 else 1900
    if found.re in _IN_WORDS:
        month = _month(found["month"])
    else:
        month = int(found["two"])
        if found.re is _IN_NUMBERS:
            order = day > 12 if max(day, month) > 12 else day_first
            if order is None and day != month:
                return text
            if order is False:
                day, month = month, day
    try:
        return date(year, month, day).isoformat() + _time(found)
    except ValueError:
        return text


def _time(found: re.Match[str]) -> str:
    """The time of a date's match, after a blank. Raises ValueError where there is no such time."""
    if not found["hour"]:
        return ""
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    if found["half"]:
        if not 1 <= hour <= 12:
            raise ValueError(hour)
        hour = hour % 12 + 12 * (found["half"][0] in "pP")
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(hour)
    zone = (found["zone"] or "").strip().upper().replace("Z", "+00:00").replace("UTC", "+00:00")
    return f" {hour:02}:{minute:02}:{second:02}{zone}"


def _folded(text: str) -> str:
    text = unicodedata.normalize("NFKD", text.strip().casefold())
    return "".join(one for one in text if not unicodedata.combining(one))


@cache
def _month(name: str) -> int:
    """The number of a month by its name or the first three letters of it and more; 0 for none."""
    name = _folded(name)
    for number, names in enumerate(_MONTHS, start=1):
        if any(one.startswith(name) for one in names.split()):
            return number
    return 9 if name == "sept" else 0


def decimal_mark(text: str) -> str:
    """The mark before the decimals of a number that can be read in one way alone; else empty."""
    if "." not in text and "," not in text:
        return ""
    found = _AMOUNT.fullmatch(text)
    number = _NO_DIGIT.sub("", found["number"]) if found else ""
    if _GROUPED.fullmatch(number):
        return ""
    return next((mark for mark, pattern in _MARKED.items() if pattern.fullmatch(number)), "")


def number_of(text: str, mark: str, open_marks: str, unit: float | None = None) -> float | None:
    """The number of a cell, in meters where it or the column has a unit of length.

    `mark` stands before decimals in the other cells of the column; where they don't show it, a
    number such as 1.200 could be two if its mark is one of `open_marks`: it raises RecordRefused.
    Returns None for what is no number.
    """
    text = text.strip()
    found = _AMOUNT.fullmatch(text)
    if found is None:
        try:
            return float(text)
        except ValueError:
            return None
    factor = unit or 1.0
    if found["unit"]:
        own = unit_of(found["unit"])
        if own is None:
            return None
        factor = own
    number = re.sub(r"[\s'’\u00a0\u202f]", "", found["number"]).replace("−", "-")
    grouped = _GROUPED.fullmatch(number)
    mark = decimal_mark(text) or mark
    if grouped and not mark and grouped[1] in open_marks:
        one, other = number.replace(",", "."), re.sub("[.,]", "", number)
        reason = f"may be {one} or {other}: no other value shows what stands before decimals"
        raise RecordRefused("", f"{reason}, not {shown(text)}")
    thousands = "." if mark == "," else ","
    try:
        return float(number.replace(thousands, "").replace(mark or ".", ".")) * factor
    except ValueError:
        return None


def coordinate_of(text: str, positive: str, negative: str) -> float | None:
    """A latitude or longitude in degrees: `52,5`, `52.5° N`, `52°31'12" N`; None for what is none.

    `positive` and `negative` are the letters of its hemispheres. Raises RecordRefused for a
    longitude with the letter O, which is east in German and west in French and Spanish.
    """
    text = text.strip()
    found = _HEMISPHERE.fullmatch(text)
    middle = _DEGREES.fullmatch(found["middle"].strip()) if found else None
    if found is None or middle is None:
        try:
            return float(text)
        except ValueError:
            return None
    letter = (found["before"] or found["after"] or "").upper()
    if letter == "O" and positive == "E":
        raise RecordRefused("", "may be east (German) or west (French, Spanish): write E or W")
    signed = bool(middle["sign"]) and bool(letter)
    if (letter and letter not in positive + negative) or (found["before"] and found["after"]):
        return None
    parts = [float((middle[n] or "0").replace(",", ".")) for n in ("degrees", "minutes", "seconds")]
    in_parts = middle["minutes"] is not None
    if signed or parts[1] >= 60 or parts[2] >= 60 or (in_parts and not letter and "°" not in text):
        return None
    degrees = parts[0] + parts[1] / 60 + parts[2] / 3600
    return -degrees if letter == negative or middle["sign"] in ("-", "−") else degrees


def split_coordinates(text: str) -> tuple[str, str]:
    """The latitude and the longitude of a cell that holds both; empty where it holds no pair."""
    text = text.strip().strip("()[]")
    parts = text.split(";")
    if len(parts) != 2:
        parts = re.split(r",\s+|\s*/\s*", text)
    if len(parts) != 2:
        parts = text.split(",")
    if len(parts) == 4:
        parts = [",".join(parts[:2]), ",".join(parts[2:])]
    if len(parts) != 2:
        found = re.fullmatch(r"(.*[NS])\s+(.*[EWO])", text, re.IGNORECASE)
        parts = list(found.groups()) if found else text.split()
    return (parts[0].strip(), parts[1].strip()) if len(parts) == 2 else ("", "")


def custom_value(
    text: str, kind: str, mark: str, open_marks: str, day_first: bool | None
) -> CustomValue | None:
    """The value of a custom field; None for a blank cell. Raises RecordRefused where it isn't of
    the kind.
    """
    if is_nothing(text):
        return None
    text = " ".join(text.split())
    match kind:
        case "number":
            number = number_of(text, mark, open_marks)
            if number is None or not abs(number) < 1e300:
                raise RecordRefused("", f"must be a number, not {shown(text)}")
            return int(number) if number.is_integer() and abs(number) < 1e15 else number
        case "date":
            iso = iso_date(text, day_first)
            try:
                datetime.fromisoformat(iso)
            except ValueError:
                raise RecordRefused("", f"must be a date, not {shown(text)}") from None
            return iso
        case "yes_no":
            if not _is_yes_no(text):
                raise RecordRefused("", f"must be yes or no, not {shown(text)}")
            return _folded(text) in _YES
    if len(text) > MOST_LETTERS:
        raise RecordRefused("", f"has {len(text):,} letters; at most {MOST_LETTERS:,} are kept")
    if has_controls(text):
        raise RecordRefused("", "holds control characters")
    return text
