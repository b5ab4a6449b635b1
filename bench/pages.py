"""How long each page takes over a large corpus and over a small one: `python -m bench.pages`.

Two databases of made-up rows (`rows.fill_for_pages`) differ in the number of images alone. Each is
asked for every page and every reading endpoint of the API, by people of each role, through Django's
test client: all of the application and of PostgreSQL, without the network. Then images are imported
into both, and the large one's bytes an image say how large the tables of PAPER images would be.

With `--folder` the databases stay there, and later runs use them again.
"""

from __future__ import annotations

import os
import sys
import time
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

import psutil

from bench import harness
from bench.loading_file import write_coco

DEPTH: Final = 3000
#: Of fewer images PostgreSQL reads the table whole for good reason.
LARGE_FROM: Final = 100_000
IMPORTED: Final = 20_000
IMPORTS: Final = 3
#: CrypticBio's images.
PAPER: Final = 166_000_000
TABLES_HEAD: Final = ("Table", "Bytes an image", "Its indexes", f"{PAPER:,} images")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a page reads a large table whole, or runs other statements over the
    large corpus than over the small one.
    """
    options = harness.parse(
        "pages",
        __doc__,
        arguments,
        images=4_800_000,
        small=3_000,
        species=10_000,
        judgments=212_500,
        rounds=11,
        folder="",
    )
    os.environ.update(ALLOWED_HOSTS="localhost", EMBEDDING_MODEL="rows", HTTPS_ONLY="false")
    with (
        _folder(options.folder) as folder,
        harness.process(folder / "small", migrate=True) as small,
        harness.process(folder / "large", migrate=True) as large,
    ):
        for site, images in ((small, options.small), (large, options.images)):
            if not site(harness.sql, "SELECT 1 FROM retrieval_image LIMIT 1"):
                harness.log(f"Making a database of {images:,} images …")
                site(_fill, images, options.species, options.judgments, min(DEPTH, options.small))
        rows, ratios, faults = [], [], []
        for number, name in enumerate(small(_names)):
            harness.log(f"{name} …")
            counts, whole = zip(
                *(site(_statements, number) for site in (small, large)), strict=True
            )
            times = harness.in_turn(
                options.rounds,
                {
                    "small": lambda _, number=number: small(_seconds, number),  # type: ignore[misc]
                    "large": lambda _, number=number: large(_seconds, number),  # type: ignore[misc]
                },
            )
            first, second = median(times["small"]), median(times["large"])
            ratios.append(second / first)
            if counts[0] != counts[1]:
                faults.append(f"{name}: {counts[0]} statements and {counts[1]}")
            if options.images >= LARGE_FROM:
                faults += [f"{name}: {one}" for one in whole[1]]
            statements = ", ".join(dict.fromkeys(map(str, counts)))
            cells = [name, statements, harness.ms(first), harness.ms(second)]
            rows.append([*cells, f"{ratios[-1]:.2f}", "; ".join(whole[1])])
        memory, tables = [site(_memory) for site in (small, large)], large(_tables)
        coco = folder / "train.json"
        write_coco(coco, images=min(IMPORTED, options.small), species=options.species)
        imports = harness.in_turn(
            IMPORTS,
            {
                "small": lambda _: small(_import, coco),
                "large": lambda _: large(_import, coco),
            },
        )
        [[size]] = large(harness.sql, "SELECT pg_database_size(current_database())")
        [[buffers]] = large(harness.sql, "SHOW shared_buffers")
    own, server = zip(*(map(harness.megabytes, pair) for pair in memory), strict=True)
    head = ["Page", "SQL", f"{options.small:,} images", f"{options.images:,} images", "×"]
    print(
        harness.section(
            "Pages",
            options.command,
            ("Django", "djangorestframework", "psycopg2-binary"),
            f"{options.species:,} species, {options.judgments:,} judgments of 250 queries and "
            f"second opinions; the large database has {size / 1e9:.1f} GB. Medians of "
            f"{options.rounds} requests each. The large corpus takes {median(ratios):.2f} times as "
            f"long as the small one (median of all pages; at most {max(ratios):.2f}). “Read whole” "
            "names large tables that a statement's plan reads from end to end.",
            harness.table([*head, "Read whole"], rows),
            f"An import of {min(IMPORTED, options.small):,} images, left in place, takes "
            f"{median(imports['large']) / median(imports['small']):.2f} times as long beside "
            f"{options.images:,} images as beside {options.small:,} (medians of {IMPORTS}).",
            harness.table(TABLES_HEAD, tables),
            f"After all pages the process that answers holds {own[0]} of anonymous memory over the "
            f"small corpus and {own[1]} over the large one; PostgreSQL's processes together hold "
            f"{server[0]} and {server[1]}, and share {buffers} of buffers.",
        )
    )
    for fault in faults:
        harness.log(fault)
    return 1 if faults else 0


def _folder(given: str) -> AbstractContextManager[Path]:
    return nullcontext(Path(given).absolute()) if given else harness.temporary_folder("pages")


def _fill(images: int, species: int, judgments: int, depth: int) -> None:
    from bench.rows import fill_for_pages

    fill_for_pages(images=images, species=species, judgments=judgments, depth=min(depth, images))


@cache
def _site() -> tuple[Any, Any]:
    from bench.page_list import clients, pages

    return clients(), pages()


def _names() -> list[str]:
    return [page.name for page in _site()[1]]


def _get(number: int) -> None:
    clients, pages = _site()
    page = pages[number]
    answer = clients[page.role].get(page.path)
    for _ in answer.streaming_content if answer.streaming else ():
        pass
    if answer.status_code not in (200, 302):
        raise RuntimeError(f"{page.name}: {answer.status_code}")


def _seconds(number: int) -> float:
    return harness.seconds(_get, number)


def _statements(number: int) -> tuple[int, list[str]]:
    """How many a page runs once its process has seen it, and what is read whole then or before."""
    from bench.plans import watched

    _site()
    with watched(plans=True) as cold:
        _get(number)
    with watched(plans=True) as warm:
        _get(number)
    return len(warm.statements), sorted({table for table, _ in cold.whole + warm.whole})


def _import(file: Path) -> float:
    from retrieval.images.roots import image_root_get_or_create
    from retrieval.importing.services import import_images

    root = image_root_get_or_create(location=str(file.parent))
    began = time.perf_counter()
    report = import_images(path=file, dataset=f"made up {uuid.uuid4()}", root=root)
    assert not report.refused_count, report.refused
    return time.perf_counter() - began


def _tables() -> list[list[str]]:
    """The bytes an image of the tables that grow with the corpus, and what they are for PAPER
    images.
    """
    [[images]] = harness.sql("SELECT count(*) FROM retrieval_image")
    found = harness.sql(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
        " WHERE relname ~ '^retrieval_(image|embedding_[0-9]+)$' ORDER BY relname"
    )
    return [
        [
            name,
            f"{table / images:.0f}",
            f"{indexes / images:.0f}",
            f"{(table + indexes) / images * PAPER / 1e9:.0f} GB",
        ]
        for name, table, indexes in found
    ]


def _memory() -> tuple[int, int]:
    """Anonymous bytes of this process, and of all of PostgreSQL's, whose shared buffers come on
    top.
    """
    [[backend]] = harness.sql("SELECT pg_backend_pid()")
    server = psutil.Process(backend).parent()
    assert server is not None
    total = harness.anonymous_bytes(server.pid)
    for child in server.children():
        try:
            total += harness.anonymous_bytes(child.pid)
        except psutil.NoSuchProcess:
            continue
    return harness.anonymous_bytes(), total


if __name__ == "__main__":
    sys.exit(main())
