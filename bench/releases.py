"""How fast a release is made, and in how much memory: `python -m bench.releases`.

Fills a database of its own in a temporary folder with rows of INQUIRE's size (Vendrow et al. 2024:
250 queries, 194,334 judgments, 5 million images of 10,000 species) and has a process of its own
make a release of them in every format, without image bytes. Machines differ, so the time stands
beside that of a bare COPY of the judged pairs.
"""

from __future__ import annotations

import argparse
import json
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

NAME: Final = "INQUIRE's size"
AIM_SECONDS: Final = 60
AIM_MEGABYTES: Final = 500
COPIES: Final = 5
PACKAGES: Final = ("Django", "pyarrow", "psycopg2-binary")
HEAD: Final = Row("What", "Seconds", "Size", "× bare COPY", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the release that came out isn't of the rows that went in."""
    parser = argparse.ArgumentParser(prog="python -m bench.releases", description=__doc__)
    parser.add_argument("--images", type=int, default=5_000_000, help="images in the corpus")
    parser.add_argument("--species", type=int, default=10_000)
    parser.add_argument("--judgments", type=int, default=194_334)
    parser.add_argument("--make", metavar="VAR_DIR", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make:
        print(json.dumps(_make(options.make)))
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-releases-") as folder:
        return _measure(Path(folder), options)


def _measure(folder: Path, options: argparse.Namespace) -> int:
    var_dir = folder / "var"
    use_state(var_dir)
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres
    from bench.corpus_rows import fill, judged_pairs_copied

    try:
        tell("Making a database of its own …")
        call_command("migrate", verbosity=0)
        tell(f"Filling it with {options.images:,} images and {options.judgments:,} judgments …")
        fill(images=options.images, species=options.species, judgments=options.judgments)
        bare = min(
            _seconds(lambda: judged_pairs_copied(str(folder / "pairs.tsv"))) for _ in range(COPIES)
        )
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            database = cursor.fetchone()[0]
        tell("Making the release in a process of its own …")
        command = [sys.executable, "-m", "bench.releases", "--make", str(var_dir)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        made = json.loads(done.stdout.splitlines()[-1])
    finally:
        connection.close()
        embedded_postgres(var_dir).leave(wait=True)
    print(f"# Releases\n\n{machine(PACKAGES)}\n")
    print(table(_rows(made, bare, database, options), head=HEAD))
    return 0 if made["judgments"] == options.judgments else 1


def _make(var_dir: str) -> dict[str, Any]:
    """What a process that does only this measured of itself."""
    began = time.perf_counter()
    use_state(Path(var_dir))
    from benchmark.services import release_claim, release_make
    from benchmark.services.progress import Step

    steps: dict[str, list[float]] = {}

    def report(told: Sequence[Step]) -> None:
        for step in told:
            if step.state == "running":
                steps.setdefault(step.title, [time.perf_counter(), 0.0])
            elif step.state == "done" and not steps[step.title][1]:
                steps[step.title][1] = time.perf_counter()

    started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    claimed = release_claim(name=NAME, created_by=None, options={"rerank_model": "rows"})
    release = release_make(release=claimed, report=report)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": time.perf_counter() - began,
        "steps": {title: ended - begun for title, (begun, ended) in steps.items()},
        "cpu_seconds": time.process_time(),
        "megabytes_before": started / 1024,
        "megabytes": peak / 1024,
        "judgments": release.judgments,
        "positives": release.positives,
        "files": [
            {"name": entry["name"], "size": entry["size"]}
            for entry in [*release.file_list, release.archive, release.archive["open"]]
        ],
    }


def _rows(
    made: dict[str, Any], bare: float, database: int, options: argparse.Namespace
) -> list[Row]:
    rows = [
        Row(
            f"Bare COPY of {options.judgments:,} judged pairs",
            _text(bare),
            ratio="1.0",
            remark=f"the reference, best of {COPIES}; the database has {database / 1e9:.1f} GB",
        ),
        Row(
            "A release in all formats, without image bytes",
            _text(made["seconds"]),
            ratio=f"{made['seconds'] / bare:.0f}",
            remark=f"aim: under {AIM_SECONDS} s; start of the process included, which itself was "
            f"busy for {made['cpu_seconds']:.1f} s",
        ),
        Row(
            "Peak memory of the process",
            late=f"{made['megabytes']:.0f} MB",
            remark=f"aim: under {AIM_MEGABYTES} MB; {made['megabytes_before']:.0f} MB before it "
            "begins",
        ),
    ]
    rows += [
        Row(f"Step: {title}", _text(seconds), ratio=f"{seconds / bare:.1f}")
        for title, seconds in made["steps"].items()
    ]
    rows += [Row(f"File: {one['name']}", late=_size(one["size"])) for one in made["files"]]
    return rows


def _seconds(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _text(seconds: float) -> str:
    return f"{seconds:.2f}"


def _size(count: int) -> str:
    return f"{count / 1e6:.2f} MB"


if __name__ == "__main__":
    sys.exit(main())
