"""A day's judgments while everything is killed in turn: `python -m bench.soak`.

A new application sends its Celery messages through Redis if that is installed. During the first
half of the judgments its parts are killed by SIGKILL in turn, each right after a query was opened
and `--every` seconds after the last part has recovered; the second half is undisturbed, to measure
memory. At the end each acknowledged judgment must be stored once and no other, and counts and lists
must be right. The default is what ten annotators judge in eight hours at one image a second;
`--seconds` ends it earlier, 0 doesn't.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from statistics import median
from typing import Any, Final

import numpy as np
import psutil

from bench import harness
from bench.crowd import (
    ACKNOWLEDGED,
    ADMIN,
    PARTS,
    Load,
    annotators,
    processes,
    site,
    usage,
)
from tests.processes import Redis, redis_server, wait_for
from tests.site import Site

REDIS_AWAY: Final = 3.0
FILES: Final = 0.05
"""Share of the images and thumbnails whose files are fetched."""
SAMPLED_EVERY: Final = 5.0
KILLED_HEAD: Final = "Killed | Times | Seconds until all is well and the list made | longest"
MEMORY_HEAD: Final = "Part | Own memory | at most | at the end | Slope for 100,000 judgments"
Outage = tuple[str, float, float]
"""What was killed, when, and when all was well again."""
Sample = tuple[int, dict[str, tuple[float, int]]]
"""How many judgments were stored, and what the parts used."""


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether nothing was lost, doubled or refused and counts and lists are right; and the
    figures."""
    with harness.temporary_folder() as folder, ExitStack() as stack:
        harness.log("Starting an application of its own and drawing its images …")
        installed = shutil.which("redis-server") is not None
        redis = stack.enter_context(redis_server(folder)) if installed else None
        broker: Any = {"CELERY_BROKER_URL": redis.url} if redis else {}
        sizes = {"depth": options.candidates, "annotators": options.annotators}
        where = stack.enter_context(site(folder, **sizes, **broker))
        queries = [where.open_query(f"a hare at place {n}") for n in range(options.queries)]
        people = []
        for number, name in enumerate(annotators(where)):
            turn = number % len(queries)
            people.append({"name": name, "queries": queries[turn:] + queries[:turn]})
        # Nobody judges an image of a query twice.
        total = min(options.judgments, len(people) * len(queries) * options.candidates)
        seconds = options.seconds or 1e9
        plan = {"url": where.url, "people": people, "pace": options.pace, "files": FILES}
        load = Load(folder / "soak", **plan, seconds=seconds, judgments=total)
        wait_for(load.all_there, seconds=1200, what="all to be there", pause=1)
        ways, half = _ways(where, redis), time.time() + seconds / 2
        outages: list[Outage] = []
        while load.process.poll() is None and (
            len(outages) < len(ways) or (load.stored() < total / 2 and time.time() < half)
        ):
            name = list(ways)[len(outages) % len(ways)]
            outages.append(_outage(where, name, ways[name], len(outages)))
            time.sleep(options.every)
        samples: list[Sample] = []
        while load.process.poll() is None:
            samples.append((load.stored(), usage(where.served)))
            time.sleep(SAMPLED_EVERY)
        load.wait()
        harness.log("Looking for every judgment …")
        wrong = load.lost_doubled_refused(where.served, queries)
        commands = ("check_counts", "verify_lists")
        checks = [where.served.manage(command, check=False) for command in commands]
        words = [(done.stdout + done.stderr).strip().removesuffix(".") for done in checks]
        text = (
            f"{options.annotators} annotators of {len(queries)} queries, each {options.pace:g} s "
            f"an image in the mean. {load.stored():,} judgments were acknowledged: {wrong[0]} are "
            f"lost, {wrong[1]} doubled, {wrong[2]} refused. `check_counts`: {words[0]}. "
            f"`verify_lists`: {words[1]}, those that were opened just before a kill among them."
        )
        longest = load.requests()[ACKNOWLEDGED][:, 1].max()
        waited = f"The longest wait of a judgment, with its outage: {longest:.1f} s."
        parts = [text, _outages(outages), waited, _memory(samples)]
    return not any(wrong) and not any(done.returncode for done in checks), parts


def _ways(where: Site, redis: Redis | None) -> dict[str, Callable[[], None]]:
    """The functions that kill a part of the application by SIGKILL, by the part's name."""
    served = where.served

    def kill(killed: list[psutil.Process]) -> None:
        for process in killed:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def kill_redis() -> None:
        assert redis is not None
        redis.kill()
        time.sleep(REDIS_AWAY)
        redis.start()

    def kill_all() -> None:
        kill([*served.processes(), *processes(served, "PostgreSQL")])
        served.process.wait()
        served.start()

    ways: dict[str, Callable[[], None]] = {
        "one process of the web server": lambda: kill(processes(served, "web server")[1:2])
    }
    for part in PARTS:
        ways[part] = lambda part=part: kill(processes(served, part))  # type: ignore[misc]
    if redis is not None:
        ways[f"Redis, for {REDIS_AWAY:g} s"] = kill_redis
    return ways | {"everything at once, and started again": kill_all}


def _outage(where: Site, name: str, kill: Callable[[], None], number: int) -> Outage:
    """Open a query, kill a part, and wait until the application is healthy and the query's list
    ready. Raises AssertionError if either takes longer than five minutes.
    """
    query = {"text": f"a newt in pond {number}", "category": "Species ID", "split": "test"}
    query_id = where.api(ADMIN, "POST", "/api/queries/", query)["id"]
    where.api(ADMIN, "PATCH", f"/api/queries/{query_id}/", {"state": "open"})
    harness.log(f"Killing {name} …")
    began = time.time()
    kill()
    # Its death is seen before its recovery.
    time.sleep(1)
    where.served.wait_healthy(300)
    wait_for(
        lambda: where.candidates(ADMIN, query_id, limit=1)["list"]["state"] == "ready",
        seconds=300,
        what="the query's list",
    )
    return name, began, time.time()


def _outages(outages: list[Outage]) -> str:
    took: dict[str, list[float]] = {}
    for name, began, well in outages:
        took.setdefault(name, []).append(well - began)
    rows: list[list[Any]] = [
        [name, len(some), f"{median(some):.1f}", f"{max(some):.1f}"] for name, some in took.items()
    ]
    return harness.table(KILLED_HEAD, rows)


def _memory(samples: list[Sample]) -> str:
    """The parts' own memory over the undisturbed half, and how it grows."""
    samples = samples[len(samples) // 5 :]
    stored = np.array([judgments for judgments, _ in samples])
    rows: list[list[Any]] = []
    for part in PARTS:
        sizes = np.array([used[part][1] for _, used in samples])
        enough = len(samples) > 2 and np.ptp(stored) > 0
        slope = np.polyfit(stored, sizes, 1)[0] * 100_000 if enough else 0.0
        ends = map(harness.megabytes, (sizes[0], np.max(sizes), sizes[-1]))
        rows.append([part, *ends, f"{slope / 1e6:+.1f} MB"])
    return harness.table(MEMORY_HEAD, rows)


if __name__ == "__main__":
    packages = ("Django", "gunicorn", "locust")
    sizes = {"judgments": 288_000, "annotators": 24, "queries": 30, "candidates": 400}
    harness.run(main, "Soak", packages, **sizes, pace=0.1, seconds=0.0, every=20.0)
