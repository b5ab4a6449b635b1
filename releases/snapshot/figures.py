"""Figures of a release that its statistics page and its datasheet both show."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from labeling.candidates.stopping import RELEVANT
from labeling.judging.reliability import Reliability, reliability
from releases.snapshot.snapshot import Snapshot, SnapshotQuery

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Spread:
    """Summary statistics of a number that at least one thing has."""

    least: float
    median: float
    mean: float
    most: float
    total: float

    @classmethod
    def of(cls, values: npt.NDArray[Any]) -> Spread | None:
        """Those of (n,) values; None where n is 0."""
        if not len(values):
            return None
        ends = values.min(), np.median(values), values.mean(), values.max(), values.sum()
        return cls(*map(float, ends))

    @property
    def cells(self) -> list[str]:
        """Least, median, mean and most, as a table shows them."""
        return [f"{self.least:g}", f"{self.median:g}", f"{self.mean:.1f}", f"{self.most:g}"]


def by_split(queries: Iterable[SnapshotQuery]) -> dict[str, int]:
    """How many queries each split has."""
    splits = [query.split for query in queries]
    return {split: splits.count(split) for split in ("val", "test")}


def grouped(queries: Iterable[SnapshotQuery], *names: str) -> list[dict[str, Any]]:
    """{each of these fields: its value, each split: how many queries}, in the order of the values;
    None, not known, comes last."""
    groups: defaultdict[tuple[str | None, ...], list[SnapshotQuery]] = defaultdict(list)
    for query in queries:
        groups[tuple(getattr(query, name) for name in names)].append(query)
    order = sorted(groups, key=lambda key: [(part is None, part or "") for part in key])
    return [dict(zip(names, key, strict=True)) | by_split(groups[key]) for key in order]


def pairs_per_query(snapshot: Snapshot, query_ids: Sequence[int]) -> dict[str, Ints]:
    """How many images were `judged` for each of these queries, how many of those are `relevant`,
    and how many are `listed` in its candidate list: (q,) each, by query id."""
    counts = """
        SELECT count(image_id) AS judged, count(image_id) FILTER (relevant) AS relevant,
               count(rank) AS listed
          FROM unnest($ids) queries(query_id) LEFT JOIN pairs USING (query_id)
         GROUP BY query_id ORDER BY query_id
    """
    table = snapshot.sql(counts, ids=query_ids).to_arrow_table()
    return {name: table[name].to_numpy() for name in table.column_names}


def judging_seconds(snapshot: Snapshot) -> npt.NDArray[np.float64]:
    """The seconds of each judgment whose time is known."""
    timed = snapshot.sql("SELECT seconds FROM judgments WHERE seconds > 0 ORDER BY seconds")
    seconds: npt.NDArray[np.float64] = timed.to_arrow_table()["seconds"].to_numpy()
    return seconds


def seconds_by(snapshot: Snapshot, column: str) -> list[tuple[int, int, float]]:
    """(value of a column of the judgments, how many of these have a time, their seconds together),
    ascending."""
    grouped = f"""
        SELECT {column}, count(*), sum(seconds ORDER BY seconds)
          FROM judgments WHERE seconds > 0 GROUP BY 1 ORDER BY 1
    """
    return snapshot.sql(grouped).fetchall()


def release_reliability(snapshot: Snapshot) -> Reliability:
    """The agreement over the pairs that two people or more judged. Unsure counts as not relevant,
    as in a release."""
    votes = """
        SELECT count(*) FILTER (relevance <> $relevant) AS no,
               count(*) FILTER (relevance = $relevant) AS yes
          FROM judgments GROUP BY query_id, image_id
    """
    counts = snapshot.sql(votes, relevant=RELEVANT).to_arrow_table()
    return reliability(np.stack([counts["no"], counts["yes"]], axis=1))
