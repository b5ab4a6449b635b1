"""How fast several processes rank by shards: `python -m bench.sharding`.

For each size there is a database with clustered unit vectors in half precision, whose matrix is cut
into eight shards. For each number of processes that hold them, the first images for a query's
vector come from the application through the shards, and in the same rounds from `rank_rows` over
the same files in one process; first from the disk, with nothing of the files in memory, then from
memory. The lists must be the same bit for bit, else the exit status is 1. A second model with one
embedding in each shard shows the time of messages, statements and merging.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.ranking import Ranked, as_arrays, same_lists, usual
from bench.rows import MODEL, fill_clustered, query_vectors, store_vectors
from tests import ROOT
from tests.processes import redis_server, wait_for

SHARDS: Final = 8
TINY: Final = "tiny"
BLOCK: Final = 1 << 24
TIMES: Final = "Images | Processes | Read from | Shards | One process's `rank_rows` | × one process"
COSTS: Final = "Images | Constant | Value | From"


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the shards' lists are the same as one process's, and how fast both are."""
    times: list[list[Any]] = []
    costs: list[list[Any]] = []
    same = True
    for images in options.sizes:
        with harness.temporary_folder() as folder, redis_server(folder) as redis:
            # Read by the processes that are started from here on.
            os.environ.update(
                CELERY_BROKER_URL=redis.url,
                RANKING_SHARD_IMAGES=str(images // SHARDS + 1),
                RANKING_SHARD_SECONDS="600",
            )
            with harness.process(folder, migrate=True) as call:
                same &= _measure(folder, call, images, options, times, costs)
    return same, [
        f"{SHARDS} shards on one machine; the median of the rounds, {options.cold} from the disk, "
        f"{options.rounds} from memory; the first {options.depth:,} images. The time through "
        "shards is that of the whole function with all of its SQL and messages.",
        harness.table(TIMES, times),
        "The constants of the cost model in docs/large-corpora.md.",
        harness.table(COSTS, costs),
        f"All lists are {'the same bit for bit.' if same else '**not the same.**'}",
    ]


def _measure(
    folder: Path,
    call: harness.Call,
    images: int,
    options: Any,
    times: list[list[Any]],
    costs: list[list[Any]],
) -> bool:
    """Add rows of one size to the tables; returns whether all lists are the same."""
    depth, var = min(options.depth, images), folder / "var"
    queries = query_vectors(options.rounds + options.cold + 1, options.dimension)
    same, tiny = True, dict[int, float]()
    alone_by: dict[str, list[float]] = {"disk": [], "memory": []}
    harness.log(f"{images:,} images: filling a database and packing …")
    call(fill_clustered, images, options.dimension)
    call(_fill_tiny, images // SHARDS + 1, options.dimension)
    with _holding(call, var, 1):
        call(harness.sql, "CHECKPOINT")
    for workers in options.workers:
        lists_by_source: dict[str, tuple[list[Ranked], list[Ranked]]] = {"disk": ([], [])}
        harness.log(f"{images:,} images, {workers} processes …")
        for turn in range(options.cold):
            _forget(var)
            with harness.process(folder) as alone:
                lists_by_source["disk"][1].append(alone(_alone, queries[turn], depth))
            with _holding(call, var, workers):
                _forget(var)
                lists_by_source["disk"][0].append(call(_ranked, queries[turn], depth, MODEL))
        with _holding(call, var, workers), harness.process(folder) as alone:
            own = harness.in_turn(
                options.rounds,
                {
                    "shards": lambda n: call(_ranked, queries[n], depth, MODEL),
                    "alone": lambda n: alone(_alone, queries[n], depth),
                    "tiny": lambda n: call(_ranked, queries[n], depth, TINY),
                },
                warm_up=1,
            )
        lists_by_source["memory"] = own["shards"], own["alone"]
        tiny[workers] = usual(own["tiny"])
        for source, lists in lists_by_source.items():
            same &= same_lists(*lists)
            shards, alone_time = map(usual, lists)
            alone_by[source].append(alone_time)
            shown = map(harness.ms, (shards, alone_time))
            times.append([images, workers, source, *shown, shards / alone_time])
    merging = call(_merging, depth)
    _forget(var)
    plain = harness.seconds(_read, var)
    whole = images * options.dimension * 2 / 1e9
    for what, spent, source in (
        ("memory", median(alone_by["memory"]), "`rank_rows`, warm"),
        ("the disk", median(alone_by["disk"]), "`rank_rows`, cold"),
        ("the disk", plain, "files read in order, 16 MiB at a time"),
    ):
        costs.append([images, f"read from {what}", f"{whole / spent:.2f} GB/s", source])
    for workers, spent in tiny.items():
        source = f"a ranking of {SHARDS} shards of one image each, {workers} processes, by {SHARDS}"
        costs.append([images, "a message", harness.ms(spent / SHARDS), source])
    what = f"merging {depth:,} places of each of {SHARDS} shards"
    costs.append([images, what, harness.ms(merging), "answers read and merged, in one process"])
    return same


@contextmanager
def _holding(call: harness.Call, var: Path, workers: int) -> Iterator[None]:
    """`workers` processes that hold the shards; waits until each has its part."""
    environment = {**os.environ, "VAR_DIR": str(var), "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "manage.py", "hold_shards"]
    started = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sys.stderr)
        for _ in range(workers)
    ]
    try:
        wait_for(partial(call, _divided, workers), seconds=3600, what="the shards", pause=0.5)
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _files(var: Path) -> list[Path]:
    return [path for path in var.glob("matrices/*/*/*") if path.is_file()]


def _forget(var: Path) -> None:
    """Make the system drop the files from its cache; no process may have mapped them."""
    for path in _files(var):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _read(var: Path) -> None:
    for path in _files(var):
        with path.open("rb", buffering=0) as file:
            while file.read(BLOCK):
                pass


def _fill_tiny(size: int, dimension: int) -> None:
    for number in range(SHARDS):
        store_vectors(number * size + 1, iter([query_vectors(1, dimension)]), dimension, model=TINY)


def _divided(workers: int) -> bool:
    """Whether all shards of each model are divided equally among the workers."""
    from core.locks import lock_owners
    from extras.sharding.ranking import shards_as_cut

    owners = lock_owners("shard")
    held = [
        (shard.model_id, shard.worker)
        for shard in shards_as_cut()
        if shard.pk in owners and shard.worker
    ]
    backends = {pid for pids in owners.values() for pid in pids}
    named = {worker for _, worker in held}
    return (
        len(held) == 2 * SHARDS
        and len(backends) == workers == len(named)
        and {held.count(pair) for pair in held} == {SHARDS // workers}
    )


def _ranked(query: NDArray[np.float16], limit: int, name: str) -> Ranked:
    """The list from the application's function, with all of its SQL and messages."""
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images

    model, vector = EmbeddingModel.objects.get(name=name), query.astype(float).tolist()
    return as_arrays(*harness.timed(rank_images, model=model, text_vector=vector, limit=limit))


@cache
def _parts() -> list[Any]:
    """The parts of all shards' matrices as parts of one matrix."""
    from dataclasses import replace

    from extras.sharding.ranking import shards_as_cut, span_of
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.files import open_matrix

    model = EmbeddingModel.objects.get(name=MODEL)
    parts: list[Any] = []
    first = 0
    for shard in shards_as_cut().filter(model=model):
        for part in open_matrix(model, span_of(shard)).parts:
            parts.append(replace(part, first=first))
            first += len(part.image_ids)
    return parts


def _alone(query: NDArray[np.float16], limit: int) -> Ranked:
    """The list from one process's pass over all files."""
    from retrieval.ranking.scan import RowFilter, rank_rows

    parts, row_filter = _parts(), RowFilter(without=np.empty(0, np.int64))
    spent, [rows] = harness.timed(rank_rows, parts, query[None], limit=limit, row_filter=row_filter)
    return as_arrays(spent, rows)


def _merging(depth: int) -> float:
    """Median seconds of reading and merging answers of `depth` images from each shard."""
    from extras.sharding.ranking import Answer, merged

    drawn = np.random.default_rng(5)
    messages = [
        Answer(
            0, 0, [(np.arange(depth) * SHARDS + number, -np.sort(-drawn.random(depth)))]
        ).message()
        for number in range(SHARDS)
    ]

    def merge() -> None:
        merged([Answer.read(message) for message in messages], depth)

    return median(harness.seconds(merge) for _ in range(9))


if __name__ == "__main__":
    packages = ("numpy", "numkong", "celery", "redis")
    sizes = {"sizes": (1_000_000, 5_000_000), "dimension": 1024, "depth": 5000}
    title, workers = "Ranking in shards", (1, 2, 4)
    harness.run(main, title, packages, **sizes, rounds=7, cold=2, workers=workers)
