"""Queries and runs of a made-up leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmark.leaderboard import RunValues
from benchmark.snapshot import SnapshotQuery
from labeling.categories import supercategory_of


def snapshot_query(query_id: int, category: str = "Human Impact", **values: Any) -> SnapshotQuery:
    """A query of a snapshot; of the test split unless told."""
    defaults: dict[str, Any] = {
        "text": f"query {query_id}",
        "supercategory": supercategory_of(category),
        "iconic_group": "Birds",
        "split": "test",
        "species": [],
        "guidelines": "",
        "scientific_terms": False,
        "model": "",
        "list_depth": 0,
        "list_size": 0,
        "list_total": 0,
        "list_checksum": "",
        "annotators": 1,
        "seconds": 0.0,
    }
    return SnapshotQuery(query_id=query_id, category=category, **{**defaults, **values})


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
