"""Runs of a made-up leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from evaluation.leaderboard.board import RunValues
from labeling.queries.categories import supercategory_of
from releases.snapshot.snapshot import SnapshotQuery
from tests.releases.snapshots import query


def query_of(query_id: int, category: str = "Human Impact", **values: Any) -> SnapshotQuery:
    """A query of a category, with the supercategory that this belongs to."""
    return query(query_id, category=category, supercategory=supercategory_of(category), **values)


def run_values(
    scores: Mapping[int, float], *splits: str, measure: str = "AP@50", oracle: bool = False
) -> RunValues:
    """A run with one measure: query id -> value."""
    ids = sorted(scores)
    return RunValues(
        query_ids=np.array(ids, dtype=np.int64),
        values={measure: np.array([scores[one] for one in ids])},
        splits=frozenset(splits or ("val", "test")),
        oracle=oracle,
    )
