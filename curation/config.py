"""The configuration of a curation: a TOML file, over a preset."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, Final

from curation.filters import FILTERS
from curation.sources import KINDS, SWITCHES
from curation.tables import CurationRefused

_TABLES: Final[dict[str, dict[str, Any]]] = {
    "": {"preset": str, "seed": int, "sources": list, "memory": str, "threads": int,
         "as_of": object},
    "taxonomy": {"archive": str, "target": str, "names": list},
    "filters": dict.fromkeys(FILTERS, object),
    "sampling": {
        "method": str, "per_species": int, "group_km": float, "clusters": int, "place_km": float,
        "season_days": float,
    },
    "splits": {
        "method": str, "test_share": float, "validation_photos": int, "validation_share": float,
        "since": object, "cell": float,
    },
    "images": {"longest_side": int},
}  # fmt: skip
"""The keys of each table, and the type of their values."""

_FILES: Final = {"species", "polygon"}
"""The filters whose value is a file."""


@dataclass(frozen=True)
class Source:
    """An archive to read."""

    kind: str
    path: Path
    switches: dict[str, bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Config:
    """A curation's settings; paths are absolute or below the configuration's folder."""

    sources: list[Source]
    seed: int = 0
    taxonomy: dict[str, Any] = field(default_factory=dict)
    filters: dict[str, Any] = field(default_factory=dict)
    sampling: dict[str, Any] = field(default_factory=dict)
    splits: dict[str, Any] = field(default_factory=dict)
    longest_side: int = 500
    """Pixels of the longest side of fetched images."""
    memory: str = "4GB"
    threads: int | None = None
    as_of: date | None = None
    """The day of the archives; later dates are wrong."""


def presets() -> list[str]:
    """The names of the presets."""
    folder = resources.files("curation") / "presets"
    return sorted(preset_file.name.removesuffix(".toml") for preset_file in folder.iterdir())


def read_config(path: Path) -> Config:
    """Read a configuration. A filter that is false, and `sampling` or `splits` with the method
    "none", remove what the preset has. Raises CurationRefused with the key that is wrong.
    """
    try:
        settings = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CurationRefused(str(path), str(error)) from None
    _check(settings, str(path))
    base: dict[str, Any] = {}
    if preset := settings.get("preset"):
        if preset not in presets():
            names = ", ".join(presets())
            raise CurationRefused(f"{path}: preset", f"there is no “{preset}”; there are {names}")
        text = (resources.files("curation") / "presets" / f"{preset}.toml").read_text()
        base = tomllib.loads(text)

    def table(name: str) -> dict[str, Any]:
        own, under = settings.get(name, {}), base.get(name, {})
        if own.get("method", under.get("method")) != under.get("method"):
            under = {}
        merged = {**under, **own}
        return {} if merged.get("method") == "none" else merged

    folder = path.resolve().parent
    taxonomy = table("taxonomy")
    for key in {"archive", "target"} & set(taxonomy):
        taxonomy[key] = folder / taxonomy[key]
    filters = {name: value for name, value in table("filters").items() if value is not False}
    for name in _FILES & set(filters):
        filters[name] = folder / filters[name]
    lookalikes = filters.get("lookalikes")
    if isinstance(lookalikes, dict) and "file" in lookalikes:
        filters["lookalikes"] = {"file": folder / lookalikes["file"]}
    return Config(
        sources=_sources(settings, path, folder),
        seed=settings.get("seed", 0),
        taxonomy=taxonomy,
        filters=filters,
        sampling=table("sampling"),
        splits=table("splits"),
        longest_side=table("images").get("longest_side", 500),
        memory=settings.get("memory", "4GB"),
        threads=settings.get("threads"),
        as_of=settings.get("as_of"),
    )


def _check(given: dict[str, Any], file: str) -> None:
    """Refuse unknown keys and values of another type."""
    for key, value in given.items():
        if key in _TABLES and not isinstance(value, dict):
            raise CurationRefused(f"{file}: {key}", "must be a table")
        types = _TABLES.get(key, _TABLES[""])
        entries = value.items() if key in _TABLES else [(key, value)]
        for name, setting in entries:
            where = f"{file}: {key}.{name}" if key in _TABLES else f"{file}: {name}"
            if name not in types:
                suggestions = get_close_matches(name, [*types, *_TABLES], n=1)
                hint = f"; do you mean “{suggestions[0]}”?" if suggestions else ""
                raise CurationRefused(where, f"isn't a setting{hint}")
            expected = types[name]
            fits = isinstance(setting, (int, float) if expected is float else expected)
            if not fits or (isinstance(setting, bool) and expected in (int, float)):
                raise CurationRefused(
                    where, f"must be of the type {expected.__name__}, not {setting!r}"
                )


def _sources(given: dict[str, Any], path: Path, folder: Path) -> list[Source]:
    sources = []
    for number, entry in enumerate(given.get("sources", []), start=1):
        where = f"{path}: source {number}"
        if not isinstance(entry, dict) or not {"kind", "path"} <= set(entry):
            raise CurationRefused(where, "needs a kind and a path")
        if entry["kind"] not in KINDS:
            raise CurationRefused(where, f"kind must be one of {', '.join(KINDS)}")
        switches = {name: entry[name] for name in entry if name not in ("kind", "path")}
        if unknown := set(switches) - SWITCHES.get(entry["kind"], set()):
            raise CurationRefused(where, f"{min(unknown)} isn't a setting of {entry['kind']}")
        for name, value in switches.items():
            if not isinstance(value, bool):
                raise CurationRefused(where, f"{name} must be true or false, not {value!r}")
        sources.append(Source(entry["kind"], folder / entry["path"], switches))
    if not sources:
        raise CurationRefused(str(path), "names no [[sources]]")
    return sources
