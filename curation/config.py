"""What a curation is to do: a TOML file, over a preset."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, Final

from curation.errors import CurationRefused
from curation.filters import FILTERS
from curation.sources import KINDS

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
    """The day of the archives, after which no day is possible."""


def presets() -> list[str]:
    """The names of the presets."""
    folder = resources.files("curation") / "presets"
    return sorted(one.name.removesuffix(".toml") for one in folder.iterdir())


def read_config(path: Path) -> Config:
    """Read a configuration. A filter that is false, and `sampling` or `splits` with the method
    "none", leave out what the preset has. Raises CurationRefused with the key that is wrong.
    """
    try:
        given = tomllib.loads(path.read_text())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CurationRefused(str(path), str(error)) from None
    _check(given, str(path))
    base: dict[str, Any] = {}
    if preset := given.get("preset"):
        if preset not in presets():
            known = ", ".join(presets())
            raise CurationRefused(f"{path}: preset", f"there is no “{preset}”; there are {known}")
        text = (resources.files("curation") / "presets" / f"{preset}.toml").read_text()
        base = tomllib.loads(text)

    def table(name: str) -> dict[str, Any]:
        own, under = given.get(name, {}), base.get(name, {})
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
        sources=_sources(given, path, folder),
        seed=given.get("seed", 0),
        taxonomy=taxonomy,
        filters=filters,
        sampling=table("sampling"),
        splits=table("splits"),
        longest_side=table("images").get("longest_side", 500),
        memory=given.get("memory", "4GB"),
        threads=given.get("threads"),
        as_of=given.get("as_of"),
    )


def _check(given: dict[str, Any], file: str) -> None:
    """Refuse unknown keys and values of another type."""
    for key, value in given.items():
        if key in _TABLES and not isinstance(value, dict):
            raise CurationRefused(f"{file}: {key}", "must be a table")
        known = _TABLES.get(key, _TABLES[""])
        entries = value.items() if key in _TABLES else [(key, value)]
        for name, one in entries:
            where = f"{file}: {key}.{name}" if key in _TABLES else f"{file}: {name}"
            if name not in known:
                near = get_close_matches(name, [*known, *_TABLES], n=1)
                hint = f"; do you mean “{near[0]}”?" if near else ""
                raise CurationRefused(where, f"is no setting{hint}")
            kind = known[name]
            fits = isinstance(one, (int, float) if kind is float else kind)
            if not fits or (isinstance(one, bool) and kind in (int, float)):
                raise CurationRefused(where, f"must be of the type {kind.__name__}, not {one!r}")


def _sources(given: dict[str, Any], path: Path, folder: Path) -> list[Source]:
    found = []
    for number, one in enumerate(given.get("sources", []), start=1):
        where = f"{path}: source {number}"
        if not isinstance(one, dict) or set(one) != {"kind", "path"}:
            raise CurationRefused(where, "needs a kind and a path, and nothing else")
        if one["kind"] not in KINDS:
            raise CurationRefused(where, f"kind must be one of {', '.join(KINDS)}")
        found.append(Source(one["kind"], folder / one["path"]))
    if not found:
        raise CurationRefused(str(path), "names no [[sources]]")
    return found
