"""How fast a benchmark is imported, and in how much memory: `python -m bench.importing QUERIES`.

QUERIES is a directory with INQUIRE's two query files, which aren't part of this repository. To them
come made-up annotations, as many as the paper counts (Vendrow et al. 2024: 194,334), and a process
of its own does `manage.py import_benchmark` on a database of its own. Once more, with as many
judgments of the same pairs beside them. Machines differ, so the times stand beside reading the
annotations with csv.reader alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.figures import Row, machine, table
from bench.own_state import tell, use_state

QUERY_FILES: Final = ("inquire_queries_val.csv", "inquire_queries_test.csv")
ANNOTATIONS: Final = "inquire_annotations.csv"
IMAGES: Final = 5_000_000
COPIES: Final = 5
PACKAGES: Final = ("Django", "pyarrow", "psycopg2-binary")
HEAD: Final = Row("What", "Seconds", "Peak memory", "× bare reading", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a release that came out isn't of the pairs that went in."""
    parser = argparse.ArgumentParser(prog="python -m bench.importing", description=__doc__)
    parser.add_argument("queries", type=Path, help="the directory of the query files")
    parser.add_argument("--pairs", type=int, default=194_334)
    parser.add_argument("--make", metavar="VAR_DIR", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make:
        print(json.dumps(_import(options.make, options.queries)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-importing-") as folder:
        return _measure(Path(folder), options)


def _measure(folder: Path, options: argparse.Namespace) -> int:
    var_dir = folder / "var"
    use_state(var_dir)
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres

    plain = write_benchmark(folder / "annotations", options.queries, options.pairs, judged=False)
    judged = write_benchmark(folder / "judgments", options.queries, options.pairs, judged=True)
    bare = min(_read(plain / ANNOTATIONS) for _ in range(COPIES))
    try:
        tell("Making a database of its own …")
        call_command("migrate", verbosity=0)
        tell("Importing, each in a process of its own …")
        found = [_child(var_dir, directory) for directory in (plain, judged)]
    finally:
        connection.close()
        embedded_postgres(var_dir).leave(wait=True)
    print(f"# Importing a benchmark\n\n{machine(PACKAGES)}\n")
    rows = [
        Row(
            f"Reading {options.pairs:,} annotations with csv.reader",
            f"{bare:.2f}",
            ratio="1.0",
            remark=f"the reference, best of {COPIES}",
        )
    ]
    names = ("annotations", "annotations and as many judgments")
    for name, one in zip(names, found, strict=True):
        rows.append(
            Row(
                f"import_benchmark of {options.pairs:,} {name}",
                f"{one['seconds']:.2f}",
                f"{one['megabytes']:.0f} MB",
                f"{one['seconds'] / bare:.0f}",
                f"every format written; {one['megabytes_before']:.0f} MB before it begins",
            )
        )
    print(table(rows, head=HEAD))
    right = all(one["positives"] == options.pairs for one in found)
    return 0 if right and found[1]["judgments"] == options.pairs else 1


def write_benchmark(directory: Path, queries: Path, count: int, *, judged: bool) -> Path:
    """INQUIRE's queries with `count` made-up relevant pairs in the order of the authors' file, and
    with as many judgments where they are `judged`; the same each time."""
    directory.mkdir()
    ids = []
    for name in QUERY_FILES:
        (directory / name).write_bytes((queries / name).read_bytes())
        with (queries / name).open(encoding="utf-8", newline="") as file:
            ids += [int(row["query_id"]) for row in csv.DictReader(file)]
    drawn = random.Random(7)
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < count:
        pairs.add((drawn.choice(ids), drawn.randrange(IMAGES)))
    with (directory / ANNOTATIONS).open("w", encoding="utf-8") as file:
        file.write("query_id,image_id,image_path\n")
        file.writelines(
            f"{query_id},{image_id},train/{image_id % 10_000:05}_Animalia/{image_id}.jpg\n"
            for query_id, image_id in sorted(pairs)
        )
    if judged:
        with (directory / "judgments.csv").open("w", encoding="utf-8") as file:
            file.write("query_id,image_id,relevance,annotator,rank,seconds,source\n")
            file.writelines(
                f"{query_id},{image_id},relevant,annotator_{1 + query_id % 7},,1.500,list\n"
                for query_id, image_id in sorted(pairs)
            )
    return directory


def _child(var_dir: Path, directory: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.importing", str(directory), "--make", str(var_dir)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _import(var_dir: str, directory: Path) -> dict[str, Any]:
    """What a process that does only this measured of itself."""
    began = time.perf_counter()
    use_state(Path(var_dir))
    from django.core.management import call_command

    from benchmark.models import Release

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call_command("import_benchmark", str(directory))
    release = Release.objects.get(name=directory.name)
    return {
        "seconds": time.perf_counter() - began,
        "megabytes_before": before / 1024,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "positives": release.positives,
        "judgments": release.judgments,
    }


def _read(path: Path) -> float:
    began = time.perf_counter()
    with path.open(encoding="utf-8", newline="") as file:
        for _ in csv.reader(file):
            pass
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main())
