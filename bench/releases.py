"""How fast a release is made, and in how much memory: `python -m bench.releases`.

A database gets rows of INQUIRE's size (Vendrow et al. 2024: 250 queries, 194,334 judgments, 5
million images of 10,000 species), and a process of its own makes a release of them in every format,
without image bytes. It is compared with a bare COPY of the judged pairs.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench import harness
from bench.rows import MODEL, QUERIES, fill

HEAD: Final = ("What", "Seconds", "Size", "× bare COPY", "Remark")
COPIES: Final = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the release that came out isn't of the rows that went in."""
    options = harness.parse(
        "releases", __doc__, arguments, images=5_000_000, species=10_000, judgments=194_334
    )
    with (
        harness.temporary_folder("releases") as folder,
        harness.process(folder / "var", migrate=True) as database,
    ):
        harness.log(f"Filling a database with {options.images:,} images …")
        database(_fill, options.images, options.species, options.judgments)
        bare = min(database(_bare_copy, folder / "pairs") for _ in range(COPIES))
        [[size]] = database(harness.sql, "SELECT pg_database_size(current_database())")
        harness.log("Making the release …")
        with harness.process(folder / "var") as child:
            made = child(_make)
    rows = [
        [
            f"Bare COPY of {options.judgments:,} judged pairs",
            f"{bare:.2f}",
            "",
            "1.0",
            f"fastest of {COPIES}; the database has {size / 1e9:.1f} GB",
        ],
        [
            "A release in all formats, without image bytes",
            f"{made['seconds']:.2f}",
            "",
            f"{made['seconds'] / bare:.0f}",
            f"aim: under 60 s; its process was busy for {made['busy']:.1f} s",
        ],
        [
            "Peak memory of the process",
            "",
            harness.megabytes(made["peak"]),
            "",
            f"aim: under 500 MB; {harness.megabytes(made['before'])} before it begins",
        ],
        *(
            [f"Step: {title}", f"{spent:.2f}", "", f"{spent / bare:.1f}", ""]
            for title, spent in made["steps"].items()
        ),
        *(
            [f"File: {name}", "", f"{size / 1e6:.2f} MB", "", ""]
            for name, size in made["files"].items()
        ),
    ]
    packages = ("Django", "pyarrow", "psycopg2-binary")
    print(harness.section("Releases", options.command, packages, harness.table(HEAD, rows)))
    return 0 if made["judgments"] == options.judgments else 1


def _fill(images: int, species: int, judgments: int) -> None:
    depth = min(5000, images)
    fill(images=images, species=species, judgments=judgments, depth=depth, complete=QUERIES)


def _bare_copy(path: Path) -> float:
    from django.db import connection

    copy = (
        "COPY (SELECT query_id, image_id, relevance FROM labeling_judgment "
        "ORDER BY query_id, image_id) TO STDOUT"
    )
    with connection.cursor() as cursor, path.open("wb") as file:
        return harness.seconds(cursor.copy_expert, copy, file)


def _make() -> dict[str, Any]:
    from benchmark.releases.services import release_claim, release_make

    steps: dict[str, list[float]] = {}

    def report(all_steps: Sequence[Any]) -> None:
        for step in all_steps:
            if step.state != "waiting":
                times = steps.setdefault(step.title, [])
                times.append(time.perf_counter())
                del times[1 if step.state == "running" else 2 :]

    before, began = harness.peak_bytes(), time.perf_counter()
    claimed = release_claim(name="INQUIRE's size", created_by=None, options={"rerank_model": MODEL})
    release = release_make(release=claimed, report=report)
    return {
        "seconds": time.perf_counter() - began,
        "busy": time.process_time(),
        "before": before,
        "peak": harness.peak_bytes(),
        "steps": {title: times[1] - times[0] for title, times in steps.items()},
        "judgments": release.judgments,
        "files": {
            entry["name"]: entry["size"]
            for entry in [*release.file_list, release.archive, release.archive["open"]]
        },
    }


if __name__ == "__main__":
    sys.exit(main())
