"""Taxonomy archives: lineages, synonyms, vernacular names, and labels of another taxonomy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from duckdb import DuckDBPyConnection as Connection

from curation.sources.coco import stage_section
from curation.sources.darwin_core import RANKS
from curation.sources.tabular import COMMAS, aliases, find, quoted, stage_text, unpack, whole
from curation.tables import CurationRefused

_TAXA: Final = aliases(
    "taxon_id:id|taxonID name:canonicalName|scientificName rank:taxonRank status:taxonomicStatus "
    "accepted_id:acceptedNameUsageID epithet:specificEpithet kingdom phylum class order family "
    "genus"
)
_NAMES: Final = aliases("taxon_id:id|taxonID name:vernacularName language country:countryCode")


def _stage_taxa(connection: Connection, table: str, path: Path, unpacked: Path) -> Path:
    """Read the taxa of an archive and return the folder of its files."""
    archive = path
    if path.suffix == ".zip" or path.is_dir():
        archive = unpack(path, unpacked, ".csv", ".tsv")
    file = path if archive.is_file() else find(archive, "Taxon.tsv", "taxa.csv")
    if file is None:
        raise CurationRefused(path.name, "holds neither Taxon.tsv nor taxa.csv")
    form = COMMAS if ".csv" in file.suffixes else {}
    stage_text(connection, table, file, _TAXA, required=("taxon_id", "name"), **form)
    connection.execute(
        f"UPDATE {table} SET rank = lower(rank), status = coalesce(lower(status), 'accepted'), "
        "accepted_id = if(accepted_id = taxon_id, NULL, accepted_id)"
    )
    return file.parent


def read_taxonomy(connection: Connection, *, path: Path) -> None:
    """Fill and update `taxon` from iNaturalist's archive or GBIF's backbone (folder, zip or file).

    A taxon is identified by its id, or by its name if its source has no ids.
    """
    with whole(connection, path) as unpacked:
        _stage_taxa(connection, "archive_taxa", path, unpacked)
        connection.execute(_UPDATE_TAXA)


_UPDATE_TAXA: Final = f"""
CREATE OR REPLACE TABLE matched AS
SELECT t.taxon_id AS known, a.* FROM taxon t JOIN archive_taxa a
    ON a.taxon_id = t.taxon_id AND (a.name = t.name OR lower(a.kingdom) = lower(t.kingdom))
 UNION ALL
  FROM (SELECT DISTINCT ON (t.taxon_id) t.taxon_id, a.* FROM taxon t JOIN archive_taxa a
            ON a.name = t.name AND t.taxon_id = t.name
           AND (t.kingdom = '' OR lower(a.kingdom) = lower(t.kingdom))
         ORDER BY t.taxon_id, a.status <> 'accepted', a.taxon_id);
UPDATE taxon SET status = m.status, rank = coalesce(m.rank, taxon.rank),
       accepted_id = coalesce(m.accepted_id, ''),
       {", ".join(f"{rank} = coalesce(m.{rank}, taxon.{rank})" for rank in map(quoted, RANKS))}
  FROM matched m WHERE m.known = taxon.taxon_id;
INSERT INTO taxon
SELECT taxon_id, min(name), coalesce(min(rank), ''), min(status), coalesce(min(accepted_id), ''),
       {", ".join(f"coalesce(min({quoted(rank)}), '')" for rank in RANKS)},
       coalesce(min(epithet), ''), ''
  FROM archive_taxa ANTI JOIN taxon USING (taxon_id)
 WHERE taxon_id IS NOT NULL AND name IS NOT NULL GROUP BY taxon_id;
DROP TABLE matched; DROP TABLE archive_taxa;
"""


def read_names(connection: Connection, *, path: Path, languages: Sequence[str]) -> None:
    """Add an archive's names in some languages (BCP 47, as `pt` or `pt-BR`) to `vernacular`."""
    with whole(connection, path) as unpacked:
        archive = _stage_taxa(connection, "archive_taxa", path, unpacked)
        files = sorted([*archive.glob("VernacularName*.csv"), *archive.glob("VernacularName.tsv")])
        for file in files:
            form = COMMAS if file.suffix == ".csv" else {}
            stage_text(connection, "archive_names", file, _NAMES, **form)
            connection.execute(_ADD_NAMES, {"languages": list(languages)})
        if not files:
            raise CurationRefused(path.name, "holds no VernacularName files")
        connection.execute("DROP TABLE archive_names; DROP TABLE archive_taxa")


# "pt" takes "pt" and "pt-BR"; "pt-BR" takes "pt-BR", and "pt" of a row whose country is Brazil.
_ADD_NAMES: Final = """
INSERT INTO vernacular
WITH wanted AS (SELECT unnest($languages::VARCHAR[]) AS tag), named AS (
    SELECT n.taxon_id AS id, n.name, a.name AS latin, lower(a.kingdom) AS kingdom, tag
      FROM archive_names n JOIN archive_taxa a USING (taxon_id) JOIN wanted
        ON lower(n.language) = lower(tag) OR starts_with(lower(n.language), lower(tag) || '-')
        OR lower(n.language || '-' || n.country) = lower(tag)
)
SELECT t.taxon_id, tag, n.name FROM named n JOIN taxon t ON t.taxon_id = n.id AND t.name = latin
    OR t.taxon_id = latin AND (t.kingdom = '' OR lower(t.kingdom) = n.kingdom)
 WHERE n.name IS NOT NULL EXCEPT FROM vernacular
"""


@dataclass(frozen=True)
class MappingReport:
    """The result of mapping labels to another taxonomy, by names."""

    photos_before: int
    photos_after: int
    same: int
    renamed: list[tuple[str, str]]
    splits: list[tuple[str, list[str]]]  # a target's name, the present taxa that it covers
    merges: list[tuple[str, list[str]]]  # a present taxon, the target's names that it covers
    unmapped: list[tuple[str, int]]  # a present taxon, the number of its photos left out
    absent: list[str]  # the target's names to which nothing is mapped

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(what, species, other) of all that isn't mapped to its own name."""
        for name, target in self.renamed:
            yield "renamed", name, target
        for target, names in self.splits:
            yield "several here", target, "; ".join(names)
        for name, targets in self.merges:
            yield "several in the target", name, "; ".join(targets)
        for name, photos in self.unmapped:
            yield "left out", name, f"photos: {photos}"
        for name in self.absent:
            yield "of the target, none here", name, ""


def map_labels(connection: Connection, *, target: Path) -> MappingReport:
    """Map the observations to the taxa of a target: an archive, or an earlier corpus's JSON.

    A taxon of the same name has priority; else the one that synonyms of either side lead to, if
    there is just one. Photos of taxa that can't be mapped are removed from `kept`.
    """

    def rows(sql: str) -> list[Any]:
        return connection.execute(sql).fetchall()

    with whole(connection, target) as unpacked:
        if target.suffix == ".json":
            stage_section(connection, target, "categories", unpacked)
            connection.execute(_CATEGORIES)
        else:
            _stage_taxa(connection, "target", target, unpacked)
        connection.execute(_CANDIDATES)
        before = rows("SELECT count(*) FROM kept")[0][0]
        same = rows("SELECT count(*) FROM mapping WHERE exact")[0][0]
        renamed, splits, merges, unmapped, absent = (rows(sql) for sql in _REPORTS)
        connection.execute(_APPLY)
        after = rows("SELECT count(*) FROM kept")[0][0]
    names = [name for (name,) in absent]
    return MappingReport(before, after, same, renamed, splits, merges, unmapped, names)


_CATEGORIES: Final = """
CREATE OR REPLACE TABLE target AS
SELECT *, id AS taxon_id, specific_epithet AS epithet, 'species' AS rank, NULL AS accepted_id
  FROM raw_categories;
DROP TABLE raw_categories;
"""

_REPORTS: Final = (
    "SELECT name, target FROM mapping WHERE NOT exact ORDER BY ALL",
    "SELECT target, list(name ORDER BY name) FROM mapping GROUP BY target "
    "HAVING count(DISTINCT name) > 1 ORDER BY target",
    "SELECT name, list(DISTINCT target ORDER BY target) FROM candidates GROUP BY taxon_id, name "
    "HAVING count(DISTINCT target) > 1 ORDER BY name",
    "SELECT name, photos FROM present ANTI JOIN mapping USING (taxon_id) ORDER BY ALL",
    "SELECT DISTINCT name FROM target WHERE accepted_id IS NULL AND rank = 'species' "
    "AND name NOT IN (SELECT target FROM mapping) ORDER BY name",
)

_CANDIDATES: Final = """
CREATE OR REPLACE TABLE rooted AS
SELECT t.taxon_id, t.name, lower(t.kingdom) AS kingdom, coalesce(a.name, t.name) AS root
  FROM taxon t LEFT JOIN taxon a ON a.taxon_id = nullif(t.accepted_id, '');
CREATE OR REPLACE TABLE present AS
SELECT rooted.*, photos FROM rooted JOIN (
       SELECT taxon_id, count(*) AS photos FROM kept JOIN photo USING (photo_id)
         JOIN observation USING (observation_id) GROUP BY taxon_id) USING (taxon_id);
CREATE OR REPLACE TABLE candidates AS
WITH called AS (
    SELECT p.taxon_id, p.name, p.kingdom, r.name AS call FROM present p
      JOIN rooted r ON r.root = p.root AND (p.kingdom = r.kingdom OR '' IN (p.kingdom, r.kingdom))
), offered AS (
    SELECT t.name AS call, coalesce(a.name, t.name) AS target,
           lower(coalesce(t.kingdom, '')) AS kingdom
      FROM target t LEFT JOIN target a ON a.taxon_id = t.accepted_id
)
SELECT DISTINCT taxon_id, name, target, name = target AS exact FROM called JOIN offered USING (call)
 WHERE '' IN (called.kingdom, offered.kingdom) OR called.kingdom = offered.kingdom;
CREATE OR REPLACE TABLE mapping AS
SELECT taxon_id, min(name) AS name, bool_or(exact) AS exact,
       if(bool_or(exact), min(name), min(target)) AS target
  FROM candidates GROUP BY taxon_id HAVING bool_or(exact) OR count(*) = 1;
"""

_APPLY: Final = f"""
CREATE OR REPLACE TABLE moved AS
SELECT m.taxon_id, m.target, coalesce(min(t.taxon_id), m.target) AS new_id
  FROM mapping m JOIN present p USING (taxon_id)
  LEFT JOIN taxon t ON t.name = m.target AND lower(t.kingdom) IN ('', p.kingdom)
 WHERE NOT exact GROUP BY m.taxon_id, m.target;
INSERT INTO taxon
SELECT new_id, min(g.name), 'species', 'accepted', '',
       {", ".join(f"coalesce(min(g.{quoted(rank)}), '')" for rank in RANKS)},
       coalesce(min(g.epithet), ''), max(t.iucn)
  FROM moved JOIN target g ON g.name = target JOIN taxon t ON t.taxon_id = moved.taxon_id
 WHERE new_id NOT IN (SELECT taxon_id FROM taxon) GROUP BY new_id;
UPDATE taxon SET status = 'accepted', accepted_id = '' WHERE taxon_id IN (SELECT new_id FROM moved);
INSERT INTO vernacular SELECT new_id, language, v.name FROM vernacular v
  JOIN moved USING (taxon_id) EXCEPT FROM vernacular;
UPDATE observation SET taxon_id = new_id FROM moved WHERE observation.taxon_id = moved.taxon_id;
CREATE OR REPLACE TABLE kept AS
SELECT photo_id FROM kept JOIN photo USING (photo_id) JOIN observation USING (observation_id)
 WHERE taxon_id IN (SELECT new_id FROM moved UNION SELECT taxon_id FROM mapping WHERE exact);
DROP TABLE moved; DROP TABLE mapping; DROP TABLE candidates; DROP TABLE present;
DROP TABLE rooted; DROP TABLE target;
"""
