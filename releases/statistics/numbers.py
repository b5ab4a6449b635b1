"""Plain numbers about a release, from its snapshot alone: what its statistics page shows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

from core.geo_grid import CELL
from labeling.candidates.stopping import RELEVANT
from labeling.judging.grades import GRADES
from releases.snapshot.figures import (
    Spread,
    by_split,
    count_per_query,
    grouped,
    judging_seconds,
    pair_places,
    release_reliability,
    votes_of_pairs,
)
from releases.snapshot.snapshot import Snapshot, SnapshotQuery, gains_of

#: Of the numbers' form; stored ones of another are made anew.
FORM: Final = 4
#: Lower ends of the bins of images per query; the last is open.
COUNT_EDGES: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
#: Seconds; lower ends, the last open.
SECONDS_EDGES: Final = (0, 0.5, 1, 2, 3, 5, 10, 20, 30, 60)
RANKS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
#: Judgments of a person; lower ends, the last open.
PEOPLE_EDGES: Final = (1, 10, 100, 1000, 10_000)

Numbers = dict[str, Any]
Ints = npt.NDArray[np.int64]


def release_statistics(snapshot: Snapshot) -> Numbers:
    """Everything that the page shows, as JSON holds it.

    form, queries {val, test}, pairs, relevant, images, judgments, annotators: counts; of pairs,
        judgments and annotators None where an imported benchmark has none.
    labeled, relevant_per_query: of all queries, see `summary`; labeled is None where pairs is.
    categories: [{supercategory, category, val, test}]; iconic_groups: [{iconic_group, val, test}],
        with None for the group of queries of which it isn't known.
    map: {cells: [[south, west, images]] of CELL degrees, the fullest first; placed, unplaced}: each
        relevant image once, however many queries it is relevant for.
    seconds: `summary` of the judgments with a time, and `total`; None without any.
    ranks: {at: RANKS, lines: [{name, queries, shares}]}, see `found_by_rank`; the first line is of
        all queries, the others of each supercategory; no lines without candidate lists.
    agreement: {pairs: judged by two people or more; same: the share of two judgments of a pair that
        say the same; alpha: Krippendorff's; see `release_reliability`; given: [[which labels, how
        many of the pairs]], most first}; None where judgments is.
    people: see `approved`, of the judgments on pairs that two people or more judged; None where
        judgments is.
    grades: [[from rank, to rank, how many pairs of each grade from 3 to 0]] by the RANKS of the
        candidate lists, at last [None, None, …] of pairs outside; None where no query has grades.
    """
    queries = snapshot.queries
    pairs = pq.read_table(
        snapshot.path("pairs"), columns=["query_id", "image_id", "relevant", "rank"]
    )
    judgments = int(pq.read_metadata(snapshot.path("judgments")).num_rows)
    header = snapshot.header
    known = header.origin != "imported" or judgments
    query_ids = pairs["query_id"].to_numpy()
    relevant = pairs["relevant"].to_numpy()
    ranks = pairs["rank"].fill_null(0).to_numpy()
    image_ids = np.unique(pairs["image_id"].to_numpy()[relevant])
    order = list(snapshot.labeled_queries)
    return {
        "form": FORM,
        "queries": by_split(queries.values()),
        "pairs": len(query_ids) if header.negatives_known else None,
        "relevant": int(relevant.sum()),
        "images": snapshot.image_count,
        "judgments": judgments if known else None,
        "annotators": header.annotators if known else None,
        "labeled": summary(count_per_query(order, query_ids), COUNT_EDGES)
        if header.negatives_known
        else None,
        "relevant_per_query": summary(count_per_query(order, query_ids[relevant]), COUNT_EDGES),
        "categories": _grouped(queries.values(), "supercategory", "category"),
        "iconic_groups": _grouped(queries.values(), "iconic_group"),
        "map": _map(snapshot, image_ids),
        "seconds": _seconds(snapshot),
        "ranks": _ranks(snapshot.labeled_queries, query_ids[relevant], ranks[relevant]),
        "agreement": _agreement(snapshot) if known else None,
        "people": _people(snapshot) if known else None,
        "grades": _grades(snapshot),
    }


def summary(values: npt.NDArray[Any], edges: Sequence[float]) -> Numbers | None:
    """{bins: [[from, to, how many]], lowest, median, mean, highest} of (n,) values from edges[0]
    up; None for no values. Empty bins at both ends are left out; the last of all has no end, None.
    """
    spread = Spread.of(values)
    if spread is None:
        return None
    counts = np.histogram(values, bins=[*edges, np.inf])[0].tolist()
    full = [place for place, count in enumerate(counts) if count]
    part = range(full[0], full[-1] + 1)
    return {
        "bins": [[edges[place], [*edges, None][place + 1], counts[place]] for place in part],
        "lowest": spread.least,
        "median": spread.median,
        "mean": spread.mean,
        "highest": spread.most,
    }


def found_by_rank(ranks: Ints, owners: Ints, totals: Mapping[int, int]) -> dict[int, list[float]]:
    """For each query of `totals` (query id -> R, its relevant images, at least 1) the share of R
    at ranks up to each of RANKS.

    `ranks` (n,) from 1, 0 outside the candidate list, and `owners` (n,), the query ids, are of the
    relevant images. A share stays below 1 where relevant images were found outside the list.
    """
    found = {}
    for query_id, total in totals.items():
        own = ranks[(owners == query_id) & (ranks > 0)]
        found[query_id] = [int((own <= at).sum()) / total for at in RANKS]
    return found


def approved(people: Ints, right: npt.NDArray[np.bool_]) -> list[list[int | None]]:
    """[[from, to, people, judgments, approved]] of judgments (n,) by whom each is (`people`) and
    whether it agrees with the label (`right`), binned by how many a person has; without empty bins.
    The last bin of all has no end, None. Source: Chun et al. 2022, "ECCV Caption", table B.1.
    """
    _, whose, counts = np.unique(people, return_inverse=True, return_counts=True)
    agree = np.bincount(whose, right, minlength=len(counts)).astype(np.int64)
    bins = np.searchsorted(PEOPLE_EDGES, counts, side="right") - 1
    return [
        [
            *(low, [*PEOPLE_EDGES, None][place + 1], int((bins == place).sum())),
            *(int(counts[bins == place].sum()), int(agree[bins == place].sum())),
        ]
        for place, low in enumerate(PEOPLE_EDGES)
        if (bins == place).any()
    ]


def _grouped(queries: Iterable[SnapshotQuery], *names: str) -> list[Numbers]:
    return [dict(zip(names, key, strict=True)) | counts for key, counts in grouped(queries, *names)]


def _map(snapshot: Snapshot, image_ids: Ints) -> Numbers:
    cells: Counter[tuple[int, int]] = Counter()
    columns = ["image_id", "latitude", "longitude"]
    with pq.ParquetFile(snapshot.path("images")) as file:
        for batch in file.iter_batches(columns=columns, batch_size=20_000):
            inside = np.isin(batch["image_id"].to_numpy(), image_ids)
            latitudes, longitudes = (
                batch[name].to_numpy(zero_copy_only=False)[inside] for name in columns[1:]
            )
            placed = ~(np.isnan(latitudes) | np.isnan(longitudes))
            # The pole and the date line belong to the last cell.
            south = np.minimum(np.floor(latitudes[placed] / CELL) * CELL, 90 - CELL)
            west = np.minimum(np.floor(longitudes[placed] / CELL) * CELL, 180 - CELL)
            cells.update(zip(south.astype(int).tolist(), west.astype(int).tolist(), strict=True))
    by_size = sorted(cells.items(), key=lambda cell: (-cell[1], cell[0]))
    return {
        "cells": [[*cell, count] for cell, count in by_size],
        "placed": cells.total(),
        "unplaced": len(image_ids) - cells.total(),
    }


def _seconds(snapshot: Snapshot) -> Numbers | None:
    timed = judging_seconds(snapshot)
    found = summary(timed, SECONDS_EDGES)
    return found and found | {"total": float(timed.sum())}


def _ranks(queries: Mapping[int, SnapshotQuery], owners: Ints, ranks: Ints) -> Numbers:
    counts = Counter(owners.tolist())
    listed = {i: counts[i] for i, query in queries.items() if query.list_size and counts[i]}
    shares = found_by_rank(ranks, owners, listed)
    groups: defaultdict[str, list[list[float]]] = defaultdict(list)
    for query_id, found in shares.items():
        groups[queries[query_id].supercategory].append(found)
    lines = [("", list(shares.values())), *sorted(groups.items())]
    return {
        "at": list(RANKS),
        "lines": [
            {"name": name, "queries": len(rows), "shares": np.mean(rows, axis=0).tolist()}
            for name, rows in lines
            if rows
        ],
    }


def _agreement(snapshot: Snapshot) -> Numbers:
    labels, votes = votes_of_pairs(snapshot)
    shared = votes[votes.sum(axis=1) >= 2] > 0
    sets = Counter((shared @ (1 << np.arange(len(labels)))).tolist())
    given = [
        [[name for place, name in enumerate(labels) if code >> place & 1], count]
        for code, count in sets.most_common()
    ]
    found = release_reliability(labels, votes)
    return {"pairs": found.items, "same": found.raw, "alpha": found.alpha, "given": given}


def _people(snapshot: Snapshot) -> list[list[int | None]]:
    columns = ["query_id", "image_id", "annotator", "relevance"]
    judged = pq.read_table(snapshot.path("judgments"), columns=columns)
    pairs = pq.read_table(snapshot.path("pairs"), columns=["relevant", "votes"])
    votes = pairs["votes"].to_numpy()
    # Of an imported benchmark some pairs may have no judgment.
    place = np.flatnonzero(votes)[
        pair_places(judged["query_id"].to_numpy(), judged["image_id"].to_numpy())
    ]
    said = judged["relevance"].to_numpy(zero_copy_only=False) == RELEVANT
    right = said == pairs["relevant"].to_numpy()[place]
    shared = votes[place] >= 2
    return approved(judged["annotator"].to_numpy()[shared], right[shared])


def _grades(snapshot: Snapshot) -> list[list[int | None]] | None:
    if not snapshot.graded_queries:
        return None
    columns = ["query_id", "relevant", "grade", "rank"]
    table = pq.read_table(snapshot.path("pairs"), columns=columns)
    inside = np.isin(table["query_id"].to_numpy(), snapshot.graded_queries)
    gains = gains_of(table, snapshot.graded_queries)[inside]
    ranks = table["rank"].fill_null(0).to_numpy()[inside]
    bins = np.where(ranks > 0, np.searchsorted(RANKS, ranks), len(RANKS) + 1)
    ends = [*zip((1, *(rank + 1 for rank in RANKS)), (*RANKS, None), strict=True), (None, None)]
    found: list[list[int | None]] = []
    for place, (low, high) in enumerate(ends):
        if (bins == place).any():
            counts = np.bincount(gains[bins == place], minlength=len(GRADES))
            found.append([low, high, *(int(counts[grade]) for grade in GRADES)])
    return found
