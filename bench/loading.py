"""How fast a data set of iNat24's size is loaded: `python -m bench.loading`.

Makes a COCO file up, and has a process of its own import it with its images left in place. Beside
it stands a bare COPY of the rows that came out, from a file, into a table of its own with the same
columns, indexes and constraints: each has its turn in each round, so that a slow moment of the
machine meets both. The import reads and checks the file twice besides, and keeps the counts that
pages show. Then everything is imported once more, which finds all of it there; and a file of a
fifth of the size is imported, to show what of the memory grows.
"""

from __future__ import annotations

import argparse
import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.figures import grid, machine
from bench.loading_file import category_of, write_coco
from bench.own_state import tell, use_state

AIM: Final = 2.0
"""Times a bare COPY that an import may take."""
PACKAGES: Final = ("Django", "psycopg2-binary", "msgspec", "numpy")
HEAD: Final = ("What", "Seconds", "Images a second", "× bare COPY", "Peak memory", "Remark")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the rows that came out aren't those of the file."""
    parser = argparse.ArgumentParser(prog="python -m bench.loading", description=__doc__)
    parser.add_argument("--images", type=int, default=500_000)
    parser.add_argument("--species", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the database lies while it is needed")
    parser.add_argument("--import", dest="file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--state", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.file:
        print(json.dumps(_import(options.file, options.state)))
        return 0
    given = shlex.join(sys.argv[1:] if arguments is None else arguments)
    with tempfile.TemporaryDirectory(prefix="bench-loading-", dir=options.folder) as folder:
        return _measure(Path(folder), options, f"python -m bench.loading {given}".strip())


def _measure(folder: Path, options: argparse.Namespace, command: str) -> int:
    use_state(folder / "var")
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres

    file, smaller = folder / "train.json", folder / "fifth.json"
    tell(f"Writing a file of {options.images:,} images of {options.species:,} species …")
    write_coco(file, images=options.images, species=options.species)
    write_coco(smaller, images=options.images // 5, species=options.species)
    try:
        call_command("migrate", verbosity=0)
        imports, copies, right = [], [], True
        for number in range(options.rounds):
            tell(f"Round {number + 1} of {options.rounds} …")
            _empty()
            imports.append(_child(file, folder))
            right = right and _is_right(options)
            copies.append(_bare_copy(folder / "rows.tsv", options.images))
        tell("Importing the same once more …")
        again = _child(file, folder)
        right = right and again["skipped"] == options.images and _is_right(options)
        tell("Importing a fifth of it …")
        _empty()
        fifth = _child(smaller, folder)
    finally:
        connection.close()
        embedded_postgres(folder / "var").leave(wait=True)
    size = file.stat().st_size
    print(_section(options, command, size, imports, copies, again, fifth))
    return 0 if right else 1


def _child(file: Path, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "bench.loading", "--import", str(file)]
    command += ["--state", str(folder / "var")]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _import(file: Path, var_dir: Path) -> dict[str, Any]:
    """What a process that does only this measured of itself."""
    use_state(var_dir)
    from retrieval.services.importing import import_images
    from retrieval.services.roots import image_root_get_or_create

    root = image_root_get_or_create(location=str(file.parent))
    checked: list[float] = []

    def progress(done: int, _total: int) -> None:
        if not done:
            checked.append(time.perf_counter())

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.perf_counter()
    report = import_images(
        path=file, dataset="made up", root=root, progress=progress, checking=lambda *_: None
    )
    return {
        "seconds": time.perf_counter() - began,
        "checking": checked[0] - began,
        "megabytes_before": before / 1024,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "added": report.added,
        "skipped": report.skipped,
        "refused": report.refused_count,
    }


def _empty() -> None:
    """Take all images away, so that the next import is a first one, and write out what is due."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE retrieval_image CASCADE")
        cursor.execute("CHECKPOINT")


def _is_right(options: argparse.Namespace) -> bool:
    """Whether the table holds each image of the file once, with its species."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*), count(DISTINCT i.id), sum(i.id), count(s.id)"
            " FROM retrieval_image i LEFT JOIN retrieval_species s ON s.id = i.species_id"
            " AND s.specific_epithet = 'species' || i.id * 7919 %% %s",
            [options.species],
        )
        found = cursor.fetchone()
    count = options.images
    assert category_of(1, 10_000) == 7919
    return bool(found == (count, count, count * (count - 1) // 2, count))


def _bare_copy(file: Path, images: int) -> float:
    """Seconds of a COPY of all rows into a table like that of images."""
    from django.db import connection

    with connection.cursor() as cursor:
        with file.open("wb") as target:
            cursor.copy_expert("COPY retrieval_image TO STDOUT", target)
        cursor.execute("DROP TABLE IF EXISTS bench_image")
        cursor.execute("CREATE TABLE bench_image (LIKE retrieval_image INCLUDING ALL)")
        cursor.execute(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint"
            " WHERE conrelid = 'retrieval_image'::regclass AND contype = 'f'"
        )
        for (definition,) in cursor.fetchall():
            cursor.execute(f"ALTER TABLE bench_image ADD {definition}")
        cursor.execute("CHECKPOINT")
        began = time.perf_counter()
        with file.open("rb") as source:
            cursor.copy_expert("COPY bench_image FROM STDIN", source, size=1024 * 1024)
        seconds = time.perf_counter() - began
        cursor.execute("SELECT count(*) FROM bench_image")
        assert cursor.fetchone() == (images,)
        cursor.execute("DROP TABLE bench_image")
    return seconds


def _section(
    options: argparse.Namespace,
    command: str,
    size: int,
    imports: Sequence[dict[str, Any]],
    copies: Sequence[float],
    again: dict[str, Any],
    fifth: dict[str, Any],
) -> str:
    bare = median(copies)
    usual = median(one["seconds"] for one in imports)
    checking = median(one["checking"] for one in imports)
    peak = max(one["megabytes"] for one in imports)

    def row(
        what: str, seconds: float, images: int, *, memory: str = "", remark: str = "", ratio: bool
    ) -> tuple[str, ...]:
        return (
            what,
            f"{seconds:.2f}",
            f"{images / seconds:,.0f}",
            f"{seconds / bare:.2f}" if ratio else "",
            memory,
            remark,
        )

    def memory(one: dict[str, Any]) -> str:
        return f"{one['megabytes']:.0f} MB"

    ratio = usual / bare
    reached = "reached" if ratio <= AIM else "not reached"
    rows = [
        row(
            f"Bare COPY of {options.images:,} rows",
            bare,
            options.images,
            remark="the reference; same columns, indexes and constraints",
            ratio=True,
        ),
        row(
            f"import_images --in-place of {options.images:,} images",
            usual,
            options.images,
            memory=f"{peak:.0f} MB",
            remark=f"{imports[0]['megabytes_before']:.0f} MB before it begins",
            ratio=True,
        ),
        row(
            "— of that, checking and indexing the file",
            checking,
            options.images,
            remark=f"{size / 1e6:.0f} MB, {options.species:,} species",
            ratio=True,
        ),
        row(
            "The same once more",
            again["seconds"],
            options.images,
            memory=memory(again),
            remark=f"{again['skipped']:,} skipped",
            ratio=True,
        ),
        row(
            f"import_images --in-place of {options.images // 5:,} images",
            fifth["seconds"],
            options.images // 5,
            memory=memory(fifth),
            remark="the same species",
            ratio=False,
        ),
    ]
    grown = (peak - fifth["megabytes"]) * 1024**2 / (options.images - options.images // 5)
    return "\n".join(
        [
            "## Loading",
            "",
            f"{machine(PACKAGES)}\n\n`{command}`, medians of {options.rounds} rounds.",
            "",
            grid(HEAD, rows),
            "",
            f"Aim: at least half the speed of a bare COPY, {AIM:.0f} times its seconds: {reached} "
            f"({ratio:.2f}). From the smaller file to the larger one the peak grew by "
            f"{grown:.0f} bytes an image.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
