"""A served application with drawn images, and a crowd of `load_users` who label in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from bench import harness
from core.parent_death import end_with_parent
from demo.corpus import write_corpus
from tests.people import PASSWORD
from tests.processes import PgBouncer, Served, pool_url
from tests.site import Site

ADMIN: Final = "ada"
IMAGES_BESIDE: Final = 100
"""Images of the corpus that are not in a list, so that a list is a choice as in real work."""
SAVE: Final = "API: save"
ACKNOWLEDGED: Final = "Judgment, from the key to the answer"
HEAD: Final = "What | Times | A second | Median | 95 % | 99 % | × bare request | Failed"
#: Words of the command line of each part's processes.
PARTS: Final = {
    "web server": ("gunicorn",),
    "worker": ("celery",),
    "encoder of texts": ("encode_texts",),
    "PostgreSQL": ("pginstall/bin/postgres", "-D"),
}


@contextmanager
def site(
    folder: Path, *, depth: int, annotators: int, pool: int = 0, **variables: str
) -> Iterator[Site]:
    """A new application with an admin and annotators, filled with drawn scenes embedded by the
    demo's model; its lists have `depth` candidates. `pool` is the number of a PgBouncer's
    connections, 0 for none.
    """
    variables |= {"CANDIDATE_DEPTH": str(depth), "LOG_LEVEL": "WARNING"}
    if pool:
        variables["DATABASE_POOL_URL"] = pool_url()
    served = Served(folder / "var", **variables)
    with ExitStack() as running:
        running.callback(served.stop)
        if pool:
            running.callback(PgBouncer(folder, served, pool).kill)
        served.wait_healthy(600)
        application = Site(served, {})
        names = [f"ann{number}" for number in range(annotators)]
        application.create_users({ADMIN: "admin"} | dict.fromkeys(names, "annotator"))
        corpus = write_corpus(folder / "corpus", count=depth + IMAGES_BESIDE)
        served.manage("import_images", str(corpus / "train.json"))
        served.manage("embed", "--wait")
        yield application


def annotators(where: Site) -> list[str]:
    """Their names."""
    return [name for name in where.people if name != ADMIN]


def bare_requests(where: Site, path: str = "/static/img/favicon.svg") -> list[float]:
    """The seconds of each of two hundred requests of an annotator, one after the other."""
    request = urllib.request.Request(where.url + path, headers=where.headers("ann0"))

    def get() -> None:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    return [harness.seconds(get) for _ in range(200)]


class Load:
    """A crowd in its own process, which writes into a new folder; `load_users` describes `plan`."""

    def __init__(self, folder: Path, **plan: Any) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "plan.json").write_text(json.dumps({"password": PASSWORD, **plan}))
        command = [sys.executable, "-m", "bench.load_users", f"{folder}/plan.json", str(folder)]
        parent = os.getpid()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: end_with_parent(parent)
        )
        #: `began` and `ended`: when all labeled; `seconds` of processor time.
        self.outcome: Mapping[str, float] = {}

    def all_there(self) -> bool:
        """Whether all have arrived; also true after they have ended."""
        return self.process.poll() is not None or (self.folder / "all-there").exists()

    def wait(self) -> None:
        """Wait until all requests are answered. Raises RuntimeError if a user broke off."""
        text, _ = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError("The users broke off.")
        self.outcome = json.loads(text)

    def _lines(self, name: str) -> list[list[str]]:
        text = (self.folder / name).read_text()
        return [line.split("\t") for line in text[: text.rfind("\n") + 1].splitlines()]

    def stored(self) -> int:
        """How many judgments are stored so far."""
        return sum(what in ("stored", "repeated") for what, _ in self._lines("ledger.tsv"))

    def requests(self) -> dict[str, Any]:
        """An array for each kind of request: moment, seconds, whether it failed."""
        rows_by_name: dict[str, list[list[str]]] = {}
        for at, name, wait, failed in self._lines("requests.tsv"):
            rows_by_name.setdefault(name, []).append([at, wait, failed])
        return {name: np.array(rows, dtype=float) for name, rows in sorted(rows_by_name.items())}

    def lost_doubled_refused(self, served: Served, queries: list[int]) -> tuple[int, int, int]:
        """The numbers of acknowledged judgments that are missing in the history of the crowd's
        queries, of judgments that are there twice or that nobody made, and of refused judgments.
        """
        ledger = Counter((what, client_id) for what, client_id in self._lines("ledger.tsv"))
        of_queries = "FROM labeling_judgmentevent WHERE query_id = ANY(%s) GROUP BY"
        with served.database() as cursor:
            cursor.execute(f"SELECT client_id::text, count(*) {of_queries} 1", [queries])
            stored = dict(cursor.fetchall())
            pairs = f"{of_queries} query_id, image_id, annotator_id HAVING count(*) > 1"
            cursor.execute(f"SELECT count(*) {pairs}", [queries])
            doubled = len(cursor.fetchall())
        lost = sum(
            what in ("stored", "repeated") and client_id not in stored for what, client_id in ledger
        )
        doubled += sum(
            times > 1 or ("made", client_id) not in ledger for client_id, times in stored.items()
        )
        return lost, doubled, sum(what == "refused" for what, _ in ledger)


def processes(served: Served, part: str) -> list[psutil.Process]:
    """The processes of one of PARTS, the oldest first."""
    matching = served.find(*PARTS[part])
    if part == "PostgreSQL":
        # Its own processes have other names and no environment.
        matching = [
            process
            for parent in matching[:1]
            for process in (parent, *parent.children(recursive=True))
        ]
    return matching


def usage(served: Served) -> dict[str, tuple[float, int]]:
    """For each part of an application, seconds of processor time, also of ended processes, and
    bytes of own memory.
    """
    used = {}
    for part in PARTS:
        spent, size = 0.0, 0
        for process in processes(served, part):
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                spent += times.user + times.system + times.children_user + times.children_system
                size += harness.anonymous_bytes(process.pid)
        used[part] = (spent, size)
    return used


def times_row(name: str, rows: Any, seconds: float, bare: float) -> list[Any]:
    """A row under HEAD for an array as `Load.requests` gives it."""
    waits = rows[:, 1]
    late = [harness.ms(float(seconds_late)) for seconds_late in np.percentile(waits, (50, 95, 99))]
    ratio = f"{np.percentile(waits, 99) / bare:.0f}"
    return [name, len(rows), f"{len(rows) / seconds:.1f}", *late, ratio, int(rows[:, 2].sum())]
