"""Files beside images that are no images: those that other programs add, and Takeout's facts."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePath
from typing import Any, Final

from core.files import open_regular

# Folders and files that operating systems and programs leave, in lower case.
_LITTER: Final = frozenset(("__macosx", "@eadir", "thumbs.db", "desktop.ini", "picasa.ini"))
_SUFFIXES: Final = frozenset(
    (".json", ".xmp", ".aae", ".thm", ".xml", ".jsonl", ".parquet", ".csv", ".tsv", ".xlsx", ".ods",
     ".html", ".htm", ".lnk", ".url", ".md")
)  # fmt: skip
_MOST_BYTES: Final = 1 << 20
_LONG_ENDING: Final = "supplemental-metadata"


def is_litter(name: str) -> bool:
    """Whether a file or folder is hidden, or was added by an operating system."""
    return name.startswith(".") or name.lower() in _LITTER


def is_sidecar(name: str) -> bool:
    """Whether a file says something of images and is none."""
    return PurePath(name).suffix.lower() in _SUFFIXES


def facts_by_image(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """The names of the files of a folder in which Google's Takeout describes an image, by the
    image's name.

    They are `X.jpg.json` or `X.jpg.supplemental-metadata.json`, which may be cut off, and that of
    `X(1).jpg` is `X.jpg(1).json` or `X.jpg.supplemental-metadata(1).json`.
    """
    found = {}
    for name in names:
        match = re.fullmatch(r"(.+?)(?:\.([a-z-]+))?(\(\d+\))?\.json", name, re.IGNORECASE)
        if match:
            image, ending, number = match[1], match[2] or "", match[3] or ""
            if ending and not _LONG_ENDING.startswith(ending.lower()):
                image = f"{image}.{ending}"
            path = PurePath(image)
            found[f"{path.stem}{number}{path.suffix}"] = name
    return found


def facts_of(path: Path) -> dict[str, Any]:
    """The date and place of an image in a file of Takeout's; those that it doesn't have, or that
    can't be read, are left out. 0/0 is no place.
    """
    try:
        with open_regular(path, flags=os.O_NOFOLLOW) as file:
            content = json.loads(file.read(_MOST_BYTES))
        return dict(_facts(content)) if isinstance(content, dict) else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _facts(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    taken = content.get("photoTakenTime")
    try:
        moment = datetime.fromtimestamp(int(taken["timestamp"]), UTC)  # type: ignore[index]
        if moment.year > 1:
            yield "observed_at", moment
    except (TypeError, KeyError, ValueError, OverflowError, OSError):
        pass
    for name in ("geoData", "geoDataExif"):
        try:
            place = [float(content[name][key]) for key in ("latitude", "longitude")]
        except (TypeError, KeyError, ValueError):
            continue
        latitude, longitude = place
        if any(place) and abs(latitude) <= 90 and abs(longitude) <= 180:
            yield "latitude", latitude
            yield "longitude", longitude
            return
