"""How long each page takes over a large corpus and over a small one: `python -m bench.pages`.

Two databases of made-up rows (`rows.fill_for_pages`) differ in the number of images alone. Each is
asked for every page and every reading endpoint of the API, by people of each role, through Django's
test client: all of the application and of PostgreSQL, without the network.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from statistics import median
from typing import Any, Final

import psutil

from bench import harness

DEPTH: Final = 3000
#: Of fewer images PostgreSQL reads the table whole for good reason.
LARGE_FROM: Final = 100_000


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
    )
    os.environ.update(ALLOWED_HOSTS="localhost", EMBEDDING_MODEL="rows", HTTPS_ONLY="false")
    with (
        harness.temporary_folder("pages") as folder,
        harness.process(folder / "small", migrate=True) as small,
        harness.process(folder / "large", migrate=True) as large,
    ):
        for site, images in ((small, options.small), (large, options.images)):
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
        memory = [site(_memory) for site in (small, large)]
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
            f"After all pages the process that answers holds {own[0]} of anonymous memory over the "
            f"small corpus and {own[1]} over the large one; PostgreSQL's processes together hold "
            f"{server[0]} and {server[1]}, and share {buffers} of buffers.",
        )
    )
    for fault in faults:
        harness.log(fault)
    return 1 if faults else 0


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
