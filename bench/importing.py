"""How fast a benchmark is imported, and in how much memory: `python -m bench.importing`.

As many annotations are made up as the paper counts (Vendrow et al. 2024: 194,334 of 250 queries) in
the layout of INQUIRE's files, and a process of its own imports them; once more with as many
judgments of the same pairs. It is compared with reading the annotations with csv.reader alone.
"""

from __future__ import annotations

import csv
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench import harness

HEAD: Final = ("What", "Seconds", "Peak memory", "× bare reading", "Remark")
IMAGES: Final = 5_000_000
COPIES: Final = 5
QUERIES: Final = {"val": range(50), "test": range(50, 250)}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a release that came out isn't of the pairs that went in."""
    options = harness.parse("importing", __doc__, arguments, pairs=194_334)
    with (
        harness.temporary_folder("importing") as folder,
        harness.process(folder / "var", migrate=True),
    ):
        plain, judged = folder / "annotations", folder / "judgments"
        for directory in (plain, judged):
            _write(directory, options.pairs, judged=directory is judged)
        bare = min(harness.seconds(_read, plain / "inquire_annotations.csv") for _ in range(COPIES))
        found = []
        for directory in (plain, judged):
            harness.log(f"Importing {directory.name} …")
            with harness.process(folder / "var") as child:
                found.append(child(_import, directory))
    what = f"{options.pairs:,} annotations"
    rows = [[f"Reading {what}", f"{bare:.2f}", "", "1.0", f"csv.reader, fastest of {COPIES}"]]
    rows += [
        [
            f"import_benchmark of {what}{more}",
            f"{one['seconds']:.2f}",
            harness.megabytes(one["peak"]),
            f"{one['seconds'] / bare:.0f}",
            f"every format written; {harness.megabytes(one['before'])} before it begins",
        ]
        for more, one in zip(("", " and as many judgments"), found, strict=True)
    ]
    packages = ("Django", "pyarrow", "psycopg2-binary")
    print(
        harness.section(
            "Importing a benchmark", options.command, packages, harness.table(HEAD, rows)
        )
    )
    right = all(one["positives"] == options.pairs for one in found)
    return 0 if right and found[1]["judgments"] == options.pairs else 1


def _write(directory: Path, count: int, *, judged: bool) -> None:
    """INQUIRE's files with `count` relevant pairs, and with as many judgments where they are
    `judged`; the same each time.
    """
    directory.mkdir()
    for split, numbers in QUERIES.items():
        with (directory / f"inquire_queries_{split}.csv").open("w", encoding="utf-8") as file:
            file.write("query_id,query_text,supercategory,category,iconic_group\n")
            file.writelines(
                f"{number},an animal that does the thing number {number},Appearance,"
                "Sex identification,Birds\n"
                for number in numbers
            )
    drawn = random.Random(7)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < count:
        pairs.add((drawn.randrange(250), drawn.randrange(IMAGES)))
    with (directory / "inquire_annotations.csv").open("w", encoding="utf-8") as file:
        file.write("query_id,image_id,image_path\n")
        file.writelines(
            f"{query},{image},train/{image % 10_000:05}_Animalia/{image}.jpg\n"
            for query, image in sorted(pairs)
        )
    if judged:
        with (directory / "judgments.csv").open("w", encoding="utf-8") as file:
            file.write("query_id,image_id,relevance,annotator,rank,seconds,source\n")
            file.writelines(
                f"{query},{image},relevant,annotator_{1 + query % 7},,1.500,list\n"
                for query, image in sorted(pairs)
            )


def _read(path: Path) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        for _ in csv.reader(file):
            pass


def _import(directory: Path) -> dict[str, Any]:
    from django.core.management import call_command

    from benchmark.releases.models import Release

    before = harness.peak_bytes()
    spent = harness.seconds(call_command, "import_benchmark", str(directory))
    release = Release.objects.get(name=directory.name)
    return {
        "seconds": spent,
        "before": before,
        "peak": harness.peak_bytes(),
        "positives": release.positives,
        "judgments": release.judgments,
    }


if __name__ == "__main__":
    sys.exit(main())
