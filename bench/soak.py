"""A day's judgments while everything is killed in turn: `python -m bench.soak`.

An application of its own, whose Celery messages go through Redis where that is installed. During
the first half of the judgments its parts are killed by SIGKILL, one each `--every` seconds after
the last has recovered, the moment after a query was opened; the second half goes undisturbed, for
the memory. At the end each acknowledged judgment must be there once and no other, and counts and
lists as they should be.
"""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from statistics import median
from typing import Final

import numpy as np
import psutil
from numpy.typing import NDArray

from bench import harness
from bench.labeling_crowd import ADMIN, CrowdSite, bare_requests, site
from bench.load import ACKNOWLEDGED, HEAD, PARTS, SAVE, Load, parts, processes, start, times_row
from tests.processes import Redis, redis_server, wait_for

REDIS_AWAY: Final = 3.0
FILES: Final = 0.05
"""Share of the images and thumbnails whose files are fetched."""
LONGEST_PAUSE: Final = 10.0
"""Seconds that the page's outbox may wait after failures before it sends again."""
SAMPLED_EVERY: Final = 5.0
Sample = tuple[int, dict[str, tuple[float, int]]]
"""How many judgments were stored when, and the parts' processor time and memory."""


class Kills:
    """Ends parts of a served application by SIGKILL, and notes when all was well again."""

    def __init__(self, where: CrowdSite, redis: Redis | None) -> None:
        self.where, self.redis = where, redis
        self.outages: list[tuple[str, float, float]] = []
        """The part, when it was killed, and when all was well again."""
        self.ways: dict[str, Callable[[], None]] = {
            "one process of the web server": self._one_of_the_web_server
        }
        for part in PARTS:
            self.ways[part] = lambda part=part: _kill(processes(where.served, part))  # type: ignore[misc]
        if redis is not None:
            self.ways[f"Redis, for {REDIS_AWAY:g} s"] = self._redis
        self.ways["everything at once, and started again"] = self._everything

    def next(self) -> None:
        """Open a query, kill what comes next, and wait until all is well and the query's list made.
        Raises AssertionError where either takes longer than five minutes.
        """
        number = len(self.outages)
        name = list(self.ways)[number % len(self.ways)]
        query = {"text": f"a newt in pond {number}", "category": "Species ID", "split": "test"}
        made = self.where.api(ADMIN, "POST", "/api/queries/", query)["id"]
        self.where.api(ADMIN, "PATCH", f"/api/queries/{made}/", {"state": "open"})
        harness.log(f"Killing {name} …")
        began = time.time()
        self.ways[name]()
        # Its death is seen before its recovery.
        time.sleep(1)
        self.where.served.wait_healthy(300)
        wait_for(
            lambda: self.where.candidates(ADMIN, made, limit=1)["list"]["state"] == "ready",
            seconds=300,
            what="the query's list",
        )
        self.outages.append((name, began, time.time()))

    def _one_of_the_web_server(self) -> None:
        _kill(processes(self.where.served, "web server")[1:2])

    def _redis(self) -> None:
        assert self.redis is not None
        self.redis.kill()
        time.sleep(REDIS_AWAY)
        self.redis.start()

    def _everything(self) -> None:
        served = self.where.served
        _kill([*served.processes(), *processes(served, "PostgreSQL")])
        served.process.wait()
        served.start()


def _kill(those: list[psutil.Process]) -> None:
    for one in those:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 when something was lost, doubled or refused, or counts or lists differ.
    The default is what ten annotators judge in eight hours at one image a second; `seconds` ends it
    earlier, 0 doesn't.
    """
    options = harness.parse(
        "soak",
        __doc__,
        arguments,
        judgments=288_000,
        annotators=24,
        queries=30,
        candidates=400,
        pace=0.1,
        seconds=0.0,
        every=20.0,
    )
    with harness.temporary_folder("soak") as folder, ExitStack() as stack:
        harness.log("Starting an application of its own and drawing its images …")
        installed = shutil.which("redis-server") is not None
        redis = stack.enter_context(redis_server(folder)) if installed else None
        made = site(
            folder,
            depth=options.candidates,
            annotators=options.annotators,
            environment={"CELERY_BROKER_URL": redis.url} if redis else {},
        )
        where = stack.enter_context(made)
        bare = median(bare_requests(where, "/static/img/favicon.svg"))
        queries = [where.open_query(f"a hare at place {n}") for n in range(options.queries)]
        people = []
        for number, name in enumerate(where.annotators):
            turn = number % len(queries)
            people.append({"name": name, "queries": queries[turn:] + queries[:turn]})
        plan = {"url": where.url, "people": people, "pace": options.pace, "files": FILES}
        # Nobody judges an image of a query twice.
        total = min(options.judgments, len(people) * len(queries) * options.candidates)
        seconds = options.seconds or 1e9
        load = start(folder / "soak", **plan, seconds=seconds, judgments=total)
        there = folder / "soak" / "all-there"
        wait_for(there.exists, seconds=1200, what="all to be there", pause=1)
        kills, half = Kills(where, redis), time.time() + seconds / 2
        while load.process.poll() is None and (
            len(kills.outages) < len(kills.ways)
            or (load.stored() < total / 2 and time.time() < half)
        ):
            kills.next()
            time.sleep(options.every)
        samples: list[Sample] = []
        while load.process.poll() is None:
            samples.append((load.stored(), parts(where.served)))
            time.sleep(SAMPLED_EVERY)
        load.wait()
        harness.log("Looking for every judgment …")
        lost, doubled, refused = load.lost_doubled_refused(where.served, queries)
        wrong = lost + doubled + refused
        words = []
        for command in ("check_counts", "verify_lists"):
            done = where.served.manage(command, check=False)
            words.append((done.stdout + done.stderr).strip().removesuffix("."))
            wrong += done.returncode
        print(
            harness.section(
                "Soak",
                options.command,
                ("Django", "gunicorn", "locust"),
                f"{options.annotators} annotators of {len(queries)} queries, each "
                f"{options.pace:g} s an image in the mean. {load.stored():,} judgments were "
                f"acknowledged: {lost} are lost, {doubled} doubled, {refused} refused. "
                f"`check_counts`: {words[0]}. `verify_lists`: {words[1]}, those that were opened "
                "just before a kill among them.",
                _outages(kills),
                _waits(load, kills, bare),
                _memory(samples),
            )
        )
    return int(wrong > 0)


def _outages(kills: Kills) -> str:
    rows = []
    for name in kills.ways:
        took = [well - began for part, began, well in kills.outages if part == name]
        if took:
            rows.append([name, f"{len(took)}", f"{median(took):.1f}", f"{max(took):.1f}"])
    head = ("Killed", "Times", "Seconds until all is well and the list made", "longest")
    return harness.table(head, rows)


def _waits(load: Load, kills: Kills, bare: float) -> str:
    """How long saves took, and judgments from the key to the answer: around kills, and else."""
    lines, requests = [], load.requests()
    for name in (SAVE, ACKNOWLEDGED):
        rows = requests[name]
        away = _around_kills(kills, rows[:, 0])
        moments = np.arange(rows[:, 0].min(), rows[:, 0].max(), 0.1)
        out = _around_kills(kills, moments)
        for when, some, span in (("undisturbed", ~away, ~out), ("around a kill", away, out)):
            if some.any():
                seconds = 0.1 * span.sum()
                lines.append(times_row(f"{name}: {when}", rows[some], seconds, bare))
    longest = requests[ACKNOWLEDGED][:, 1].max()
    return (
        f"{harness.table(HEAD, lines)}\n\n"
        f"The longest wait of a judgment, with its outage: {longest:.1f} s."
    )


def _around_kills(kills: Kills, moments: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which moments (n,) are around a kill: what was made just before may have been on its way."""
    found = np.zeros(len(moments), dtype=bool)
    for _, began, well in kills.outages:
        found |= (moments > began - 1) & (moments < well + LONGEST_PAUSE)
    return found


def _memory(samples: list[Sample]) -> str:
    """The parts' own memory over the undisturbed half, and how it grows."""
    samples = samples[len(samples) // 5 :]
    stored = np.array([one[0] for one in samples])
    rows = []
    for part in PARTS:
        sizes = np.array([one[1][part][1] for one in samples])
        enough = len(samples) > 2 and np.ptp(stored) > 0
        slope = np.polyfit(stored, sizes, 1)[0] * 100_000 if enough else 0.0
        ends = [harness.megabytes(float(size)) for size in (sizes[0], np.max(sizes), sizes[-1])]
        rows.append([part, *ends, f"{slope / 1e6:+.1f} MB"])
    head = ("Part", "Own memory", "at most", "at the end", "Slope for 100,000 judgments")
    return harness.table(head, rows)


if __name__ == "__main__":
    sys.exit(main())
