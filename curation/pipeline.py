"""All steps of a curation in order, with what each keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from curation import sampling, splits, taxonomy
from curation.config import Config
from curation.filters import apply
from curation.sources import read
from curation.tables import Connection, CurationRefused, connect


@dataclass(frozen=True)
class Step:
    """What is kept after a step."""

    name: str
    photos: int
    observations: int
    species: int
    observers: int


@dataclass
class Curated:
    """A curation in its database: what each step kept, and `summary` before and after sampling."""

    connection: Connection
    steps: list[Step] = field(default_factory=list)
    mapping: taxonomy.MappingReport | None = None
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


def curate(config: Config, *, file: Path, notify: Callable[[Step], None]) -> Curated:
    """Read, filter, sample and split; `file` becomes the DuckDB database and must not exist.

    `notify` is called after each step. Raises CurationRefused.
    """
    if config.sampling and "per_species" not in config.sampling:
        raise CurationRefused("sampling.per_species", "is missing")
    connection = connect(file, memory=config.memory, threads=config.threads)
    curated = Curated(connection)

    def done(name: str) -> None:
        curated.steps.append(Step(name, *_counts(connection)))
        notify(curated.steps[-1])

    for source in config.sources:
        read(connection, kind=source.kind, path=source.path, as_of=config.as_of, **source.switches)
        done(f"read {source.path.name}")
    archive = config.taxonomy.get("archive")
    if archive:
        taxonomy.read_taxonomy(connection, path=archive)
    if target := config.taxonomy.get("target"):
        curated.mapping = taxonomy.map_labels(connection, target=target)
        done("labels mapped")
    if archive and (languages := config.taxonomy.get("names")):
        taxonomy.read_names(connection, path=archive, languages=languages)
    for name, value in config.filters.items():
        apply(connection, name=name, value=value)
        done(name.replace("_", " "))
    curated.before = summary(connection)
    if config.sampling:
        sampling.sample(connection, seed=config.seed, **config.sampling)
        done("sampled")
    curated.after = summary(connection)
    connection.execute("INSERT INTO split SELECT photo_id, 'train' FROM kept")
    if config.splits:
        splits.assign(connection, seed=config.seed, **config.splits)
    return curated


def _counts(connection: Connection) -> tuple[int, int, int, int]:
    [counts] = connection.execute(
        "SELECT count(*), count(DISTINCT observation_id), count(DISTINCT species), "
        "count(DISTINCT nullif(observer, '')) FROM candidate"
    ).fetchall()
    return counts


_CONTINENT: Final = """
CASE WHEN latitude IS NULL THEN 'unknown'
     WHEN latitude < -60 THEN 'Antarctica'
     WHEN longitude BETWEEN -170 AND -30 AND latitude > 12.5 THEN 'North America'
     WHEN longitude BETWEEN -93 AND -30 THEN 'South America'
     WHEN longitude BETWEEN -30 AND 45 AND latitude > 36 THEN 'Europe'
     WHEN longitude BETWEEN -30 AND 52 THEN 'Africa'
     WHEN latitude < -10 AND longitude > 110 OR longitude < -130
       OR longitude > 160 AND latitude < 30 THEN 'Oceania' ELSE 'Asia' END
"""
"""Rough boxes: enough to see a sample's bias, not to locate an observation."""

_SUMMARIES: Final = {
    "continents": f"SELECT {_CONTINENT} AS name, count(*) FROM seen GROUP BY name ORDER BY name",
    "years": "SELECT year(day), count(*) FROM seen WHERE day IS NOT NULL GROUP BY 1 ORDER BY 1",
    "months": "SELECT month(day), count(*) FROM seen WHERE day IS NOT NULL GROUP BY 1 ORDER BY 1",
    "cells": "SELECT least(floor((latitude + 90) / 5), 35)::INTEGER, "
    "least(floor((longitude + 180) / 5), 71)::INTEGER, count(*) FROM seen "
    "WHERE latitude IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2",
    "species": "SELECT species, count(*) AS size FROM seen GROUP BY species "
    "ORDER BY size DESC, species LIMIT 20",
    "sizes": "SELECT bit_length(bin(size)) // 8, count(*) FROM "
    "(SELECT count(*) AS size FROM seen GROUP BY species) GROUP BY 1 ORDER BY 1",
    "observers": "SELECT least(number, 11) AS number, sum(size) FROM (SELECT count(*) AS size, "
    "row_number() OVER (ORDER BY count(*) DESC, observer) AS number FROM seen GROUP BY observer) "
    "GROUP BY 1 ORDER BY 1",
    "licenses": "SELECT license, count(*) FROM candidate GROUP BY license ORDER BY license",
}


def summary(connection: Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Counts of observations by continent, year, month, cell of 5°, species (the 20 largest; how
    many species have 1, 2–3, 4–7, … observations) and observer (the ten most active, then all
    others), and of photos by license.
    """
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE seen AS SELECT DISTINCT ON (observation_id) observation_id, "
        "species, observer, day, latitude, longitude FROM candidate"
    )
    counts = {name: connection.execute(sql).fetchall() for name, sql in _SUMMARIES.items()}
    connection.execute("DROP TABLE seen")
    return counts
