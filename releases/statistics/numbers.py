"""Plain numbers about a release, from its snapshot alone: what its statistics page shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from core.geo_grid import cell_sql
from releases.snapshot.figures import (
    Spread,
    grouped,
    judging_seconds,
    pairs_per_query,
    release_reliability,
)
from releases.snapshot.manifest import counts_of
from releases.snapshot.snapshot import Snapshot
from releases.statistics.field_numbers import field_numbers

#: The version of the numbers' form; numbers stored in another form are computed again.
FORM: Final = 6
#: Lower ends of the bins of images per query; the last is open.
COUNT_EDGES: Final = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
#: Seconds; lower ends, the last open.
SECONDS_EDGES: Final = (0, 0.5, 1, 2, 3, 5, 10, 20, 30, 60)
RANKS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
#: Judgments of a person; lower ends, the last open.
PEOPLE_EDGES: Final = (1, 10, 100, 1000, 10_000)

Numbers = dict[str, Any]

_SOUTH, _WEST = cell_sql("latitude", "longitude")
_CELLS: Final = f"""
SELECT {_SOUTH} AS south, {_WEST} AS west, count(*) AS images
  FROM (SELECT DISTINCT image_id FROM pairs WHERE relevant) LEFT JOIN images USING (image_id)
 GROUP BY ALL ORDER BY images DESC, south, west
"""
_SHARES: Final = """
WITH shares AS (
    SELECT query_id, supercategory, depth, count(*) FILTER (rank <= depth) / count(*) AS share
      FROM pairs JOIN queries USING (query_id), unnest($ranks) ranks(depth)
     WHERE relevant AND list_size > 0 GROUP BY ALL
), means AS (
    SELECT supercategory, depth, count(*) AS queries, avg(share) AS share,
           grouping(supercategory) AS whole
      FROM shares GROUP BY GROUPING SETS ((depth), (supercategory, depth))
)
SELECT coalesce(supercategory, '') AS name, any_value(queries), list(share ORDER BY depth)
  FROM means GROUP BY whole, supercategory ORDER BY whole DESC, name
"""
_LABELS_GIVEN: Final = """
SELECT labels, count(*) FROM (
    SELECT list(DISTINCT relevance ORDER BY relevance) AS labels FROM judgments
     GROUP BY query_id, image_id HAVING count(*) > 1
) GROUP BY labels ORDER BY count(*) DESC, len(labels), labels
"""
_PEOPLE: Final = """
WITH people AS (
    SELECT count(*) AS judgments,
           count(*) FILTER ((relevance = 'relevant') = relevant) AS approved
      FROM judgments JOIN pairs USING (query_id, image_id) WHERE votes > 1 GROUP BY annotator
)
SELECT low, count(*), sum(judgments), sum(approved)
  FROM people ASOF JOIN (SELECT unnest($edges) AS low) ON judgments >= low
 GROUP BY low ORDER BY low
"""
_GRADES: Final = """
SELECT above, count(*) FILTER (gain = 3), count(*) FILTER (gain = 2), count(*) FILTER (gain = 1),
       count(*) FILTER (gain = 0)
  FROM (SELECT rank, coalesce(grade, if(relevant, 3, 0)) AS gain
          FROM pairs JOIN queries USING (query_id) WHERE grades <> '')
  ASOF LEFT JOIN (SELECT unnest($edges) AS above) ON rank > above
 GROUP BY above ORDER BY above
"""


def release_statistics(snapshot: Snapshot) -> Numbers:
    """Everything that the page shows, as JSON holds it.

    form, queries {val, test}, pairs, relevant, images, judgments, annotators: counts; pairs,
        judgments and annotators are None where an imported benchmark has none.
    labeled, relevant_per_query: over all queries, see `summary`; labeled is None where pairs is.
    categories: [{supercategory, category, val, test}]; iconic_groups: [{iconic_group, val, test}],
        with None for queries whose group isn't known.
    map: {cells: [[south, west, images]] of CELL degrees, the fullest first; placed, unplaced}: each
        relevant image once, however many queries it is relevant for.
    seconds: `summary` of the judgments with a time, and `total`; None without any.
    ranks: {at: RANKS, lines: [{name, queries, shares}]}: recall at each rank of `at` in the
        candidate list, as a mean over the queries with lists and relevant images; the first line is
        over all of these, the others over each supercategory.
    agreement: {pairs: judged by two people or more; same: the share of two judgments of a pair that
        say the same; alpha: Krippendorff's; see `release_reliability`; given: [[which labels, how
        many of the pairs]], most first}; None where judgments is.
    people: [[from, to, people, judgments, approved]] of the judgments on pairs that two people or
        more judged, binned by how many of these a person has; approved are those that agree with
        the label. Source: Chun et al. 2022, "ECCV Caption", table B.1. None where judgments is.
    grades: [[from rank, to rank, how many pairs of each grade from 3 to 0]] by the RANKS of the
        candidate lists, at last [None, None, …] of pairs outside; None where no query has grades.
    custom_fields: see `field_numbers`.
    """
    header, counts = snapshot.header, counts_of(snapshot)
    known = header.origin != "imported" or counts.judgments
    per_query = pairs_per_query(snapshot, list(snapshot.labeled_queries))
    seconds = judging_seconds(snapshot)
    timed = summary(seconds, SECONDS_EDGES)
    return {
        "form": FORM,
        "queries": {"val": counts.val_queries, "test": counts.test_queries},
        "pairs": counts.pairs,
        "relevant": counts.positives,
        "images": counts.images,
        "judgments": counts.judgments if known else None,
        "annotators": _judges(snapshot) if known else None,
        "labeled": summary(per_query["judged"], COUNT_EDGES) if header.negatives_known else None,
        "relevant_per_query": summary(per_query["relevant"], COUNT_EDGES),
        "categories": grouped(snapshot.queries.values(), "supercategory", "category"),
        "iconic_groups": grouped(snapshot.queries.values(), "iconic_group"),
        "map": _map(snapshot),
        "seconds": timed and timed | {"total": float(seconds.sum())},
        "ranks": _ranks(snapshot),
        "agreement": _agreement(snapshot) if known else None,
        "people": _people(snapshot) if known else None,
        "grades": _grades(snapshot) if snapshot.graded_queries else None,
        "custom_fields": field_numbers(snapshot),
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


def _map(snapshot: Snapshot) -> Numbers:
    rows = snapshot.sql(_CELLS).fetchall()
    cells = [list(row) for row in rows if row[0] is not None]
    placed = sum(images for _, _, images in cells)
    return {
        "cells": cells,
        "placed": placed,
        "unplaced": sum(images for _, _, images in rows) - placed,
    }


def _ranks(snapshot: Snapshot) -> Numbers:
    lines = snapshot.sql(_SHARES, ranks=RANKS).fetchall()
    names = ("name", "queries", "shares")
    return {"at": list(RANKS), "lines": [dict(zip(names, line, strict=True)) for line in lines]}


def _judges(snapshot: Snapshot) -> int:
    """How many people made the judgments, of the validation queries alone in an open snapshot."""
    [(people,)] = snapshot.sql("SELECT count(DISTINCT annotator) FROM judgments").fetchall()
    return int(people)


def _agreement(snapshot: Snapshot) -> Numbers:
    votes = release_reliability(snapshot)
    given = [list(row) for row in snapshot.sql(_LABELS_GIVEN).fetchall()]
    return {"pairs": votes.items, "same": votes.raw, "alpha": votes.alpha, "given": given}


def _people(snapshot: Snapshot) -> list[list[int | None]]:
    ends = dict(zip(PEOPLE_EDGES, [*PEOPLE_EDGES[1:], None], strict=True))
    rows = snapshot.sql(_PEOPLE, edges=PEOPLE_EDGES).fetchall()
    return [[low, ends[low], *counts] for low, *counts in rows]


def _grades(snapshot: Snapshot) -> list[list[int | None]]:
    ends: dict[int | None, tuple[int | None, int | None]] = {None: (None, None)}
    ends |= {above: (above + 1, to) for above, to in zip((0, *RANKS), (*RANKS, None), strict=True)}
    rows = snapshot.sql(_GRADES, edges=(0, *RANKS)).fetchall()
    return [[*ends[above], *counts] for above, *counts in rows]
