"""Fifty, a hundred and two hundred annotators at once, each in a browser: `python -m bench.load`.

An application of its own, with a PgBouncer of `--pool` connections before its database if there are
any, and Locust's users (`load_users`) who label at a person's pace, as default at INQUIRE's 3.3 s
an image (section H): a fourth of them by pages of the grid, a tenth what audits draw. Beside them
in the same run, by as many at the same pace, what Label Studio and doccano take for a saved label;
`--label-studio` and `--doccano` name the programs.
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
from core.parent_death import end_with_parent
from tests.people import PASSWORD
from tests.processes import Served

GRID_EVERY: Final = 4
AUDITS_EVERY: Final = 10
OTHERS_SECONDS: Final = 60.0
SAVE: Final = "API: save"
ACKNOWLEDGED: Final = "Judgment, from the key to the answer"
AIM: Final = 0.250
CROWD_HEAD: Final = (
    "Annotators",
    "Judgments a second",
    "Median",
    "99 %",
    "A save: median",
    "99 %",
    f"within {AIM * 1000:.0f} ms",
    "Cores: web server",
    "PostgreSQL",
    "the annotators",
)
HEAD: Final = ("What", "Times", "A second", "Median", "95 %", "99 %", "× bare request", "Failed")
#: Words of the command line of each part's processes.
PARTS: Final = {
    "web server": ("gunicorn",),
    "worker": ("celery",),
    "encoder of texts": ("encode_texts",),
    "PostgreSQL": ("pginstall/bin/postgres", "-D"),
}
STORED: Final = """
SELECT client_id::text, count(*) FROM labeling_judgmentevent
 WHERE query_id = ANY(%s) GROUP BY client_id
"""
TWICE: Final = """
SELECT count(*) FROM (SELECT FROM labeling_judgmentevent WHERE query_id = ANY(%s)
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

    def lost_doubled_refused(self, served: Served, queries: list[int]) -> tuple[int, int, int]:
        """How many acknowledged judgments the history of the crowd's queries lacks; how many it has
        twice, or that nobody has made; and how many were refused.
        """
        ledger = Counter(
            tuple(line.split(",", 2)[:2])
            for line in (self.folder / "ledger.csv").read_text().splitlines()
        )
        with served.database() as cursor:
            cursor.execute(STORED, [queries])
            stored = dict(cursor.fetchall())
            cursor.execute(TWICE, [queries])
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
    """Seconds of processor time, also of processes that have ended, and bytes of own memory of each
    part of an application.
    """
    found = {}
    for part in PARTS:
        seconds, size = 0.0, 0
        for one in processes(served, part):
            with suppress(psutil.NoSuchProcess):
                times = one.cpu_times()
                seconds += times.user + times.system
                seconds += times.children_user + times.children_system
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
    mean seconds for an image, `seconds` how long all of a crowd label, and `coming` how many come
    in a second.
    """
    options = harness.parse(
        "load",
        __doc__,
        arguments,
        annotators=(50, 100, 200),
        queries=20,
        candidates=400,
        seconds=180.0,
        pace=3.3,
        coming=0.7,
        pool=0,
        label_studio="",
        doccano="",
    )
    most = max(options.annotators)
    with harness.temporary_folder("load") as folder:
        harness.log("Starting an application of its own and drawing its images …")
        sizes = {"depth": options.candidates, "annotators": most}
        with site(folder, **sizes, pool=options.pool) as where:
            bare = median(bare_requests(where, "/static/img/favicon.svg"))
            crowds = [
                _ours(where, folder / f"{number}", number, options, bare)
                for number in options.annotators
            ]
        rows = crowds[-1].rows
        for name, program in (("Label Studio", options.label_studio), ("doccano", options.doccano)):
            if not program:
                rows.append([f"{name}: save", "not measured", *[""] * (len(HEAD) - 2)])
                continue
            serve = load_others.doccano if name == "doccano" else load_others.label_studio
            title = f"{name} {load_others.version(Path(program))}: save"
            harness.log(f"{title} …")
            place = folder / name.split()[0]
            with serve(Path(program), place, most) as plan:
                people = [{"name": str(one), "queries": []} for one in range(most)]
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
            f"Annotators of {options.queries} queries, each {options.pace:g} s an image in the "
            "mean; on the same machine as what they do it with. From the key to the answer that a "
            "judgment is stored, with the page's rests, and a request that saves what has waited, "
            f"while all label for {options.seconds:g} s:",
            harness.table(CROWD_HEAD, [one.row for one in crowds]),
            f"What the {options.annotators[-1]} asked for. The bare request of a static file "
            f"before anybody came: {harness.ms(bare)}.",
            harness.table(HEAD, rows),
            crowds[-1].usage,
        )
    )
    return 0 if all(one.safe for one in crowds) else 1


@dataclass(slots=True)
class Crowd:
    """What was measured of one."""

    row: list[str]
    """Under CROWD_HEAD."""
    rows: list[list[str]]
    """Under HEAD."""
    usage: str
    safe: bool


def _ours(where: CrowdSite, folder: Path, number: int, options: Any, bare: float) -> Crowd:
    queries = [
        where.open_query(f"{number} foxes at place {n} of a forest") for n in range(options.queries)
    ]
    people = [
        {
            "name": name,
            "queries": [queries[turn % len(queries)]],
            "grid": turn % GRID_EVERY == 1,
            "audits": turn % AUDITS_EVERY == 2,
        }
        for turn, name in enumerate(where.annotators[:number])
    ]
    harness.log(f"{number} annotators come and label …")
    served, began = where.served, time.time()
    plan = {"url": where.url, "people": people, "pace": options.pace, "a_second": options.coming}
    load = start(folder, **plan, seconds=options.seconds)
    while load.process.poll() is None and not (folder / "all-there").exists():
        time.sleep(1)
    before, marked = parts(served), time.time()
    load.wait()
    after, elapsed = parts(served), time.time() - marked
    first, last = load.outcome["began"], load.outcome["ended"]
    coming, labeling, requests = [], [], load.requests()
    while_labeling = {
        name: rows[(rows[:, 0] >= first) & (rows[:, 0] < last)] for name, rows in requests.items()
    }
    for name, rows in requests.items():
        within = while_labeling[name]
        opening = name in ("Log in", "Static file") or name.startswith("Page")
        if opening:
            coming.append(times_row(f"{name}, while they come", rows, first - began, bare))
        elif len(within):
            labeling.append(times_row(name, within, last - first, bare))
    lost, doubled, refused = load.lost_doubled_refused(served, queries)
    cores = {name: f"{(after[name][0] - before[name][0]) / elapsed:.2f}" for name in before}
    cores["annotators"] = f"{load.outcome['seconds'] / (time.time() - began):.2f}"
    usage = [
        [
            name,
            cores[name],
            harness.megabytes(before[name][1]),
            harness.megabytes(after[name][1]),
        ]
        for name in before
    ]
    usage.append(["the annotators", cores["annotators"], "", ""])
    late = [
        harness.ms(float(one))
        for name in (ACKNOWLEDGED, SAVE)
        for one in np.percentile(while_labeling[name][:, 1], (50, 99))
    ]
    quick = f"{np.mean(while_labeling[SAVE][:, 1] < AIM):.1%}"
    a_second = f"{len(while_labeling[ACKNOWLEDGED]) / (last - first):.1f}"
    ours = [cores[part] for part in ("web server", "PostgreSQL", "annotators")]
    text = (
        f"Of {len(requests[ACKNOWLEDGED]):,} judgments that were acknowledged {lost} are lost, "
        f"{doubled} doubled and {refused} refused."
    )
    head = ("Part", "Cores used", "Own memory when all had come", "at the end")
    return Crowd(
        row=[f"{number}", a_second, *late, quick, *ours],
        rows=labeling + coming,
        usage=f"{text}\n\n{harness.table(head, usage)}",
        safe=not (lost or doubled or refused),
    )


if __name__ == "__main__":
    sys.exit(main())
