"""How long each page takes over a large corpus and over a small one: `python -m bench.pages`.

Makes two databases of synthetic rows (`corpus_rows.fill_for_pages`) that differ in the number of
images alone, and asks each for every page and every reading endpoint of the API in turn, as people
of each role who are logged in, through Django's test client: all of the application and of
PostgreSQL, without the network. A page is asked for once before it is timed, so that its process
has seen it. Requests alternate between the two, so that both meet the same machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from bench.figures import grid, machine, ms
from bench.memory import anonymous_bytes, megabytes, server_bytes
from bench.own_state import tell, use_state

PACKAGES: Final = ("Django", "djangorestframework", "psycopg2-binary")
DEPTH: Final = 3000
#: Of fewer images PostgreSQL reads the table whole for good reason.
LARGE_FROM: Final = 100_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if a page reads a large table whole, or runs other statements over the
    large corpus than over the small one.
    """
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--images", type=int, default=4_800_000, help="of the large corpus")
    parser.add_argument("--small", type=int, default=3_000, help="images of the small corpus")
    parser.add_argument("--species", type=int, default=10_000)
    parser.add_argument("--judgments", type=int, default=212_500, help="in both")
    parser.add_argument("--rounds", type=int, default=11, help="timed requests of each page")
    parser.add_argument("--folder", type=Path, help="where the databases are made for the time")
    parser.add_argument("--site", nargs=2, metavar=("VAR_DIR", "IMAGES"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.site:
        _site(Path(options.site[0]), int(options.site[1]), options)
        return 0
    with tempfile.TemporaryDirectory(prefix="bench-pages-", dir=options.folder) as folder:
        sites: list[_Site] = []
        try:
            for images in (options.small, options.images):
                tell(f"Making a database of {images:,} images …")
                sites.append(_Site(Path(folder) / f"var-{images}", images, options))
            return _measure(sites, options)
        finally:
            for site in sites:
                site.stop()


class _Site:
    """A process with a database of its own, which asks itself for pages."""

    def __init__(self, var_dir: Path, images: int, options: argparse.Namespace) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "bench.pages", "--site", str(var_dir), str(images)),
                *("--species", str(options.species), "--judgments", str(options.judgments)),
                *("--small", str(options.small)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.ready: dict[str, Any] = self._answer()

    def ask(self, what: str, page: int = 0) -> Any:
        """The answer to `seconds` or `statements` of a page, or to `memory` after all so far."""
        assert self._process.stdin is not None
        print(json.dumps([what, page]), file=self._process.stdin, flush=True)
        return self._answer()

    def stop(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("a site of the benchmark ended early")
        return json.loads(line)


def _measure(sites: list[_Site], options: argparse.Namespace) -> int:
    names: list[str] = sites[0].ready["pages"]
    rows, ratios, faults = [], [], []
    for number, name in enumerate(names):
        tell(f"{name} …")
        seen = [site.ask("statements", number) for site in sites]
        taken: list[list[float]] = [[], []]
        for _ in range(options.rounds):
            for site, times in zip(sites, taken, strict=True):
                times.append(site.ask("seconds", number))
        small, large = map(median, taken)
        ratios.append(large / small)
        whole = seen[1]["whole"]
        counts = [answer["count"] for answer in seen]
        if options.images >= LARGE_FROM:
            faults += [f"{name}: {one}" for one in whole]
        if counts[0] != counts[1]:
            faults.append(f"{name}: {counts[0]} statements and {counts[1]}")
        shown = str(counts[1]) if counts[0] == counts[1] else f"{counts[0]}, {counts[1]}"
        rows.append([name, shown, ms(small), ms(large), f"{large / small:.2f}", "; ".join(whole)])
    command = f"python -m bench.pages --images {options.images} --small {options.small}"
    size = sites[1].ready["database"] / 1e9
    print(
        f"## Pages\n\n{machine(PACKAGES)}\n\n`{command}`: {options.species:,} species,"
        f" {options.judgments:,} judgments of 250 queries and second opinions; the large database"
        f" has {size:.1f} GB. Medians of {options.rounds} requests each. The large corpus takes"
        f" {median(ratios):.2f} times as long as the small one (median of all pages; at most"
        f" {max(ratios):.2f}). “Read whole” names large tables that a statement's plan reads from"
        " end to end.\n"
    )
    head = ["Page", "SQL", f"{options.small:,} images", f"{options.images:,} images", "×"]
    print(grid([*head, "Read whole"], rows))
    print(_memory_text([site.ask("memory") for site in sites], options))
    for fault in faults:
        tell(fault)
    return 1 if faults else 0


def _memory_text(told: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """Say what the processes hold, over the small corpus and over the large one."""
    own, server = ([megabytes(one[what]) for one in told] for what in ("own", "server"))
    return (
        f"\nAfter all pages the process that answers holds {own[0]} of anonymous memory over"
        f" {options.small:,} images and {own[1]} over {options.images:,}; PostgreSQL's processes"
        f" together hold {server[0]} and {server[1]}, and share {told[1]['buffers']} of buffers."
    )


def _site(var_dir: Path, images: int, options: argparse.Namespace) -> None:
    """Fill a database, say what there is to ask for, and answer line by line."""
    os.environ.update(ALLOWED_HOSTS="localhost", EMBEDDING_MODEL="rows", HTTPS_ONLY="false")
    answers = os.fdopen(os.dup(1), "w")
    # Only answers go to the other process, whatever else is printed here.
    os.dup2(2, 1)
    use_state(var_dir)
    from django.core.management import call_command
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres
    from bench.corpus_rows import fill_for_pages

    try:
        call_command("migrate", verbosity=0)
        fill_for_pages(
            images=images,
            species=options.species,
            judgments=options.judgments,
            depth=min(DEPTH, options.small, images),
        )
        ask, ready = _pages_ready()
        print(json.dumps(ready), file=answers, flush=True)
        for line in sys.stdin:
            print(json.dumps(ask(*json.loads(line))), file=answers, flush=True)
    finally:
        connection.close()
        embedded_postgres(var_dir).leave(wait=True)


def _pages_ready() -> tuple[Callable[[str, int], Any], dict[str, Any]]:
    """What answers for a page, and what is told first."""
    from django.contrib.auth import get_user_model
    from django.db import connection
    from django.test import Client

    from bench.page_list import Known, Page, pages
    from bench.plans import watched
    from benchmark.services import release_claim, release_make
    from labeling.models import Judgment
    from retrieval.access import Role
    from retrieval.services.jobs import job_create

    user = get_user_model()
    user.objects.filter(username="admin").update(is_staff=True, is_superuser=True)
    first = Judgment.objects.filter(query__query_id=0).select_related("annotator").earliest("pk")
    people = {role: user.objects.get(username=role) for role in Role if role != Role.ANNOTATOR}
    clients = {}
    for role, person in (people | {Role.ANNOTATOR: first.annotator}).items():
        clients[str(role)] = Client(SERVER_NAME="localhost")
        clients[str(role)].force_login(person)
    job_create(kind="embed", params={"model": "rows"})
    release = release_claim(name="pages", created_by=None, options={"rerank_model": ""})
    listed = pages(Known.found(release=release_make(release=release).pk))

    def get(page: Page) -> None:
        answer: Any = clients[page.role].get(page.path)
        for _ in answer.streaming_content if answer.streaming else ():
            pass
        if answer.status_code not in (200, 302):
            raise RuntimeError(f"{page.name}: {answer.status_code}")

    def ask(what: str, number: int) -> Any:
        if what == "memory":
            with connection.cursor() as cursor:
                cursor.execute("SHOW shared_buffers")
                [buffers] = cursor.fetchone()
            return {"own": anonymous_bytes(), "server": server_bytes(), "buffers": buffers}
        page = listed[number]
        if what == "seconds":
            began = time.perf_counter()
            get(page)
            return time.perf_counter() - began
        with watched(plans=True) as cold:
            get(page)
        with watched(plans=True) as warm:
            get(page)
        whole = {table for table, _ in (*cold.whole, *warm.whole)}
        return {"count": len(warm.statements), "whole": sorted(whole)}

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_database_size(current_database())")
        [size] = cursor.fetchone()
    return ask, {"pages": [page.name for page in listed], "database": size}


if __name__ == "__main__":
    sys.exit(main())
