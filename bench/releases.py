"""How fast a release is made, and in how much memory: `python -m bench.releases`.

A database gets rows of INQUIRE's size (Vendrow et al. 2024: 250 queries, 194,334 judgments, 5
million images of 10,000 species), and a separate process makes a release of them in every format,
without image bytes. It is compared with a bare COPY of the judged pairs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from bench import harness
from bench.rows import MODEL, QUERIES, fill

HEAD: Final = "What | Seconds | Size | × bare COPY | Remark"
COPIES: Final = 5
PAIRS: Final = (
    "COPY (SELECT query_id, image_id, relevance FROM labeling_judgment"
    " ORDER BY query_id, image_id) TO STDOUT"
)


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the release has all judgments, and the time and memory."""
    with harness.database() as (folder, database):
        harness.log(f"Filling a database with {options.images:,} images …")
        database(_fill, options.images, options.species, options.judgments)
        bare = min(database(harness.copy, PAIRS, folder / "pairs") for _ in range(COPIES))
        [[size]] = database(harness.sql, "SELECT pg_database_size(current_database())")
        harness.log("Making the release …")
        measurement = harness.measured(folder, _make)
    judgments, busy, steps, files = measurement.result
    of_copy = f"fastest of {COPIES}; the database has {size / 1e9:.1f} GB"
    of_all = f"aim: under 60 s; its process was busy for {busy:.1f} s"
    memory = f"aim: under 500 MB; {measurement.before}"
    whole = "A release in all formats, without image bytes"
    rows = [
        [f"Bare COPY of {options.judgments:,} judged pairs", bare, None, 1.0, of_copy],
        [whole, measurement.seconds, None, measurement.seconds / bare, of_all],
        ["Peak memory of the process", None, harness.megabytes(measurement.peak), None, memory],
        *([f"Step: {title}", spent, None, spent / bare, None] for title, spent in steps.items()),
        *([f"File: {name}", None, f"{n / 1e6:.2f} MB", None, None] for name, n in files.items()),
    ]
    return judgments == options.judgments, [harness.table(HEAD, rows)]


def _fill(images: int, species: int, judgments: int) -> None:
    depth = min(5000, images)
    fill(images=images, species=species, judgments=judgments, depth=depth, complete=QUERIES)


def _make() -> Callable[[], tuple[int, float, dict[str, float], dict[str, int]]]:
    """The release's judgments, seconds of processor time, seconds by step and bytes by file."""
    from releases.making.services import release_claim, release_make

    times: dict[str, list[float]] = {}

    def report(steps: Sequence[Any]) -> None:
        for step in steps:
            if step.state != "waiting":
                moments = times.setdefault(step.title, [])
                moments.append(time.perf_counter())
                del moments[1 if step.state == "running" else 2 :]

    def run() -> tuple[int, float, dict[str, float], dict[str, int]]:
        options = {"rerank_model": MODEL}
        claimed = release_claim(name="INQUIRE's size", created_by=None, options=options)
        release = release_make(release=claimed, report=report)
        steps = {title: moments[1] - moments[0] for title, moments in times.items()}
        files = [*release.file_list, release.archive, release.archive["open"]]
        sizes = {file["name"]: file["size"] for file in files}
        return release.judgments, time.process_time(), steps, sizes

    return run


if __name__ == "__main__":
    packages = ("Django", "pyarrow", "psycopg2-binary")
    sizes = {"images": 5_000_000, "species": 10_000, "judgments": 194_334}
    harness.run(main, "Releases", packages, **sizes)
