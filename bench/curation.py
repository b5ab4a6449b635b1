"""How fast archives become a corpus, and in which memory: `python -m bench.curation`.

Made-up archives go through the presets inat24 (iNaturalist's open data) and inat2017 (Darwin Core).
A scan that only counts the rows of the same files is the reference. The numbers that the filters
keep, the sample's numbers by species and the splits of observers are computed again in NumPy and
Python, and must agree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from concurrent.futures import ProcessPoolExecutor
from hashlib import md5
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow.csv

from bench import harness

MEMORY: Final = "2GB"
THREADS: Final = 2
HEAD: Final = "Archive | Step | Seconds | Ratio to the scan | Peak memory | Kept photos"
PRESETS: Final = {"open data": "inat24", "Darwin Core": "inat2017"}

#: The same for the same number: species and observers by power laws, six of ten in North America
#: and Europe, 1.4 photos each.
_ROWS: Final = """
CREATE TABLE seen AS
WITH drawn AS (
    SELECT number, {draws} FROM range($rows) AS numbers(number)
), placed AS (
    SELECT *, floor($species * pow(a, 3))::BIGINT AS taxon, floor($observers * pow(b, 3))::BIGINT
           AS person, floor(400 * pow(c, 2))::BIGINT AS town FROM drawn
)
SELECT format('{{:08x}}-0000-4000-8000-{{:012x}}', number % 4294967296, number) AS uuid, number,
       1000 + taxon AS taxon_id, person + 1 AS observer_id,
       CASE WHEN g < .01 THEN NULL WHEN g < .015 THEN 0 ELSE round(
           CASE WHEN town % 5 < 3 THEN 28 + town * 7 % 30 ELSE (town * 13 % 100) - 45 END
           + (d - .5) * (1 + e), 5) END AS latitude,
       CASE WHEN g < .01 THEN NULL WHEN g < .015 THEN 0 ELSE round(
           CASE town % 5 WHEN 0 THEN -125 + town * 11 % 55 WHEN 1 THEN -120 + town * 3 % 50
                         WHEN 2 THEN -9 + town * 7 % 40 ELSE (town * 17 % 340) - 170 END
           + (f - .5) * (1 + e), 5) END AS longitude,
       DATE '2017-01-01' + floor(pow(h, .6) * 2555)::INTEGER AS observed_on,
       CASE WHEN i < .7 THEN 'research' WHEN i < .9 THEN 'needs_id' ELSE 'casual' END
           AS quality_grade,
       CASE WHEN j < .1 THEN 28000 ELSE 5 + floor(j * 100)::BIGINT END AS positional_accuracy,
       CASE WHEN k < .6 THEN 'CC-BY-NC' WHEN k < .75 THEN 'CC-BY' WHEN k < .85 THEN 'CC0'
            WHEN k < .9 THEN 'CC-BY-NC-SA' ELSE NULL END AS license, l < .4 AS has_second
  FROM placed
"""
_TAXA: Final = """
CREATE TABLE taxa AS
SELECT 1 AS taxon_id, '' AS ancestry, 70 AS rank_level, 'kingdom' AS rank, 'Animalia' AS name,
       't' AS active
UNION ALL SELECT 100 + n, '1', 20, 'genus', 'Genus' || chr((97 + n)::INTEGER), 't'
       FROM range(26) g(n)
UNION ALL SELECT 1000 + n, '1/' || (100 + n % 26), 10, 'species', 'Genus' ||
       chr((97 + n % 26)::INTEGER) || ' species' ||
       translate(n::VARCHAR, '0123456789', 'abcdefghij'), 't' FROM range($species) s(n)
"""
_OPEN_DATA: Final = {
    "observations.csv.gz": "SELECT uuid AS observation_uuid, observer_id, latitude, longitude,"
    " positional_accuracy, taxon_id, quality_grade, observed_on FROM seen ORDER BY number",
    "photos.csv.gz": "SELECT md5(photo_id::VARCHAR) AS photo_uuid, * FROM (SELECT number * 2 +"
    " extra AS photo_id, uuid AS observation_uuid, observer_id, 'jpg' AS extension, license,"
    " 800 AS width, 600 AS height, extra AS position FROM seen, (VALUES (0), (1)) e(extra)"
    " WHERE extra = 0 OR has_second ORDER BY photo_id)",
    "taxa.csv.gz": "FROM taxa ORDER BY taxon_id",
    "observers.csv.gz": "SELECT DISTINCT observer_id, 'person' || observer_id AS login,"
    " NULL AS name FROM seen ORDER BY observer_id",
}
_DARWIN_CORE: Final = {
    "occurrence.txt": "SELECT number AS gbifID, latitude AS decimalLatitude, longitude AS"
    " decimalLongitude, observed_on AS eventDate, s.name AS species, 'SPECIES' AS taxonRank,"
    " 'ACCEPTED' AS taxonomicStatus, split_part(s.name, ' ', 1) AS genus, observer_id AS"
    " recordedByID, '50c9509d-22c7-4a22-a47d-8c48425ef4a7' AS datasetKey FROM seen"
    " JOIN taxa s USING (taxon_id) WHERE quality_grade = 'research' ORDER BY number",
    "multimedia.txt": "SELECT number AS gbifID, 'StillImage' AS type, 'image/jpeg' AS format,"
    " 'https://inaturalist-open-data.s3.amazonaws.com/photos/' || (number * 2 + extra) ||"
    " '/original.jpg' AS identifier, 'http://creativecommons.org/licenses/' ||"
    " replace(lower(license[4:]), '0', 'zero') || '/4.0/' AS license FROM seen,"
    " (VALUES (0), (1)) e(extra) WHERE quality_grade = 'research' AND (extra = 0 OR has_second)"
    " ORDER BY number, extra",
}
_FILE: Final = """<{0} encoding="UTF-8" fieldsTerminatedBy="\\t" linesTerminatedBy="\\n"
 fieldsEnclosedBy="" ignoreHeaderLines="1" rowType="http://rs.{1}">
 <files><location>{2}</location></files><{3} index="0"/>{4}</{0}>
"""


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the figures agree with the direct computation, and the time of each step."""
    rows: list[list[Any]] = []
    wrong: list[str] = []
    for size in options.sizes:
        for kind, preset in PRESETS.items():
            with (
                harness.temporary_folder() as folder,
                # A process of its own, whose memory is its alone.
                ProcessPoolExecutor(1, mp_context=get_context("spawn")) as own,
            ):
                harness.log(f"Writing {size:,} observations as {kind} …")
                _write(folder, kind, size)
                curated = own.submit(_curated, folder, preset).result()
                scan = _scan(folder)
                direct = _direct_inat24 if kind == "open data" else _direct_inat2017
                wrong += [f"{kind}: {text}" for text in direct(folder, curated)]
                rows += _figures(f"{size:,} ({kind})", curated, scan)
    return not wrong, [
        f"DuckDB's memory limit {MEMORY}, {THREADS} threads. The scan reads the files and counts. "
        + (
            f"Wrong: {'; '.join(wrong)}"
            if wrong
            else "All figures agree with the direct computation."
        ),
        harness.table(HEAD, rows),
    ]


def _write(folder: Path, kind: str, rows: int) -> None:
    """Write the same observations as iNaturalist's open data or as an archive of GBIF's."""
    species = max(20, min(10_000, rows // 3_300))
    draws = ", ".join(
        f"(md5_number_lower(concat('{letter}', number)) % 1000000007) / 1000000007.0 AS {letter}"
        for letter in "abcdefghijkl"
    )
    sizes = {"rows": rows, "species": species, "observers": max(50, rows // 20)}
    parts: list[str] = []
    with duckdb.connect() as archive:
        archive.execute("SET enable_progress_bar = false")
        archive.execute(_ROWS.format(draws=draws), sizes)
        archive.execute(_TAXA, {"species": species})
        for name, sql in (_OPEN_DATA if kind == "open data" else _DARWIN_CORE).items():
            archive.execute(f"COPY ({sql}) TO '{folder}/{name}' (DELIMITER '\t', HEADER, QUOTE '')")
            columns = [row[0] for row in archive.execute(f"DESCRIBE {sql}").fetchall()]
            terms = [
                f'<field index="{n}" term="http://rs.tdwg.org/dwc/terms/{column}"/>'
                for n, column in enumerate(columns)
                if n
            ]
            core = ("core", "tdwg.org/dwc/terms/Occurrence", name, "id")
            media = ("extension", "gbif.org/terms/1.0/Multimedia", name, "coreid")
            parts.append(_FILE.format(*(media if parts else core), "".join(terms)))
    if kind != "open data":
        start = '<?xml version="1.0"?><archive xmlns="http://rs.tdwg.org/dwc/text/">'
        (folder / "meta.xml").write_text(f"{start}{''.join(parts)}</archive>")


def _scan(folder: Path) -> float:
    files = [folder / name for name in (*_OPEN_DATA, *_DARWIN_CORE) if (folder / name).exists()]
    read = "SELECT count(*) FROM (FROM read_csv(?, delim = '\t', quote = '', all_varchar = true))"
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}; SET enable_progress_bar = false")
        return sum(
            harness.seconds(lambda file=str(file): connection.execute(read, [file]).fetchall())
            for file in files
        )


def _curated(folder: Path, preset: str) -> dict[str, Any]:
    """Curate, and return when each step ended and what it kept."""
    from curation.config import read_config
    from curation.corpus_files import write_corpus
    from curation.pipeline import curate

    kind = "inaturalist" if preset == "inat24" else "gbif-archive"
    config, corpus = folder / "config.toml", folder / "corpus"
    corpus.mkdir()
    config.write_text(
        f'preset = "{preset}"\nseed = 1\nmemory = "{MEMORY}"\nthreads = {THREADS}\n'
        f'[[sources]]\nkind = "{kind}"\npath = "{folder}"\n'
    )
    times, began = dict[str, tuple[float, int]](), perf_counter()

    def ended(step: Any) -> None:
        times[step.name] = perf_counter() - began, step.photos

    curated = curate(read_config(config), file=corpus / "work.duckdb", notify=ended)
    write_corpus(curated.connection, corpus)
    times["written"] = perf_counter() - began, curated.steps[-1].photos
    counted = {
        "sizes": "species, count(DISTINCT observation_id) FROM candidate",
        "sides": "split, count(*) FROM candidate JOIN split USING (photo_id)",
    }
    return {
        name: dict(curated.connection.execute(f"SELECT {sql} GROUP BY 1").fetchall())
        for name, sql in counted.items()
    } | {
        "times": times,
        "continents": [dict(part["continents"]) for part in (curated.before, curated.after)],
        "peak": harness.peak_bytes(),
    }


def _read(path: Path) -> dict[str, np.ndarray]:
    options = pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)
    table = pyarrow.csv.read_csv(path, parse_options=options)
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def _differences(counts: dict[str, int], direct: dict[str, Any]) -> list[str]:
    return [
        f"{name}: {counts.get(name)}, directly {count}"
        for name, count in direct.items()
        if counts.get(name) != count
    ]


def _direct_inat24(folder: Path, curated: dict[str, Any]) -> list[str]:
    """Where the counts after each filter and the sample's sizes differ from those computed here."""
    seen, photo = _read(folder / "observations.csv.gz"), _read(folder / "photos.csv.gz")
    number_of = {uuid: n for n, uuid in enumerate(seen["observation_uuid"])}
    rows_of_photos = np.array([number_of[uuid] for uuid in photo["observation_uuid"]])
    years = seen["observed_on"].astype("datetime64[Y]").astype(int) + 1970
    placed = ~np.isnan(seen["latitude"]) & ((seen["latitude"] != 0) | (seen["longitude"] != 0))
    of_years = ((seen["quality_grade"] == "research") & (years >= 2021) & (years <= 2023))[
        rows_of_photos
    ]
    in_place = of_years & placed[rows_of_photos]
    licensed = in_place & (photo["license"] != "")
    observed = np.unique(rows_of_photos[licensed])
    sizes = [min(550, n) for n in Counter(seen["taxon_id"][observed].tolist()).values()]
    direct = {"years": of_years.sum(), "place": in_place.sum(), "licenses": licensed.sum()}
    direct |= {"primary photo": len(observed), "sampled": sum(sizes)}
    wrong = _differences({name: photos for name, (_, photos) in curated["times"].items()}, direct)
    same = sorted(curated["sizes"].values()) == sorted(sizes)
    return wrong if same else [*wrong, "the sample's sizes by species"]


def _direct_inat2017(folder: Path, curated: dict[str, Any]) -> list[str]:
    """Where the numbers of photos in each split differ from those computed here by observer."""
    seen, photo = _read(folder / "occurrence.txt"), _read(folder / "multimedia.txt")
    photos = np.bincount(photo["gbifID"], minlength=int(seen["gbifID"].max()) + 1)
    species: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    columns = (seen["species"], seen["recordedByID"], photos[seen["gbifID"]])
    for name, person, number in zip(*columns, strict=True):
        species[name][str(person)].append(int(number))
    sides: Counter[str] = Counter()
    for people in species.values():
        if len(people) < 20 or sum(map(len, people.values())) < 20:
            continue
        order = sorted(people, key=lambda p: (len(people[p]), md5(f"1{p}".encode()).hexdigest(), p))
        counts = [sum(people[person]) for person in order]
        tested = len(order) * 2 // 5
        sides["test"] += sum(counts[:tested])
        before, rest = 0, sum(counts[tested:])
        for number in counts[tested:]:
            sides["val" if before <= 30 and before < 0.33 * rest else "train"] += number
            before += number
    return _differences(curated["sides"], sides)


def _figures(archive: str, curated: dict[str, Any], scan: float) -> list[list[Any]]:
    names = list(curated["times"])
    filtered = names[names.index("sampled") - 1] if "sampled" in names else names[-2]
    shown = {names[0]: "read", filtered: "filtered", "sampled": "sampled", "written": "written"}
    rows: list[list[Any]] = [[archive, "scan", scan, 1.0, None, None]]
    before = 0.0
    for name in (name for name in shown if name in names):
        when, kept = curated["times"][name]
        rows.append(
            [archive, shown[name], when - before, (when - before) / scan, None, f"{kept:,}"]
        )
        before = when
    rows[-1][4] = harness.megabytes(curated["peak"])
    if "sampled" in names:
        west = [
            (counts["North America"] + counts["Europe"]) / sum(counts.values())
            for counts in curated["continents"]
        ]
        rows[-2][5] += f"; North America and Europe {west[0]:.0%} → {west[1]:.0%}"
    return rows


if __name__ == "__main__":
    packages, sizes = ("duckdb", "numpy", "scipy"), (1_000_000, 3_000_000, 10_000_000)
    harness.run(main, "Curation", packages, sizes=sizes)
