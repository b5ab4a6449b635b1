"""How fast a data set of iNat24's size is imported: `python -m bench.loading`.

A process of its own imports a made-up COCO file, its images left in place. It is compared with a
bare COPY of the rows that came out into a table with the same columns, indexes and constraints.
Then everything is imported once more, which finds all of it there, and a file of a fifth of the
size, which shows how memory grows.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import harness
from bench.loading_file import write_coco

AIM: Final = 2.0
"""Times a bare COPY that an import may take."""
HEAD: Final = ("What", "Seconds", "Images a second", "× bare COPY", "Peak memory", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the rows that came out aren't those of the file."""
    options = harness.parse("loading", __doc__, arguments, images=500_000, species=10_000, rounds=3)
    count, fewer = options.images, options.images // 5
    with (
        harness.temporary_folder("loading") as folder,
        harness.process(folder / "var", migrate=True) as database,
    ):
        file, smaller = folder / "train.json", folder / "fifth.json"
        harness.log(f"Writing a file of {count:,} images of {options.species:,} species …")
        write_coco(file, images=count, species=options.species)
        write_coco(smaller, images=fewer, species=options.species)

        def imported(path: Path, *, first: bool = True) -> dict[str, Any]:
            if first:
                database(_empty)
            harness.log(f"Importing {path.name} …")
            with harness.process(folder / "var") as child:
                found: dict[str, Any] = child(_import, path)
            return found

        rounds = harness.in_turn(
            options.rounds,
            {
                "import": lambda _: imported(file),
                "copy": lambda _: database(_bare_copy, folder / "rows", count),
            },
        )
        again = imported(file, first=False)
        right = again["skipped"] == count and database(_is_right, count, options.species)
        fifth = imported(smaller)
        size = file.stat().st_size
    imports, bare = rounds["import"], median(rounds["copy"])
    usual, checking = (median(one[key] for one in imports) for key in ("seconds", "checking"))
    peak = max(one["peak"] for one in imports)
    command = "import_images --in-place of"

    def row(what: str, spent: float, images: int, remark: str, memory: float = 0) -> list[str]:
        ratio = f"{spent / bare:.2f}" if images == count else ""
        held = harness.megabytes(memory) if memory else ""
        return [what, f"{spent:.2f}", f"{images / spent:,.0f}", ratio, held, remark]

    rows = [
        row(f"Bare COPY of {count:,} rows", bare, count, "same columns, indexes and constraints"),
        row(
            f"{command} {count:,} images",
            usual,
            count,
            f"{harness.megabytes(imports[0]['before'])} before it begins",
            peak,
        ),
        row(
            "— of that, checking and indexing the file",
            checking,
            count,
            f"{harness.megabytes(size)}, {options.species:,} species",
        ),
        row("The same once more", again["seconds"], count, f"{count:,} skipped", again["peak"]),
        row(f"{command} {fewer:,} images", fifth["seconds"], fewer, "same species", fifth["peak"]),
    ]
    reached = "reached" if usual / bare <= AIM else "not reached"
    print(
        harness.section(
            "Loading",
            options.command,
            ("Django", "psycopg2-binary", "ijson", "numpy"),
            f"Medians of {options.rounds} rounds.",
            harness.table(HEAD, rows),
            f"Aim: at most {AIM:.0f} times the seconds of a bare COPY: {reached} "
            f"({usual / bare:.2f}). From the smaller file to the larger one the peak grew by "
            f"{(peak - fifth['peak']) / (count - fewer):.0f} bytes an image.",
        )
    )
    return 0 if right else 1


def _import(file: Path) -> dict[str, Any]:
    from retrieval.images.roots import image_root_get_or_create
    from retrieval.importing.services import import_images

    root = image_root_get_or_create(location=str(file.parent))
    checked: list[float] = []

    def progress(done: int, _total: int) -> None:
        if not done:
            checked.append(time.perf_counter())

    before = harness.peak_bytes()
    began = time.perf_counter()
    report = import_images(
        path=file, dataset="made up", root=root, progress=progress, checking=lambda *_: None
    )
    return {
        "seconds": time.perf_counter() - began,
        "checking": checked[0] - began,
        "before": before,
        "peak": harness.peak_bytes(),
        "skipped": report.skipped,
    }


def _empty() -> None:
    """Take all images away, so that the next import is a first one, and write out what is due."""
    harness.sql("TRUNCATE retrieval_image CASCADE")
    harness.sql("CHECKPOINT")


def _is_right(count: int, species: int) -> bool:
    """Whether the table holds each image of the file once, with its species."""
    [found] = harness.sql(
        "SELECT count(*), count(DISTINCT i.id), sum(i.id), count(s.id)"
        " FROM retrieval_image i LEFT JOIN retrieval_species s ON s.id = i.species_id"
        " AND s.specific_epithet = 'species' || i.id * 7919 %% %s",
        [species],
    )
    return bool(found == (count, count, count * (count - 1) // 2, count))


def _bare_copy(file: Path, images: int) -> float:
    """Seconds of a COPY of all rows into a table like that of images."""
    from django.db import connection

    harness.sql("CREATE TABLE bench_image (LIKE retrieval_image INCLUDING ALL)")
    for (definition,) in harness.sql(
        "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
        " WHERE conrelid = 'retrieval_image'::regclass AND contype = 'f'"
    ):
        harness.sql(f"ALTER TABLE bench_image ADD {definition}")
    with connection.cursor() as cursor:
        with file.open("wb") as target:
            cursor.copy_expert("COPY retrieval_image TO STDOUT", target)
        harness.sql("CHECKPOINT")
        with file.open("rb") as source:
            spent = harness.seconds(
                cursor.copy_expert, "COPY bench_image FROM STDIN", source, 1024 * 1024
            )
    assert harness.sql("SELECT count(*) FROM bench_image") == [(images,)]
    harness.sql("DROP TABLE bench_image")
    return spent


if __name__ == "__main__":
    sys.exit(main())
