"""How long each page takes over a large corpus and over a small one: `python -m bench.pages`.

Two databases of made-up rows (`rows.fill_for_pages`) differ only in the number of images. People of
each role open every page and every reading endpoint of the API over each, through Django's test
client: the whole application and PostgreSQL, without the network. Then images are imported into
both, and from the large one's bytes per image follows how large the tables of PAPER images would
be.

With `--folder` the databases stay there, and later runs use them again.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench import harness
from bench.rows import fill_for_pages, write_coco

DEPTH: Final = 3000
#: With fewer images, PostgreSQL reads the whole table for good reason.
LARGE_FROM: Final = 100_000
IMPORTED: Final = 20_000
IMPORTS: Final = 3
#: CrypticBio's images.
PAPER: Final = 166_000_000
TABLES_HEAD: Final = f"Table | Bytes an image | Its indexes | {PAPER:,} images"


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether no page reads a whole large table, or runs more or fewer statements over the large
    corpus than over the small one; and the times of all pages.
    """
    os.environ.update(ALLOWED_HOSTS="localhost", EMBEDDING_MODEL="rows", HTTPS_ONLY="false")
    given = nullcontext(Path(options.folder).absolute()) if options.folder else None
    with (
        given or harness.temporary_folder() as folder,
        harness.process(folder / "small", migrate=True) as small,
        harness.process(folder / "large", migrate=True) as large,
    ):
        for site, images in ((small, options.small), (large, options.images)):
            if not site(harness.sql, "SELECT 1 FROM retrieval_image LIMIT 1"):
                harness.log(f"Making a database of {images:,} images …")
                depth = min(DEPTH, options.small, images)
                site(_fill, images, options.species, options.judgments, depth, options.queries)

        def beside(rounds: int, what: Callable[..., float], argument: Any) -> tuple[float, float]:
            """The medians of seconds, over the small corpus and over the large one."""
            ways = {
                "small": lambda _: small(what, argument),
                "large": lambda _: large(what, argument),
            }
            first, second = map(median, harness.in_turn(rounds, ways).values())
            return first, second

        rows, ratios, faults = [], [], []
        for number, name in enumerate(small(_names)):
            harness.log(f"{name} …")
            (few, _), (many, whole) = (site(_statements, number) for site in (small, large))
            first, second = beside(options.rounds, _seconds, number)
            ratios.append(second / first)
            if few != many:
                faults.append(f"{name}: {few} statements and {many}")
            if options.images >= LARGE_FROM:
                faults += [f"{name}: {table}" for table in whole]
            statements = ", ".join(dict.fromkeys(map(str, (few, many))))
            times = map(harness.ms, (first, second))
            size = large(_get, number)
            rows.append([name, size, statements, *times, ratios[-1], "; ".join(whole)])
        tables, coco = large(_tables), folder / "train.json"
        imported = min(IMPORTED, options.small)
        write_coco(coco, images=imported, species=options.species)
        import_small, import_large = beside(IMPORTS, _import, coco)
        [[stored]] = large(harness.sql, "SELECT pg_database_size(current_database())")
    for fault in faults:
        harness.log(fault)
    sizes = f"{options.small:,} images | {options.images:,} images"
    return not faults, [
        f"{options.species:,} species, {options.judgments:,} judgments of "
        f"{options.queries:,} queries and "
        f"second opinions; the large database has {stored / 1e9:.1f} GB. Medians of "
        f"{options.rounds} requests each. The large corpus takes {median(ratios):.2f} times as "
        f"long as the small one (median of all pages; at most {max(ratios):.2f}). “Read whole” "
        "names large tables that a statement's plan reads from end to end. “Bytes” are those of an "
        "answer over the large corpus before it is compressed.",
        harness.table(f"Page | Bytes | SQL | {sizes} | × | Read whole", rows),
        f"An import of {imported:,} images, left in place, takes {import_large / import_small:.2f} "
        f"times as long beside {options.images:,} images as beside {options.small:,} (medians of "
        f"{IMPORTS}).",
        harness.table(TABLES_HEAD, tables),
    ]


def _fill(images: int, species: int, judgments: int, depth: int, queries: int) -> None:
    fill_for_pages(
        images=images, species=species, judgments=judgments, depth=depth, queries=queries
    )


@cache
def _site() -> tuple[Any, Any]:
    from bench.page_list import clients, pages

    return clients(), pages()


def _names() -> list[str]:
    return [page.name for page in _site()[1]]


def _get(number: int) -> int:
    """The bytes of a page, not compressed."""
    clients, pages = _site()
    page = pages[number]
    answer = clients[page.role].get(page.path)
    size = sum(map(len, answer.streaming_content if answer.streaming else (answer.content,)))
    if answer.status_code not in (200, 302):
        raise RuntimeError(f"{page.name}: {answer.status_code}")
    return size


def _seconds(number: int) -> float:
    return harness.seconds(_get, number)


def _statements(number: int) -> tuple[int, list[str]]:
    """The number of statements of a page at its second request, and the tables that either request
    reads whole."""
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
    dataset = f"made up {uuid.uuid4()}"
    spent, report = harness.timed(import_images, path=file, dataset=dataset, root=root)
    assert not report.refused_count, report.refused
    return spent


def _tables() -> list[list[Any]]:
    """Bytes per image of the tables that grow with the corpus, and their size for PAPER images."""
    [[images]] = harness.sql("SELECT count(*) FROM retrieval_image")
    sizes = harness.sql(
        "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
        " WHERE relname ~ '^retrieval_(image|embedding_[0-9]+)$' ORDER BY relname"
    )
    return [
        [
            name,
            table // images,
            indexes // images,
            f"{(table + indexes) / images * PAPER / 1e9:.0f} GB",
        ]
        for name, table, indexes in sizes
    ]


if __name__ == "__main__":
    packages = ("Django", "djangorestframework", "psycopg2-binary")
    sizes = {
        "images": 4_800_000,
        "small": 3_000,
        "species": 10_000,
        "judgments": 212_500,
        "queries": 250,
    }
    harness.run(main, "Pages", packages, **sizes, rounds=11, folder="")
