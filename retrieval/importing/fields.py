"""Readers of a record's fields: each returns a valid value or raises RecordRefused."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from core.files import is_below
from core.text import has_controls
from retrieval.importing.records import Effect, RecordRefused, Refusal
from retrieval.importing.species_names import clean_name

# A day inside what Python can hold, so that a moment can be shown in any time zone.
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC) + timedelta(days=1)
_LATEST: Final = datetime.max.replace(tzinfo=UTC) - timedelta(days=1)
_LARGE: Final = 2.0**53
FARTHEST: Final = 20_040_000
"""The largest distance of two places on Earth in meters: no location is less certain."""
LICENSE_TEXT: Final = 2000
"""The letters that are kept of a license in the source's words."""
LONGEST_TEXT: Final = 1_000_000
# The largest number of the database's columns of pixels.
_LARGEST_SIDE: Final = 2**31 - 1


@dataclass(slots=True)
class OptionalFields:
    """Reads the fields that a record may lack: it reports one that is wrong, and leaves it out."""

    item: Mapping[str, Any]
    file: str
    record: str
    refuse: Callable[[Refusal], None]

    def moment(self, *names: str) -> datetime | None:
        """As `fields.moment`."""
        try:
            return moment(self.item, *names)
        except RecordRefused as error:
            self.leave_out(error)
            return None

    def number(self, name: str, *, low: float, high: float) -> float | None:
        """As `fields.number`."""
        try:
            return number(self.item, name, low=low, high=high)
        except RecordRefused as error:
            self.leave_out(error)
            return None

    def text(self, name: str, *, limit: int) -> str:
        """As `fields.text`."""
        try:
            return text(self.item, name, limit=limit)
        except RecordRefused as error:
            self.leave_out(error)
            return ""

    def license(
        self, name_field: str = "license", url_field: str = "license_url"
    ) -> tuple[str, str, str]:
        """Name and address of the license, and its text in the source's own words: `license_text`,
        or else what the others hold. A name or an address that is too long is kept in the text
        alone, so that nobody relies on a part of it.
        """
        name, address, own = (
            self.text(field, limit=LONGEST_TEXT)
            for field in (name_field, url_field, "license_text")
        )
        text = own or name or address
        for field, value, limit in ((name_field, name, 200), (url_field, address, 500)):
            if len(value) > limit:
                reason = f"has {len(value)} letters, so it is kept as a text and is no license"
                self.leave_out(RecordRefused(field, reason))
                return "", "", (own or f"{name} {address}".strip())[:LICENSE_TEXT]
        return name, address, text[:LICENSE_TEXT]

    def size(self, name: str) -> int | None:
        """As `fields.size`."""
        try:
            return size(self.item, name)
        except RecordRefused as error:
            self.leave_out(error)
            return None

    def leave_out(self, error: RecordRefused) -> None:
        """Report a field that is left out."""
        reason = f"left out: it {error.reason}"
        self.refuse(Refusal(self.file, self.record, error.field, reason, Effect.FIELD))


def text(item: Mapping[str, Any], field: str, *, limit: int, required: bool = False) -> str:
    """Return a text in NFC with single blanks; an absent or null one is empty."""
    value = item.get(field)
    if value is None:
        if not required:
            return ""
        value = ""
    elif type(value) is str and 0 < len(value) <= limit and _is_plain(value):
        return value
    if not isinstance(value, str):
        raise RecordRefused(field, f"must be text, not {shown(value)}")
    value = clean_name(value)
    if required and not value:
        raise RecordRefused(field, "is missing")
    if len(value) > limit:
        raise RecordRefused(field, f"has {len(value)} letters; at most {limit} are allowed")
    if has_controls(value):
        raise RecordRefused(field, f"holds control characters: {shown(value)}")
    return value


def path(item: Mapping[str, Any], field: str) -> str:
    """Return a file's path as it is written, which may be in any Unicode form."""
    value = item.get(field)
    if not isinstance(value, str) or not value.strip():
        raise RecordRefused(field, "is missing")
    text({field: value}, field, limit=500)
    return value


def number(
    item: Mapping[str, Any], field: str, *, low: float, high: float = math.inf
) -> float | None:
    """Return a finite number from `low` to `high`, or None where it is absent or null."""
    value = item.get(field)
    if value is None:
        return None
    if type(value) in (float, int) and low <= value <= high and value < _LARGE:
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise RecordRefused(field, f"must be a number, not {shown(value)}")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise RecordRefused(field, f"must be a number, not {shown(value)}")
    if not low <= result <= high:
        bounds = f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:.12g}"
        raise RecordRefused(field, f"must be {bounds}, not {shown(value)}")
    return result


def size(item: Mapping[str, Any], field: str) -> int | None:
    """Return a declared width or height, a positive integer, or None if it is absent or null."""
    value = item.get(field)
    if type(value) is int and 0 < value <= _LARGEST_SIDE:
        return value
    if value is None:
        return None
    if type(value) is int and value > 0:
        raise RecordRefused(field, f"must be at most {_LARGEST_SIDE}, not {shown(value)}")
    raise RecordRefused(field, f"must be a positive integer, not {shown(value)}")


def moment(item: Mapping[str, Any], *fields: str) -> datetime | None:
    """Return the first of `fields` that is present, in UTC, which is also the default zone."""
    for field in fields:
        value = item.get(field)
        if value is None or value == "":
            continue
        try:
            result = datetime.fromisoformat(value.strip().replace("/", "-"))
            if result.tzinfo is not UTC:
                result = result.astimezone(UTC) if result.tzinfo else result.replace(tzinfo=UTC)
        except (ValueError, AttributeError):
            raise RecordRefused(
                field, f"must be a date such as 2021-05-30 or 2021-05-30 14:05, not {shown(value)}"
            ) from None
        except OverflowError:
            result = None
        if result is None or not _EARLIEST <= result <= _LATEST:
            raise RecordRefused(
                field, f"must lie within the years 1 to 9999 in UTC, not {shown(value)}"
            )
        return result
    return None


def vernacular_names(item: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return (language, name) of `common_name` (English) and of `vernacular_names` by language."""
    pairs = []
    common = text(item, "common_name", limit=200)
    if common:
        pairs.append(("en", common))
    by_language = item.get("vernacular_names") or {}
    if not isinstance(by_language, dict):
        raise RecordRefused("vernacular_names", "must be an object of names by language")
    for language, names in by_language.items():
        if not language or len(language) > 20 or has_controls(language):
            raise RecordRefused("vernacular_names", f"{shown(language)} is no language code")
        for name in names if isinstance(names, list) else [names]:
            clean = text({"vernacular_names": name}, "vernacular_names", limit=200)
            if clean:
                pairs.append((language, clean))
    return tuple(dict.fromkeys(pairs))


def check_inside(name: str) -> None:
    """Raise RecordRefused for a path out of the data set's folder; links aren't followed."""
    if not is_below(name):
        raise RecordRefused("file_name", "must be a path below the folder of the data set")


def file_inside(root: Path, name: str) -> Path:
    """Return the file of a relative path, with links followed; `root` must be resolved. Where none
    is called so, one whose name differs in its Unicode form alone, as a Mac writes it.

    Raises RecordRefused for a path that leads out of `root` or to no regular file.
    """
    check_inside(name)
    try:
        for form in (name, *(unicodedata.normalize(kind, name) for kind in ("NFC", "NFD"))):
            path = (root / form).resolve()
            inside = path.is_relative_to(root)
            present = inside and path.is_file()
            if present or not inside:
                break
    except (OSError, ValueError, RuntimeError) as error:
        raise RecordRefused("file_name", f"cannot be followed: {error}") from None
    if not inside:
        raise RecordRefused("file_name", "leads out of the folder of the data set")
    if not present:
        raise RecordRefused("file_name", "there is no such file")
    return path


def _is_plain(value: str) -> bool:
    """Whether a text is printable ASCII with single blanks inside it, as most are."""
    return (
        value.isascii()
        and value.isprintable()
        and "  " not in value
        and value[0] != " "
        and value[-1] != " "
    )


def shown(value: Any) -> str:
    """Return a value in a form for messages."""
    try:
        written = repr(value)
    except RecursionError:
        return "a deeply nested value"
    return written if len(written) <= 60 else written[:57] + "..."
