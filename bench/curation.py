"""How fast archives become a corpus, and in which memory: `python -m bench.curation`.

Made-up archives go through the presets inat24 (iNaturalist's open data) and inat2017 (Darwin Core).
A scan that only counts the rows of the same files is the reference. What the filters keep, what the
sample has of each species and where each observer goes are computed once more, in NumPy and Python,
and must agree; of the smallest size the corpus is written twice, with equal checksums.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import duckdb
import numpy as np
import pyarrow.csv

from bench import harness
from bench.archives import write_darwin_core, write_open_data

SIZES: Final = (1_000_000, 3_000_000, 10_000_000)
MEMORY: Final = "2GB"
THREADS: Final = 2
HEAD: Final = (
    "Archive", "Step", "Seconds", "Ratio to the scan", "Peak memory", "Spilled", "Kept photos",
)  # fmt: skip
PRESETS: Final = {"open data": "inat24", "Darwin Core": "inat2017"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a figure differs from the direct computation, else 0."""
    options = harness.parse("curation", __doc__, arguments, sizes=SIZES)
    rows: list[list[str]] = []
    wrong: list[str] = []
    for size in options.sizes:
        for kind in PRESETS:
            with harness.temporary_folder("curation") as folder:
                harness.log(f"Writing {size:,} observations as {kind} …")
                write = write_open_data if kind == "open data" else write_darwin_core
                archive = write(folder / "archive", size)
                times = 2 if size == options.sizes[0] else 1
                found = [_in_process(_curated, archive, PRESETS[kind], n) for n in range(times)]
                scan = _in_process(_scan, archive)
                wrong += _differences(archive, kind, found)
                rows += _figures(f"{size:,} ({kind})", found[0], scan)
    print(
        harness.section(
            "Curation",
            options.command,
            ("duckdb", "numpy", "scipy"),
            f"DuckDB's memory limit {MEMORY}, {THREADS} threads. The scan reads the files and "
            "counts. All figures agree with the direct computation."
            if not wrong
            else f"Wrong: {'; '.join(wrong)}",
            harness.table(HEAD, rows),
        )
    )
    return 1 if wrong else 0


def _in_process(function: Any, *arguments: Any) -> Any:
    """The result from a process of its own, whose memory is its alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _scan(archive: Path) -> float:
    files = sorted([*archive.glob("*.csv.gz"), *archive.glob("*.txt")])
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}; SET enable_progress_bar = false")
    began = time.perf_counter()
    for file in files:
        connection.execute(
            "SELECT count(*) FROM (FROM read_csv(?, delim = '\t', quote = '', all_varchar = true))",
            [str(file)],
        ).fetchall()
    return time.perf_counter() - began


def _curated(archive: Path, preset: str, number: int) -> dict[str, Any]:
    """Curate, and say when each step ended, what it kept, and the corpus' checksums."""
    from curation.config import read_config
    from curation.corpus_files import CHECKSUMS, write_corpus
    from curation.pipeline import curate

    folder = archive.parent / f"corpus {number}"
    folder.mkdir()
    kind = "inaturalist" if preset == "inat24" else "gbif-archive"
    config = folder / "config.toml"
    config.write_text(
        f'preset = "{preset}"\nseed = 1\nmemory = "{MEMORY}"\nthreads = {THREADS}\n'
        f'[[sources]]\nkind = "{kind}"\npath = "{archive}"\n'
    )
    began = time.perf_counter()
    times: list[tuple[str, float, Any]] = []
    with _watched(folder) as spilled:
        made = curate(
            read_config(config),
            file=folder / "work.duckdb",
            notify=lambda step: times.append((step.name, time.perf_counter() - began, step)),
        )
        write_corpus(made.connection, folder)
    times.append(("written", time.perf_counter() - began, made.steps[-1]))
    sizes = made.connection.execute(
        "SELECT species, count(DISTINCT observation_id) FROM candidate GROUP BY species"
    ).fetchall()
    sides = made.connection.execute(
        "SELECT split, count(*) FROM candidate JOIN split USING (photo_id) GROUP BY split"
    ).fetchall()
    return {
        "times": times,
        "sizes": dict(sizes),
        "sides": dict(sides),
        "continents": (made.before["continents"], made.after["continents"]),
        "sums": (folder / CHECKSUMS).read_text(),
        "peak": harness.peak_bytes(),
        "spilled": max(spilled),
    }


@contextmanager
def _watched(folder: Path) -> Iterator[list[int]]:
    """The bytes that lie in DuckDB's folders for what doesn't fit in memory, every second."""
    ended = Event()
    sizes = [0]

    def look() -> None:
        while not ended.wait(1):
            with suppress(FileNotFoundError):
                sizes.append(sum(one.stat().st_size for one in folder.glob("*.spill/*")))

    thread = Thread(target=look)
    thread.start()
    try:
        yield sizes
    finally:
        ended.set()
        thread.join()


def _differences(archive: Path, kind: str, found: list[dict[str, Any]]) -> list[str]:
    wrong = [] if found[0]["sums"] == found[-1]["sums"] else ["two runs wrote other bytes"]
    direct = _direct_inat24 if kind == "open data" else _direct_inat2017
    return wrong + [f"{kind}: {one}" for one in direct(archive, found[0])]


def _read(path: Path) -> dict[str, np.ndarray]:
    table = pyarrow.csv.read_csv(
        path, parse_options=pyarrow.csv.ParseOptions(delimiter="\t", quote_char=False)
    )
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def _direct_inat24(archive: Path, found: dict[str, Any]) -> list[str]:
    """What of the counts after each filter, and of the sample's sizes, isn't as computed here."""
    seen, photo = _read(archive / "observations.csv.gz"), _read(archive / "photos.csv.gz")
    number_of = {one: n for n, one in enumerate(seen["observation_uuid"])}
    at = np.array([number_of[one] for one in photo["observation_uuid"]])
    years = seen["observed_on"].astype("datetime64[Y]").astype(int) + 1970
    placed = ~np.isnan(seen["latitude"]) & ((seen["latitude"] != 0) | (seen["longitude"] != 0))
    good = (seen["quality_grade"] == "research") & (years >= 2021) & (years <= 2023)
    kept = good[at]
    expected = {"years": kept.sum(), "place": (kept & placed[at]).sum()}
    kept &= placed[at]
    kept &= photo["license"] != ""
    expected["licenses"] = kept.sum()
    observed = np.unique(at[kept])
    expected["primary photo"] = len(observed)
    sizes = Counter(seen["taxon_id"][observed].tolist())
    expected["sampled"] = sum(min(550, one) for one in sizes.values())
    steps = {name: step.photos for name, _, step in found["times"]}
    wrong = [
        f"{name}: {steps[name]:,}, directly {count:,}"
        for name, count in expected.items()
        if steps[name] != count
    ]
    if sorted(found["sizes"].values()) != sorted(min(550, one) for one in sizes.values()):
        wrong.append("the sample's sizes by species")
    return wrong


def _direct_inat2017(archive: Path, found: dict[str, Any]) -> list[str]:
    """What of the numbers of photos in each split isn't as computed here, observer by observer."""
    from hashlib import md5

    seen, photo = _read(archive / "occurrence.txt"), _read(archive / "multimedia.txt")
    photos = np.bincount(photo["gbifID"], minlength=int(seen["gbifID"].max()) + 1)
    people: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for species, person, number in zip(
        seen["species"], seen["recordedByID"], photos[seen["gbifID"]], strict=True
    ):
        people[species][str(person)].append(int(number))
    sides: Counter[str] = Counter()
    for by_person in people.values():
        if len(by_person) < 20 or sum(map(len, by_person.values())) < 20:
            continue
        order = sorted(
            by_person.items(),
            key=lambda one: (len(one[1]), md5(f"1{one[0]}".encode()).hexdigest(), one[0]),
        )
        tested = len(order) * 2 // 5
        sides["test"] += sum(sum(one) for _, one in order[:tested])
        rest = [sum(one) for _, one in order[tested:]]
        before = 0
        for number in rest:
            validates = before <= 30 and before < 0.33 * sum(rest)
            sides["val" if validates else "train"] += number
            before += number
    return [
        f"{side}: {found['sides'].get(side):,}, directly {count:,}"
        for side, count in sides.items()
        if found["sides"].get(side) != count
    ]


def _figures(archive: str, found: dict[str, Any], scan: float) -> list[list[str]]:
    times = {name: (when, step) for name, when, step in found["times"]}
    names = list(times)
    filtered = names[names.index("sampled") - 1] if "sampled" in names else names[-2]
    rows = [[archive, "scan", f"{scan:.1f}", "1.0", "", "", ""]]
    before = 0.0
    for name, shown in (
        (names[0], "read"), (filtered, "filtered"), ("sampled", "sampled"), ("written", "written"),
    ):  # fmt: skip
        if name not in times:
            continue
        when, step = times[name]
        rows.append(
            [archive, shown, f"{when - before:.1f}", f"{(when - before) / scan:.1f}", "", "",
             f"{step.photos:,}"]
        )  # fmt: skip
        before = when
    rows[-1][4:6] = harness.megabytes(found["peak"]), harness.megabytes(found["spilled"])
    if "sampled" in times:
        west = [_western(one) for one in found["continents"]]
        rows[-2][6] += f"; North America and Europe {west[0]:.0%} → {west[1]:.0%}"
    return rows


def _western(rows: list[tuple[str, int]]) -> float:
    counts = dict(rows)
    return (counts["North America"] + counts["Europe"]) / sum(counts.values())


if __name__ == "__main__":
    sys.exit(main())
