"""From staged texts with Darwin Core's terms to the tables of a curation.

A row that can't be used is refused; a field that can't be used is left out or corrected. Both are
counted in `refused`, by reason.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from datetime import date
from typing import Final

import duckdb
from duckdb import DuckDBPyConnection as Connection

from core.licenses import CREATIVE_COMMONS, license_in
from core.obscured import BLURRED_METERS, WITHHELD_WORDS
from curation import tables
from curation.sources.tabular import quoted

RANKS: Final = ("kingdom", "phylum", "class", "order", "family", "genus")
_STAGED: Final = {
    "staged_occurrence": "id taxon name species_id species rank status accepted epithet iucn "
    "vernacular observer observer_name date year month day time interpreted latitude "
    "longitude uncertainty withheld generalized elevation country quality license holder presence "
    "dataset deployment kingdom phylum class order family genus",
    "staged_media": "photo occurrence position type format url file license words holder width "
    "height",
}
"""`species` is the accepted species of the identified taxon, if the source has it; `interpreted` is
when the source read the row. Without a position, the order of the file counts. `words` are the
license in the source's own words where `license` isn't."""


def define_functions(connection: Connection) -> None:
    """Let SQL call `unescape_html`, which it does only for names with an `&`, and `license_code`
    and `license_url`, for distinct texts.
    """
    functions = {
        "unescape_html": html.unescape,
        "license_code": lambda text: license_in(text).code,
        "license_url": _license_url,
    }
    try:
        for name, function in functions.items():
            connection.create_function(name, function, ["VARCHAR"], "VARCHAR")
    except duckdb.NotImplementedException:  # they are there from an earlier source
        return


def _license_url(text: str) -> str:
    """The address of a license, without a port; of an unknown one its text, if that is an
    address.
    """
    license = license_in(text)
    if license.code == "pd":
        return f"{CREATIVE_COMMONS}/publicdomain/mark/1.0/"
    if license.url:
        # Without what follows the version.
        return "/".join(license.url.split("/")[:6]) + "/"
    return text if re.fullmatch(r"https?://\S+", text) else ""


def store(connection: Connection, *, occurrences: str, media: str, as_of: date | None) -> None:
    """Store the staged rows; `occurrences` and `media` name the files in `refused`."""
    for table, columns in _STAGED.items():
        present = {row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()}
        for column in columns.split():
            if column not in present:
                connection.execute(f"ALTER TABLE {table} ADD COLUMN {quoted(column)} VARCHAR")
    connection.execute(_LICENSES + _NAMES)
    connection.execute(_CLEAN_OCCURRENCES, {"as_of": as_of})
    connection.execute(_ONCE.format(table="clean_occurrence", id="observation_id"))
    connection.execute(_CLEAN_MEDIA + _ONCE.format(table="clean_media", id="photo_id"))
    _count(connection, occurrences, "clean_occurrence", ("name_note", "place_note", "date_note"))
    _count(connection, media, "clean_media", ("address_note", "license_note"))
    _count_several(connection, media)
    connection.execute(_STORE)
    for table in (*_STAGED, "clean_occurrence", "clean_media", "several", "licenses", "names"):
        connection.execute(f"DROP TABLE {table}")


def _count(connection: Connection, file: str, table: str, notes: tuple[str, ...]) -> None:
    for column in ("refusal", *notes):
        rows = connection.execute(
            f"SELECT {column}, count(*), arg_min(example, row) FROM {table} WHERE {column} IS NOT "
            f"NULL AND ('{column}' = 'refusal' OR refusal IS NULL) GROUP BY {column} ORDER BY 1"
        ).fetchall()
        for reason, count, example in rows:
            tables.refuse(connection, file=file, reason=reason, rows=count, example=example)


def _count_several(connection: Connection, media: str) -> None:
    """Count the observations with several photos, which `several` holds from now on."""
    connection.execute(
        "CREATE OR REPLACE TABLE several AS SELECT observation_id FROM clean_media "
        "WHERE refusal IS NULL GROUP BY observation_id HAVING count(*) > 1"
    )
    [(count, example)] = connection.execute(
        "SELECT count(*), min(observation_id) FROM several"
    ).fetchall()
    if count:
        reason = "observations with several photos: the first is the primary one"
        tables.refuse(connection, file=media, reason=reason, rows=count, example=example)


_LICENSES: Final = """
CREATE OR REPLACE TABLE licenses AS
SELECT license AS raw, license_code(license) AS code, license_url(license) AS url
  FROM (SELECT license FROM staged_occurrence UNION SELECT license FROM staged_media)
 WHERE license IS NOT NULL;
"""

# Without authors: "Rana temporaria Linnaeus, 1758", "Quercus × hispanica Lam.", "Aus bus de Vis".
_BARE: Final = r"""regexp_replace(regexp_extract(tidy, '^(?:× ?)?[\p{Lu}][\p{L}-]+'
       '(?: (?:\([\p{L}-]+\) )?(?:(?:×|x|subsp\.|ssp\.|var\.|f\.) ?)?[\p{Ll}][\p{Ll}-]+)*'),
       ' (?:van|von|der|den|de|da|do|du|des|del|della|la|le|et|ex|and|in)(?: .*)?$', '')"""

_NAMES: Final = rf"""
CREATE OR REPLACE TABLE names AS
WITH plain AS (
    SELECT raw, trim(regexp_replace(regexp_replace(if(contains(raw, '&'), unescape_html(raw), raw),
           '<[^>]*>', '', 'g'), '[\s\x{{a0}}]+', ' ', 'g')) AS tidy
      FROM (SELECT DISTINCT coalesce(species, name) AS raw FROM staged_occurrence)
     WHERE raw IS NOT NULL
)
SELECT raw, tidy <> raw AS mended, {_BARE} AS clean FROM plain;
"""


def bare_names(connection: Connection, names: Sequence[str]) -> list[str]:
    """Scientific names without the authors that may follow them."""
    rows = connection.execute(f"SELECT {_BARE} FROM (SELECT unnest(?) AS tidy)", [list(names)])
    return [name for (name,) in rows.fetchall() if name]


def _number(column: str) -> str:
    # Some archives write a decimal comma; NaN and infinity don't count as numbers.
    value = f"TRY_CAST(replace({column}, ',', '.') AS DOUBLE)"
    return f"CASE WHEN isfinite({value}) THEN {value} END"


_CLEAN_OCCURRENCES: Final = rf"""
CREATE OR REPLACE TABLE clean_occurrence AS
WITH parsed AS (
    SELECT s.* EXCLUDE (name, date), s.rowid AS row, clean, mended, code,
           {_number("latitude")} AS north, {_number("longitude")} AS east,
           {_number("uncertainty")} AS radius,
           {_number("elevation")} AS height, species IS NOT NULL AS is_species,
           coalesce(date, if(month IS NULL OR day IS NULL, year,
               concat(year, '-', lpad(month, 2, '0'), '-', lpad(day, 2, '0')))) AS moment,
           coalesce(species_id, if(species IS NULL, taxon, NULL), clean) AS taxon_id
      FROM staged_occurrence s LEFT JOIN names ON names.raw = coalesce(species, name)
      LEFT JOIN licenses ON licenses.raw = license
), dated AS (
    SELECT *, split_part(moment, '/', 1) AS begins, split_part(moment, '/', 2) AS ends,
           TRY_CAST(regexp_extract(moment, '^\d{{4}}-\d{{2}}-\d{{2}}') AS DATE) AS whole_day,
           regexp_matches(begins, '(Z|[+-]00:?00)$') AS in_utc, CASE
           WHEN moment IS NULL THEN NULL
           WHEN regexp_matches(moment, '^\d{{4}}(-\d{{1,2}})?$') THEN 'date left out: no day'
           WHEN whole_day IS NULL THEN 'date left out: not a date'
           WHEN ends <> '' AND TRY_CAST(ends[:10] AS DATE) IS DISTINCT FROM whole_day
           THEN 'date left out: a range of days'
           WHEN whole_day > least($as_of::DATE, TRY_CAST(interpreted[:10] AS DATE))
           THEN 'date left out: in the future' END AS date_problem,
           CASE WHEN latitude IS NULL AND longitude IS NULL THEN NULL
           WHEN north IS NULL OR east IS NULL THEN 'place left out: not two numbers'
           WHEN north = 0 AND east = 0 THEN 'place left out: 0/0'
           WHEN abs(north) > 90 AND abs(north) <= 180 AND abs(east) <= 90
           THEN 'place left out: latitude and longitude look swapped'
           WHEN abs(north) > 90 THEN 'place left out: latitude out of range'
           WHEN abs(east) > 180 THEN 'place left out: longitude out of range' END AS place_note,
           place_note IS NULL AND north IS NOT NULL AS placed
      FROM parsed
)
SELECT d.* EXCLUDE (species, day, latitude, longitude, uncertainty, elevation, country, quality),
       d.id AS observation_id, clean AS name, CASE
           -- iNaturalist shares with GBIF its research-grade observations only.
           WHEN dataset = '50c9509d-22c7-4a22-a47d-8c48425ef4a7' THEN 'research'
           ELSE lower(coalesce(d.quality, '')) END AS quality_grade,
       if(regexp_matches(d.country, '^[A-Za-z]{{2}}$'), upper(d.country), '') AS country,
       if(date_problem IS NULL, whole_day, NULL) AS day,
       if(date_problem IS NULL AND NOT in_utc, coalesce(TRY_CAST(regexp_extract(
           begins, '^\d{{4}}-\d{{2}}-\d{{2}}[T ]\d{{2}}:\d{{2}}(:\d{{2}}(\.\d+)?)?') AS TIMESTAMP),
           TRY_CAST(concat(whole_day, ' ', time[:8]) AS TIMESTAMP)), NULL) AS observed_at,
       if(placed, north, NULL) AS latitude, if(placed, east, NULL) AS longitude,
       if(placed AND radius >= 0, radius, NULL) AS uncertainty,
       if(height BETWEEN -12000 AND 9000, height, NULL) AS elevation,
       generalized IS NOT NULL
           OR coalesce(radius BETWEEN {BLURRED_METERS[0]} AND {BLURRED_METERS[1]}, false)
           OR coalesce(regexp_matches(lower(withheld), '{WITHHELD_WORDS}'), false) AS obscured,
       CASE WHEN d.id IS NULL THEN 'without an id'
            WHEN d.taxon_id IS NULL OR coalesce(clean, '') = '' THEN 'without a taxon'
            WHEN lower(presence) = 'absent' THEN 'an absence, not an observation'
            WHEN o.observation_id IS NOT NULL THEN 'an id that is read already'
            WHEN t.name <> clean THEN 'its taxon id stands for another name already'
            END AS refusal,
       if(mended, 'name corrected: HTML or blanks', NULL) AS name_note,
       coalesce(date_problem, if(in_utc, 'time left out: not the local time', NULL)) AS date_note,
       concat_ws(' · ', d.id, coalesce(species, clean), moment, d.latitude, d.longitude) AS example
  FROM dated d LEFT JOIN observation o ON o.observation_id = d.id
  LEFT JOIN taxon t ON t.taxon_id = d.taxon_id
"""

_CLEAN_MEDIA: Final = r"""
CREATE OR REPLACE TABLE clean_media AS
WITH named AS (
    SELECT s.* EXCLUDE (license), s.rowid AS row, s.license AS given, coalesce(code, '') AS code,
           coalesce(l.url, '') AS license_url, lower(concat_ws(' ', type, format)) AS kind,
           regexp_extract(lower(coalesce(s.url, file)), '\.(jpe?g|png|gif|webp)([?#]|$)', 1)
               AS ending,
           coalesce(photo, nullif(regexp_extract(s.url, 'inaturalist.*/photos/(\d+)/', 1), ''),
               md5(coalesce(s.url, file))) AS photo_id
      FROM staged_media s LEFT JOIN licenses l ON l.raw = s.license
)
SELECT n.row, n.photo_id, n.occurrence AS observation_id, n.code, n.license_url,
       coalesce(words, given, '') AS license_text,
       TRY_CAST(n.position AS INTEGER) AS position, coalesce(n.url, '') AS url,
       coalesce(file, '') AS file_name,
       CASE WHEN format ILIKE 'image/%' THEN lower(format) WHEN coalesce(ending, '') = '' THEN ''
            ELSE 'image/' || replace(ending, 'jpg', 'jpeg') END AS media_type,
       if(n.code LIKE 'cc-by%', coalesce(n.holder, o.holder, observer_name, ''), '') AS holder,
       TRY_CAST(n.width AS INTEGER) AS width, TRY_CAST(n.height AS INTEGER) AS height,
       CASE WHEN regexp_matches(kind, 'sound|audio') THEN 'a sound, not a photo'
            WHEN regexp_matches(kind, 'video|moving') THEN 'a video, not a photo'
            WHEN kind <> '' AND NOT regexp_matches(kind, 'image|photo') THEN 'not a photo'
            WHEN n.photo_id IS NULL THEN 'a photo without an id and an address'
            WHEN n.url IS NOT NULL AND NOT regexp_matches(n.url, '^https?://\S+$')
            THEN 'a photo whose address is not a web address'
            WHEN p.photo_id IS NOT NULL THEN 'an id that is read already'
            WHEN o.observation_id IS NULL THEN 'a photo without its observation' END AS refusal,
       if(n.url IS NULL AND file IS NULL, 'a photo without an address', NULL) AS address_note,
       CASE WHEN given IS NULL THEN 'without a license' WHEN n.code = ''
            THEN 'license left out: no Creative Commons license or public domain'
            END AS license_note,
       -- A license in words may hold a name.
       concat_ws(' · ', n.photo_id, n.occurrence, n.url,
           if(n.code <> '' OR given LIKE 'http%', given, NULL)) AS example
  FROM named n LEFT JOIN (FROM clean_occurrence WHERE refusal IS NULL) o
    ON o.observation_id = n.occurrence
  LEFT JOIN photo p ON p.photo_id = n.photo_id;
"""

_ONCE: Final = """
UPDATE {table} SET refusal = 'an id that is given twice' FROM (
       SELECT {id}, min(row) AS first FROM {table} WHERE refusal IS NULL GROUP BY {id}
       HAVING count(*) > 1) AS often
 WHERE {table}.{id} = often.{id} AND {table}.row <> first AND refusal IS NULL
"""

_STORE: Final = rf"""
INSERT INTO taxon
SELECT taxon_id, min(name), if(bool_or(is_species), 'species', coalesce(lower(min(rank)), '')),
       if(bool_or(is_species), 'accepted', coalesce(lower(min(status)), '')),
       if(bool_or(is_species), '', coalesce(min(accepted), '')),
       {", ".join(f"coalesce(min({quoted(rank)}), '')" for rank in RANKS)}, coalesce(min(epithet),
       if(bool_or(is_species), regexp_extract(min(name), ' ([\p{{Ll}}-]+)', 1), '')),
       coalesce(upper(min(iucn)), '')
  FROM clean_occurrence ANTI JOIN taxon USING (taxon_id) WHERE refusal IS NULL GROUP BY taxon_id;
INSERT INTO vernacular
SELECT DISTINCT taxon_id, 'en', unnest(string_split(vernacular, '|')) AS name
  FROM clean_occurrence WHERE refusal IS NULL AND vernacular IS NOT NULL EXCEPT FROM vernacular;
INSERT INTO photo
WITH placed AS (
    SELECT row, row_number() OVER (PARTITION BY observation_id ORDER BY position, row) - 1 AS place
      FROM clean_media SEMI JOIN several USING (observation_id) WHERE refusal IS NULL
)
SELECT photo_id, observation_id, coalesce(position, place, 0), media_type, url, file_name, code,
       license_url, license_text, holder, width, height
  FROM clean_media LEFT JOIN placed USING (row) WHERE refusal IS NULL;
INSERT INTO observation
WITH attributed AS (
    SELECT DISTINCT observation_id, true AS asked FROM clean_media
     WHERE refusal IS NULL AND code LIKE 'cc-by%'
)
SELECT observation_id, taxon_id, coalesce(observer, 'name-' || md5(observer_name), ''),
       if(asked OR code LIKE 'cc-by%', coalesce(observer_name, ''), ''), day, observed_at, latitude,
       longitude, uncertainty, obscured, elevation, country, quality_grade, coalesce(deployment, '')
  FROM clean_occurrence LEFT JOIN attributed USING (observation_id) WHERE refusal IS NULL;
CREATE OR REPLACE TABLE kept AS
SELECT photo_id FROM photo JOIN observation USING (observation_id) SEMI JOIN taxon USING (taxon_id);
"""
