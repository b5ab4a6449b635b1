"""How fast the workers of shards rank beside one process: `python -m bench.sharding`.

For each size there is a database with clustered unit vectors in half precision, whose matrix is cut
into shards with a worker each. In each round the first images for a query's vector come from the
application through the shards, and from `rank_rows` over the same files in one process, from
memory. The lists must be the same bit for bit, else the exit status is 1. A second model with few
embeddings in each shard shows the time of messages, statements and merging.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.ranking import Ranked, as_arrays, same_lists, usual
from bench.rows import MODEL, fill_clustered, query_vectors, store_vectors
from tests import ROOT
from tests.processes import redis_server, shard_worker, wait_for

FEW: Final = "few"
HEAD: Final = (
    "Images | Shards | Through shards | One process's `rank_rows` | × one process | GB/s of that"
    " | A shard without vectors | One process, from the disk"
)


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the shards' lists are the same as one process's, and how fast both are."""
    rows: list[list[Any]] = []
    same = True
    for images in options.sizes:
        with harness.temporary_folder() as folder, redis_server(folder) as redis:
            # Read by the processes that are started from here on.
            os.environ.update(
                CELERY_BROKER_URL=redis.url,
                RANKING_SHARDS=str(options.shards),
                RANKING_SHARD_IMAGES=str(images // options.shards + 1),
                RANKING_SHARD_SECONDS="600",
            )
            with harness.process(folder, migrate=True) as call:
                row, is_same = _measure(folder, call, images, options)
                rows.append(row)
                same &= is_same
    return same, [
        f"A worker for each shard on one machine, {options.dimension:,} dimensions, the first "
        f"{options.depth:,} images, from memory; the medians of {options.rounds} rounds. The time "
        "through shards is that of the whole function with all of its SQL and messages; that of a "
        "shard without vectors is of shards that hold no more embeddings than they answer, by the "
        "shards. Workers that share the cores of one machine can't be faster than one process.",
        harness.table(HEAD, rows),
        f"All lists are {'the same bit for bit.' if same else '**not the same.**'}",
    ]


def _measure(folder: Path, call: harness.Call, images: int, options: Any) -> tuple[list[Any], bool]:
    """A row of the table; whether all lists are the same."""
    depth, size = min(options.depth, images // options.shards), images // options.shards + 1
    queries = query_vectors(options.rounds + 1, options.dimension)
    harness.log(f"{images:,} images: filling a database and packing …")
    call(fill_clustered, images, options.dimension)
    for shard in range(options.shards):
        few = query_vectors(depth, options.dimension)
        call(_store_few, shard * size + 1, few, options.dimension)
    with _workers(folder / "var", options.shards), harness.process(folder) as alone:
        call(_request)
        wait_for(lambda: call(_packed), seconds=3600, what="the shards", pause=1)
        lists = harness.in_turn(
            options.rounds,
            {
                "shards": lambda n: call(_ranked, queries[n], depth, MODEL),
                "alone": lambda n: alone(_alone, queries[n], depth),
                "few": lambda n: call(_ranked, queries[n], depth, FEW),
            },
            warm_up=1,
        )
        same = same_lists(lists["shards"], lists["alone"]) and bool(call(_by_shards))
    shards, one, few_time = (usual(lists[way]) for way in ("shards", "alone", "few"))
    _forget(folder / "var")
    with harness.process(folder) as alone:
        cold = alone(_alone, queries[0], depth)[0]
    speed = images * options.dimension * 2 / 1e9 / one
    times = [harness.ms(few_time / options.shards), harness.ms(cold)]
    shown = [harness.ms(shards), harness.ms(one), shards / one, speed, *times]
    return [images, options.shards, *shown], same


@contextmanager
def _workers(var: Path, shards: int) -> Iterator[None]:
    """The worker of each shard, as a service starts it."""
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "annotator.settings"}
    environment.pop("DATABASE_URL", None)
    started = [
        subprocess.Popen(
            shard_worker(shard),
            cwd=ROOT,
            env={**environment, "VAR_DIR": str(var), "LOG_LEVEL": "ERROR"},
            stdout=sys.stderr,
        )
        for shard in range(shards)
    ]
    try:
        yield
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _forget(var: Path) -> None:
    """Make the system drop the files from its cache; no process may have mapped them."""
    for path in var.glob("matrices/*/*/*"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _store_few(first: int, vectors: NDArray[np.float16], dimension: int) -> None:
    store_vectors(first, iter([vectors]), dimension, model=FEW)


def _request() -> None:
    from extras.sharding.ranking import packing_request

    packing_request()


def _packed() -> bool:
    """Whether all shards of both models are packed."""
    from extras.sharding.settings import shard_settings

    manifests = [*Path(shard_settings.VAR_DIR).glob("matrices/*/*/manifest.json")]
    return len(manifests) == 2 * int(shard_settings.RANKING_SHARDS)


def _by_shards() -> bool:
    """Whether no shard has failed this process."""
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import ranking_method

    return all(ranking_method(model) == "matrix" for model in EmbeddingModel.objects.all())


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

    from extras.sharding.ranking import span_of
    from extras.sharding.settings import shard_settings
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.files import open_matrix

    model = EmbeddingModel.objects.get(name=MODEL)
    parts: list[Any] = []
    first = 0
    for shard in range(shard_settings.RANKING_SHARDS):
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


if __name__ == "__main__":
    packages = ("numpy", "numkong", "celery", "redis")
    sizes = {"sizes": (1_000_000, 5_000_000), "dimension": 1024, "depth": 5000}
    harness.run(main, "Ranking in shards", packages, **sizes, rounds=7, shards=4)
