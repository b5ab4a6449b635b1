"""How fast a data set of iNat24's size is imported: `python -m bench.loading`.

A separate process imports a made-up COCO file, its images left in place. It is compared with a bare
COPY of the resulting rows into a table with the same columns, indexes and constraints. Then
everything is imported again, which changes nothing, and a file of a fifth of the size, which shows
how memory grows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import harness
from bench.rows import write_coco

AIM: Final = 2.0
"""Times a bare COPY that an import may take."""
HEAD: Final = "What | Seconds | Images a second | × bare COPY | Peak memory | Remark"


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the resulting rows are those of the file, and the time and memory."""
    count, fewer = options.images, options.images // 5
    with harness.database() as (folder, database):
        harness.log(f"Writing a file of {count:,} images of {options.species:,} species …")
        for number in (count, fewer):
            write_coco(folder / f"{number}.json", images=number, species=options.species)

        def imported(number: int, *, first: bool = True) -> harness.Measured:
            if first:
                database(harness.sql, "TRUNCATE retrieval_image CASCADE")
                database(harness.sql, "CHECKPOINT")
            harness.log(f"Importing {number:,} images …")
            return harness.measured(folder, _import, folder / f"{number}.json")

        rounds = harness.in_turn(
            options.rounds,
            {
                "import": lambda _: imported(count),
                "copy": lambda _: database(_bare_copy, folder / "rows"),
            },
        )
        again = imported(count, first=False)
        right = again.result[0] == count and database(_is_right, count, options.species)
        fifth = imported(fewer)
        size = harness.megabytes((folder / f"{count}.json").stat().st_size)
    imports, bare = rounds["import"], median(rounds["copy"])
    usual, checking = median(run.seconds for run in imports), imports[0].result[1]
    peak, command = max(run.peak for run in imports), "import_images --in-place of"
    measured = [
        (f"Bare COPY of {count:,} rows", bare, count, 0, "same columns, indexes and constraints"),
        (f"{command} {count:,} images", usual, count, peak, imports[0].before),
        ("— of that, checking and indexing the file", checking, count, 0, size),
        ("The same once more", again.seconds, count, again.peak, f"{count:,} skipped"),
        (f"{command} {fewer:,} images", fifth.seconds, fewer, fifth.peak, "same species"),
    ]
    rows = [
        [
            *(what, spent, int(images / spent), spent / bare if images == count else None),
            *(harness.megabytes(memory) if memory else None, remark),
        ]
        for what, spent, images, memory, remark in measured
    ]
    reached = "reached" if usual / bare <= AIM else "not reached"
    return right, [
        f"Medians of {options.rounds} rounds.",
        harness.table(HEAD, rows),
        f"Aim: at most {AIM:.0f} times the seconds of a bare COPY: {reached} "
        f"({usual / bare:.2f}). From the smaller file to the larger one the peak grew by "
        f"{(peak - fifth.peak) / (count - fewer):.0f} bytes an image.",
    ]


def _import(file: Path) -> Callable[[], tuple[int, float]]:
    """How many images are skipped, and the seconds until the file is checked."""
    from retrieval.images.roots import image_root_get_or_create
    from retrieval.importing.services import import_images

    root = image_root_get_or_create(location=str(file.parent))

    def run() -> tuple[int, float]:
        moments = [time.perf_counter()]
        report = import_images(
            path=file,
            dataset="made up",
            root=root,
            progress=lambda *_: moments.append(time.perf_counter()),
            checking=lambda *_: None,
        )
        return report.skipped, moments[1] - moments[0]

    return run


def _is_right(count: int, species: int) -> bool:
    """Whether the table holds each image of the file once, with its species."""
    [counts] = harness.sql(
        "SELECT count(*), count(DISTINCT i.id), sum(i.id), count(s.id)"
        " FROM retrieval_image i LEFT JOIN retrieval_species s ON s.id = i.species_id"
        " AND s.specific_epithet = 'species' || i.id * 7919 %% %s",
        [species],
    )
    return bool(counts == (count, count, count * (count - 1) // 2, count))


def _bare_copy(file: Path) -> float:
    """Seconds of a COPY of all rows into a table like that of images."""
    harness.sql("CREATE TABLE bench_image (LIKE retrieval_image INCLUDING ALL)")
    for (definition,) in harness.sql(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'retrieval_image'::regclass AND contype = 'f'"
    ):
        harness.sql(f"ALTER TABLE bench_image ADD {definition}")
    harness.copy("COPY retrieval_image TO STDOUT", file)
    harness.sql("CHECKPOINT")
    spent = harness.copy("COPY bench_image FROM STDIN", file)
    harness.sql("DROP TABLE bench_image")
    return spent


if __name__ == "__main__":
    packages = ("Django", "psycopg2-binary", "ijson", "numpy")
    harness.run(main, "Loading", packages, images=500_000, species=10_000, rounds=3)
