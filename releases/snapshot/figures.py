"""Figures of a release that its statistics page and its datasheet both show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from labeling.candidates.stopping import RELEVANT
from labeling.judging.reliability import Reliability, reliability
from releases.snapshot.snapshot import Snapshot, SnapshotQuery


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of a number over at least one thing."""

    least: float
    median: float
    mean: float
    most: float
    total: float

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Spread | None:
        """None of no values."""
        if not len(values):
            return None
        ends = values.min(), np.median(values), values.mean(), values.max(), values.sum()
        return cls(*map(float, ends))

    @property
    def cells(self) -> list[str]:
        """As a table shows it."""
        return [f"{self.least:g}", f"{self.median:g}", f"{self.mean:.1f}", f"{self.most:g}"]


def by_split(queries: Iterable[SnapshotQuery]) -> dict[str, int]:
    """How many queries each split has."""
    splits = [query.split for query in queries]
    return {split: splits.count(split) for split in ("val", "test")}


def grouped(
    queries: Iterable[SnapshotQuery], *names: str
) -> list[tuple[tuple[str | None, ...], dict[str, int]]]:
    """(the values of these fields, queries `by_split`), in the order of the values; None, not
    known, comes last."""
    groups: defaultdict[tuple[str | None, ...], list[SnapshotQuery]] = defaultdict(list)
    for query in queries:
        groups[tuple(getattr(query, name) for name in names)].append(query)
    order = sorted(groups, key=lambda key: [(part is None, part or "") for part in key])
    return [(key, by_split(groups[key])) for key in order]


def count_per_query(ids: Sequence[int], query_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How often each of the ascending `ids` occurs among the ascending `query_ids`."""
    queries = np.array(ids, dtype=np.int64)
    right = np.searchsorted(query_ids, queries, side="right")
    return np.asarray(right - np.searchsorted(query_ids, queries, side="left"))


def judging_seconds(snapshot: Snapshot) -> npt.NDArray[np.float64]:
    """The seconds of each judgment whose time is known."""
    table = pq.read_table(snapshot.path("judgments"), columns=["seconds"])
    seconds: npt.NDArray[np.float64] = table["seconds"].to_numpy()
    return seconds[seconds > 0]


def votes_of_pairs(snapshot: Snapshot) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The relevances that people gave, by name, and how many gave each to each judged pair
    (pairs, relevances)."""
    table = pq.read_table(snapshot.path("judgments"), columns=["query_id", "image_id", "relevance"])
    relevances, given = np.unique(
        table["relevance"].to_numpy(zero_copy_only=False).astype(str), return_inverse=True
    )
    pair = pair_places(table["query_id"].to_numpy(), table["image_id"].to_numpy())
    votes = np.zeros((int(pair.max(initial=-1)) + 1, len(relevances)), dtype=np.int64)
    np.add.at(votes, (pair, given), 1)
    return relevances.tolist(), votes


def release_reliability(relevances: list[str], votes: npt.NDArray[np.int64]) -> Reliability:
    """The agreement over the pairs that two people or more judged, from `votes_of_pairs`. Unsure
    counts as not relevant, as in a release."""
    said = np.array(relevances, dtype=str) == RELEVANT
    return reliability(np.stack([votes @ ~said, votes @ said], axis=1).astype(float))


def pair_places(
    owners: npt.NDArray[np.int64], images: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Of each judgment (n,) the place of its pair among the judged ones. Rows come by query and
    image, so that a pair's judgments are adjacent."""
    begins = np.ones(len(owners), dtype=np.int64)
    begins[1:] = (owners[1:] != owners[:-1]) | (images[1:] != images[:-1])
    places: npt.NDArray[np.int64] = np.cumsum(begins) - 1
    return places
