"""Two hundred annotators at once, each in a browser: `python -m bench.load`.

An application of its own, with a PgBouncer of `--pool` connections before its database if there are
any, and Locust's users (`load_users`) who label at a person's pace: a fourth of them by pages of
the grid, a tenth what audits draw. Beside them in the same run, by as many at the same pace, what
Label Studio and doccano take for a saved label; `--label-studio` and `--doccano` name the programs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psutil

from bench import harness, load_others
from bench.labeling_crowd import CrowdSite, bare_requests, site
from core.lifelines import end_with_parent
from tests.processes import Served
from tests.site import PASSWORD

GRID_EVERY: Final = 4
AUDITS_EVERY: Final = 10
OTHERS_SECONDS: Final = 60.0
ACKNOWLEDGED: Final = "Judgment, from the key to the answer"
AIM: Final = 0.250
HEAD: Final = ("What", "Times", "A second", "Median", "95 %", "99 %", "× bare request", "Failed")
#: Words of the command line of each part's processes.
PARTS: Final = {
    "web server": ("gunicorn",),
    "worker": ("celery",),
    "encoder of texts": ("encode_texts",),
    "PostgreSQL": ("pginstall/bin/postgres", "-D"),
}
STORED: Final = "SELECT client_id::text, count(*) FROM labeling_judgmentevent GROUP BY client_id"
TWICE: Final = """
SELECT count(*) FROM (SELECT FROM labeling_judgmentevent
                       GROUP BY query_id, image_id, annotator_id HAVING count(*) > 1) AS twice
"""


@dataclass(slots=True)
class Load:
    """A crowd of `load_users` in a process of its own."""

    folder: Path
    process: subprocess.Popen[str]
    outcome: dict[str, float] = field(default_factory=dict)
    """`began` and `ended`: when all labeled; `seconds` of processor time."""

    def wait(self) -> None:
        """Until all is answered. Raises RuntimeError where a user broke off."""
        text, _ = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError("The users broke off.")
        self.outcome = json.loads(text)

    def stored(self) -> int:
        """How many judgments are stored so far."""
        path = self.folder / "ledger.csv"
        text = path.read_text() if path.exists() else ""
        return text.count("\nstored") + text.count("\nrepeated")

    def requests(self) -> dict[str, Any]:
        """Of each kind of request an array: moment, seconds, whether it failed."""
        found: dict[str, list[list[str]]] = {}
        for line in (self.folder / "requests.csv").read_text().splitlines():
            at, rest = line.split(",", 1)
            name, wait, failed = rest.rsplit(",", 2)
            found.setdefault(name, []).append([at, wait, failed])
        return {name: np.array(rows, dtype=float) for name, rows in sorted(found.items())}

    def lost_doubled_refused(self, served: Served) -> tuple[int, int, int]:
        """How many acknowledged judgments the history lacks; how many it has twice, or that nobody
        has made; and how many were refused.
        """
        ledger = Counter(
            tuple(line.split(",", 2)[:2])
            for line in (self.folder / "ledger.csv").read_text().splitlines()
        )
        with served.database() as cursor:
            cursor.execute(STORED)
            stored = dict(cursor.fetchall())
            cursor.execute(TWICE)
            [doubled] = cursor.fetchone()
        lost = sum(
            what in ("stored", "repeated") and client_id not in stored for what, client_id in ledger
        )
        doubled += sum(
            times > 1 or ("made", client_id) not in ledger for client_id, times in stored.items()
        )
        return lost, doubled, sum(what == "refused" for what, _ in ledger)


def start(folder: Path, **plan: Any) -> Load:
    """A crowd that writes into a new folder; `plan` is as `load_users.Plan`."""
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps({"password": PASSWORD, **plan}))
    command = [sys.executable, "-m", "bench.load_users", str(folder / "plan.json"), str(folder)]
    parent = os.getpid()
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: end_with_parent(parent),
    )
    return Load(folder, process)


def processes(served: Served, part: str) -> list[psutil.Process]:
    """Those of one of PARTS, the oldest first."""
    found = served.find(*PARTS[part])
    if part == "PostgreSQL":
        # Its own processes have other names and no environment.
        found = [one for first in found[:1] for one in (first, *first.children(recursive=True))]
    return found


def parts(served: Served) -> dict[str, tuple[float, int]]:
    """Seconds of processor time and bytes of own memory of each part of an application."""
    found = {}
    for part in PARTS:
        seconds, size = 0.0, 0
        for one in processes(served, part):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                seconds += times.user + times.system
                size += harness.anonymous_bytes(one.pid)
        found[part] = (seconds, size)
    return found


def times_row(name: str, rows: Any, seconds: float, bare: float) -> list[str]:
    """A row under HEAD for an array as `Load.requests` gives it."""
    waits = rows[:, 1]
    late = [harness.ms(float(one)) for one in np.percentile(waits, (50, 95, 99))]
    ratio = f"{np.percentile(waits, 99) / bare:.0f}"
    counts = [f"{len(rows):,}", f"{len(rows) / seconds:.1f}"]
    return [name, *counts, *late, ratio, f"{int(rows[:, 2].sum())}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when a judgment was lost, doubled or refused, else 0. `pace` are the
    mean seconds for an image, and `seconds` how long all label.
    """
    options = harness.parse(
        "load",
        __doc__,
        arguments,
        annotators=200,
        queries=20,
        candidates=400,
        seconds=300.0,
        pace=1.0,
        pool=0,
        label_studio="",
        doccano="",
    )
    with harness.temporary_folder("load") as folder:
        harness.log("Starting an application of its own and drawing its images …")
        sizes = {"depth": options.candidates, "annotators": options.annotators}
        with site(folder, **sizes, pool=options.pool) as where:
            bare = median(bare_requests(where, "/static/img/favicon.svg"))
            rows, usage, safe = _ours(where, folder / "ours", options, bare)
        for name, program in (("Label Studio", options.label_studio), ("doccano", options.doccano)):
            if not program:
                rows.append([f"{name}: save", "not measured", *[""] * (len(HEAD) - 2)])
                continue
            serve = load_others.doccano if name == "doccano" else load_others.label_studio
            title = f"{name} {load_others.version(Path(program))}: save"
            harness.log(f"{title} …")
            place = folder / name.split()[0]
            with serve(Path(program), place, options.annotators) as plan:
                people = [{"name": str(one), "queries": []} for one in range(options.annotators)]
                seconds = min(OTHERS_SECONDS, options.seconds)
                common = {"people": people, "pace": options.pace, "seconds": seconds}
                load = start(folder / f"{place.name}-load", **plan, **common, a_second=20)
                load.wait()
            saves = load.requests()["Save"]
            saves = saves[saves[:, 0] >= load.outcome["began"]]
            rows.append(times_row(title, saves, seconds, bare))
    print(
        harness.section(
            "Load",
            options.command,
            ("Django", "gunicorn", "locust"),
            f"{options.annotators} annotators of {options.queries} queries, each "
            f"{options.pace:g} s an image in the mean; on the same machine as what they do it "
            f"with. The bare request of a static file before they came: {harness.ms(bare)}.",
            harness.table(HEAD, rows),
            usage,
        )
    )
    return 0 if safe else 1


def _ours(
    where: CrowdSite, folder: Path, options: Any, bare: float
) -> tuple[list[list[str]], str, bool]:
    queries = [where.open_query(f"a fox at place {n} of a forest") for n in range(options.queries)]
    people = [
        {
            "name": name,
            "queries": [queries[number % len(queries)]],
            "grid": number % GRID_EVERY == 1,
            "audits": number % AUDITS_EVERY == 2,
        }
        for number, name in enumerate(where.annotators)
    ]
    harness.log(f"{options.annotators} annotators come and label …")
    served, began = where.served, time.time()
    plan = {"url": where.url, "people": people, "pace": options.pace}
    load = start(folder, **plan, seconds=options.seconds)
    while load.process.poll() is None and load.stored() == 0:
        time.sleep(1)
    before, marked = parts(served), time.time()
    load.wait()
    after, elapsed = parts(served), time.time() - marked
    first, last = load.outcome["began"], load.outcome["ended"]
    coming, labeling = [], []
    for name, rows in load.requests().items():
        within = rows[(rows[:, 0] >= first) & (rows[:, 0] < last)]
        opening = name in ("Log in", "Static file") or name.startswith("Page")
        if opening:
            coming.append(times_row(f"{name}, while they come", rows, first - began, bare))
        elif len(within):
            labeling.append(times_row(name, within, last - first, bare))
    lost, doubled, refused = load.lost_doubled_refused(served)
    usage = [
        [
            name,
            f"{(after[name][0] - before[name][0]) / elapsed:.2f}",
            harness.megabytes(before[name][1]),
            harness.megabytes(after[name][1]),
        ]
        for name in before
    ]
    usage.append(
        ["the annotators", f"{load.outcome['seconds'] / (time.time() - began):.2f}", "", ""]
    )
    acknowledged = load.requests()[ACKNOWLEDGED]
    within = acknowledged[(acknowledged[:, 0] >= first) & (acknowledged[:, 0] < last)]
    quick = np.mean(within[:, 1] < AIM)
    text = (
        f"Of {len(acknowledged):,} judgments that were acknowledged {lost} are lost, {doubled} "
        f"doubled and {refused} refused. {quick:.1%} of those of the time when all labeled were "
        f"answered within {AIM * 1000:.0f} ms."
    )
    head = ("Part", "Cores used", "Own memory at the first judgment", "at the end")
    return (
        labeling + coming,
        f"{text}\n\n{harness.table(head, usage)}",
        not (lost or doubled or refused),
    )


if __name__ == "__main__":
    sys.exit(main())
