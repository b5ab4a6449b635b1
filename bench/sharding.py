"""How fast shards that several processes hold rank: `python -m bench.sharding`.

For each size a database of its own with clustered unit vectors in half precision, whose matrix is
cut into eight shards. For each number of processes that hold them, the first images for a query's
vector come from the application through the shards, and in the same rounds from `rank_rows` over
the same files in one process; first from the disk, with nothing of the files in memory, then from
memory. The lists must be the same bit for bit, else the exit status is 1. A second model with one
embedding in each shard shows what messages, statements and merging take.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.ranking import Ranked, _arrays, _same
from bench.rows import MODEL, fill_clustered, query_vectors, store_vectors
from tests import ROOT
from tests.processes import redis_server, wait_for

SHARDS: Final = 8
TINY: Final = "tiny"
WAIT: Final = 3600
BLOCK: Final = 1 << 24
TIMES: Final = (
    *("Images", "Processes", "Read from", "Shards", "One process's `rank_rows`"),
    "× one process",
)
COSTS: Final = ("Images", "Constant", "Value", "From")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the shards' lists are not those of one process."""
    options = harness.parse(
        "sharding",
        __doc__,
        arguments,
        sizes=(1_000_000, 5_000_000),
        dimension=1024,
        depth=5000,
        rounds=7,
        cold=2,
        workers=(1, 2, 4),
    )
    times: list[list[str]] = []
    costs: list[list[str]] = []
    notes: list[str] = []
    same = True
    for images in options.sizes:
        with harness.temporary_folder("sharding") as folder:
            if shutil.disk_usage(folder).free < 6 * images * options.dimension + 2**31:
                notes.append(f"- {images:,} images are left out: the disk has no room for them.")
                continue
            same &= _measure(folder, images, options, times, costs)
    parts = (
        f"{SHARDS} shards on one machine; the median of the rounds, {options.cold} from the disk, "
        f"{options.rounds} from memory; the first {options.depth:,} images. The time through "
        "shards is that of the whole function with all of its SQL and messages.",
        harness.table(TIMES, times),
        "The constants of the cost model in docs/large-corpora.md.",
        harness.table(COSTS, costs),
        f"All lists are {'the same bit for bit.' if same else '**not the same.**'}",
    )
    packages = ("numpy", "numkong", "celery", "redis")
    print(harness.section("Ranking in shards", options.command, packages, *parts, *notes))
    return 0 if same and times else 1


def _measure(
    folder: Path, images: int, options: Any, times: list[list[str]], costs: list[list[str]]
) -> bool:
    """Add rows of one size to the tables; whether all lists are the same."""
    size, depth, var = f"{images:,}", min(options.depth, images), folder / "var"
    queries = query_vectors(options.rounds + options.cold + 1, options.dimension)
    same = True
    warm, cold, tiny = list[float](), list[float](), dict[int, float]()
    with (
        redis_server(folder) as redis,
        _environment(redis.url, images // SHARDS + 1),
        harness.process(var, migrate=True) as call,
    ):
        harness.log(f"{size} images: filling a database and packing …")
        call(fill_clustered, images, options.dimension)
        call(_fill_tiny, images // SHARDS + 1, options.dimension)
        with _holding(call, var, 1):
            call(harness.sql, "CHECKPOINT")
        for workers in options.workers:
            pairs: dict[str, list[tuple[Ranked, Ranked]]] = {"disk": [], "memory": []}
            for turn in range(options.cold):
                harness.log(f"{size} images, {workers} processes: from the disk …")
                _forget(var)
                with harness.process(var) as alone:
                    one = alone(_alone, queries[turn], depth)
                with _holding(call, var, workers):
                    _forget(var)
                    pairs["disk"].append((call(_ranked, queries[turn], depth, MODEL), one))
            harness.log(f"{size} images, {workers} processes: from memory …")
            with _holding(call, var, workers), harness.process(var) as alone:
                own = harness.in_turn(
                    options.rounds,
                    {
                        "shards": lambda n: call(_ranked, queries[n], depth, MODEL),
                        "alone": lambda n: alone(_alone, queries[n], depth),
                        "tiny": lambda n: call(_ranked, queries[n], depth, TINY),
                    },
                    warm_up=1,
                )
            pairs["memory"] = list(zip(own["shards"], own["alone"], strict=True))
            tiny[workers] = median(one[0] for one in own["tiny"])
            for source, found in pairs.items():
                same &= all(_same([one], [other]) for one, other in found)
                shards, alone_ = (
                    median(one[0] for one in side) for side in zip(*found, strict=True)
                )
                (cold if source == "disk" else warm).append(alone_)
                ratio = f"{shards / alone_:.2f}"
                row = [size, str(workers), source, harness.ms(shards), harness.ms(alone_), ratio]
                times.append(row)
        merging = call(_merging, depth)
        _forget(var)
        plain = harness.seconds(_read, var)
    whole = images * options.dimension * 2 / 1e9
    for what, spent, source in (
        ("from memory", median(warm), "`rank_rows`, warm"),
        ("from the disk", median(cold), "`rank_rows`, cold"),
        ("from the disk", plain, "files read in order, 16 MiB at a time"),
    ):
        costs.append([size, f"read {what}", f"{whole / spent:.2f} GB/s", source])
    for workers, spent in tiny.items():
        source = f"a ranking of {SHARDS} shards of one image each, {workers} processes, by {SHARDS}"
        costs.append([size, "a message", harness.ms(spent / SHARDS), source])
    what = f"merging {depth:,} places of each of {SHARDS} shards"
    costs.append([size, what, harness.ms(merging), "answers read and merged, in one process"])
    return same


@contextmanager
def _environment(broker: str, images: int) -> Iterator[None]:
    """What processes that are started read from the environment."""
    ours = {
        "CELERY_BROKER_URL": broker,
        "RANKING_SHARD_IMAGES": str(images),
        "RANKING_SHARD_SECONDS": "600",
    }
    os.environ.update(ours)
    try:
        yield
    finally:
        for name in ours:
            os.environ.pop(name)


@contextmanager
def _holding(call: Any, var: Path, workers: int) -> Iterator[None]:
    """So many processes that hold the shards, from when each has its part."""
    environment = {**os.environ, "VAR_DIR": str(var), "LOG_LEVEL": "WARNING"}
    command = [sys.executable, "manage.py", "hold_shards"]
    started = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=sys.stderr)
        for _ in range(workers)
    ]
    try:
        wait_for(partial(call, _divided, workers), seconds=WAIT, what="the shards", pause=0.5)
        yield
    finally:
        for one in started:
            one.terminate()
        for one in started:
            one.wait()


def _files(var: Path) -> list[Path]:
    return [path for path in var.glob("matrices/*/*/*") if path.is_file()]


def _forget(var: Path) -> None:
    """Have the system forget the files' content, of which no process may have read a page."""
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
    """Whether so many processes have as many shards of each model."""
    from core.locks import lock_owners
    from retrieval.ranking.sharded import shards_as_cut

    owners = lock_owners("shard")
    held = [
        (one.model_id, one.worker) for one in shards_as_cut() if one.pk in owners and one.worker
    ]
    backends = {pid for pids in owners.values() for pid in pids}
    named = {worker for _, worker in held}
    return (
        len(held) == 2 * SHARDS
        and len(backends) == workers == len(named)
        and {held.count(one) for one in held} == {SHARDS // workers}
    )


def _ranked(query: NDArray[np.float16], limit: int, name: str) -> Ranked:
    """The application's own function, all of its SQL and messages included."""
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images

    model, vector = EmbeddingModel.objects.get(name=name), query.astype(float).tolist()
    began = time.perf_counter()
    rows = rank_images(model=model, text_vector=vector, limit=limit)
    return _arrays(time.perf_counter() - began, rows)


@cache
def _parts() -> list[Any]:
    """The parts of all shards' matrices as those of one."""
    from dataclasses import replace

    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.files import open_matrix
    from retrieval.ranking.sharded import shards_as_cut, span_of

    model = EmbeddingModel.objects.get(name=MODEL)
    parts: list[Any] = []
    first = 0
    for shard in shards_as_cut().filter(model=model):
        for part in open_matrix(model, span_of(shard)).parts:
            parts.append(replace(part, first=first))
            first += len(part.image_ids)
    return parts


def _alone(query: NDArray[np.float16], limit: int) -> Ranked:
    """One process's pass over all files."""
    from retrieval.ranking.scan import Eligible, rank_rows

    parts, eligible = _parts(), Eligible(without=np.empty(0, np.int64))
    began = time.perf_counter()
    [rows] = rank_rows(parts, query[None], limit=limit, eligible=eligible)
    return _arrays(time.perf_counter() - began, rows)


def _merging(depth: int) -> float:
    """Median seconds of reading and merging so many answers."""
    from retrieval.ranking.sharded import Answer, merged

    drawn = np.random.default_rng(5)
    messages = [
        Answer(0, 0, [(np.arange(depth) * SHARDS + one, -np.sort(-drawn.random(depth)))]).message()
        for one in range(SHARDS)
    ]
    return median(
        harness.seconds(lambda: merged([Answer.read(one) for one in messages], depth))
        for _ in range(9)
    )


if __name__ == "__main__":
    sys.exit(main())
