"""Runs for tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evaluation.runs.models import Run
from evaluation.runs.services import run_finish, run_store
from evaluation.scoring.run_files import Ranking
from releases.models import Release


def rankings(orders: Mapping[int, Sequence[int]]) -> dict[int, Ranking]:
    """query id -> image ids, best first."""
    return {
        query_id: Ranking(
            image_ids=np.array(order, dtype=np.int64),
            scores=np.arange(len(order), 0, -1, dtype=np.float64),
        )
        for query_id, order in orders.items()
    }


def stored_run(release: Release, orders: Mapping[int, Sequence[int]], **values: Any) -> Run:
    """A private run that is stored and not scored."""
    run = Run.objects.create(release=release, **{"name": "toy run", **values})
    return run_store(run=run, rankings=rankings(orders))


def scored_run(release: Release, orders: Mapping[int, Sequence[int]], **values: Any) -> Run:
    """A private run that is scored, with its best possible re-ranks."""
    run = stored_run(release, orders, **values)
    run_finish(run=run)
    run.refresh_from_db()
    return run


def trec(orders: Mapping[int, Sequence[int]]) -> bytes:
    """A TREC run file."""
    return b"".join(
        f"{query_id} Q0 {image_id} {rank} {100 - rank} toy\n".encode()
        for query_id, order in orders.items()
        for rank, image_id in enumerate(order, start=1)
    )
