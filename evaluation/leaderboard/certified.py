"""Scores with what labels may miss: how far the relevant images that a release's certificate can't
exclude could move the runs' means.

At the certificate's confidence, all its queries together miss no more than so many; nothing outside
their declared pools is relevant, and people recognize what the certificate takes them to recognize.
A split's queries may miss all of them. Where the reader doesn't see the labels, there are no
ranges: each would be two more figures of the labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np

from core.cache import LruCache
from evaluation.leaderboard.board import VAL, Board, Ids
from evaluation.leaderboard.selectors import BoardRuns, cached
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from evaluation.runs.services import rankings_on
from evaluation.runs.store import RunDamaged
from evaluation.scoring.evaluation import sorted_ranking
from evaluation.scoring.measures import Measure, parse_measure, parse_measures
from evaluation.scoring.missing import (
    FirstImages,
    has_range,
    least_mean_difference,
    mean_range,
    range_with_queries,
    score_range,
)
from evaluation.scoring.run_files import Ranking
from releases.models import Release
from releases.selectors import images_waiting, release_certificate_read
from releases.snapshot.release_certificate import possible_images
from releases.snapshot.snapshot import Snapshot

#: Releases whose possible images a process remembers; 250 queries of 5,000 images take 10 MB.
REMEMBERED: Final = 4


@dataclass(frozen=True, slots=True)
class Unknown:
    """What the labels of a release may miss."""

    most: int
    """How many relevant images, of all queries together."""
    confidence: float
    waiting: int
    """How many drawn images waited for a judgment when the release was made: with any, it isn't
    audited yet, and nothing is said of `most`."""
    images: Mapping[int, Ids]
    """By query id those that may be relevant though no label says so, of every query that the
    certificate covers."""

    @property
    def percent(self) -> str:
        """The confidence in percent."""
        return f"{100 * self.confidence:g}"


@dataclass(frozen=True, slots=True)
class MeanRange:
    """How far a run's mean could move."""

    mean: tuple[float, float]
    with_queries: tuple[float, float]
    """With the sampling of queries too: it holds the 95 % bootstrap interval by the labels with
    whichever images missing, so its error is at most the sum of both (Bonferroni's inequality)."""


_unknown_cache: LruCache[tuple[str, bool], Unknown | None] = LruCache(limit=REMEMBERED)


def unknown(release: Release, split: str) -> Unknown | None:
    """What the labels of a release's split may miss; None where no certificate bounds it. Where the
    test labels are hidden, the validation split has a certificate of its own."""
    whole = split != VAL or not release.labels_hidden
    key = (str(release.snapshot_directory), whole)
    known = _unknown_cache.get_many([key])
    if not known:
        known = {key: _read(release, whole)}
        _unknown_cache.set_many(known)
    return known[key]


def _read(release: Release, whole: bool) -> Unknown | None:
    certificate = release_certificate_read(release, whole=whole)
    if certificate is None or certificate.unknown_at_most is None:
        return None
    snapshot = Snapshot(release.snapshot_directory)
    images = possible_images(snapshot if whole else snapshot.open, certificate)
    waiting = images_waiting(release, certificate, whole=whole)
    return Unknown(certificate.unknown_at_most, certificate.confidence, waiting, images)


def missing_on(board: Board, runs: BoardRuns, key: str) -> Unknown | None:
    """What labels may miss where means over a board's queries have ranges; else None. They have
    none in re-ranking, where images without a judgment count as not relevant by definition, with
    gains, which a certificate doesn't bound, and before the release is audited."""
    found = _bounded_on(board, runs, key)
    return None if found is None or found.waiting else found


def waiting_on(board: Board, runs: BoardRuns, key: str) -> int:
    """How many drawn images wait for a judgment, where means would have ranges without them."""
    found = _bounded_on(board, runs, key)
    return found.waiting if found else 0


def _bounded_on(board: Board, runs: BoardRuns, key: str) -> Unknown | None:
    if runs.task != Run.Task.FULL or board.summary is not None or not ranged(runs.release, [key]):
        return None
    found = unknown(runs.release, board.split)
    queries = board.query_ids.tolist()
    return found if found and queries and found.images.keys() >= set(queries) else None


def ranged(release: Release, keys: Iterable[str]) -> list[Measure]:
    """Those of the measures whose scores have ranges on a release."""
    graded = release_data(release).qrels.gains is not None
    measures = parse_measures(keys)
    return [one for one in measures if has_range(one) and not (graded and one.kind.graded)]


def mean_ranges(board: Board, runs: BoardRuns, key: str) -> dict[int, MeanRange]:
    """Run id -> the range of its mean in a measure over all queries, of the competing runs that
    have an order; empty where nothing is bounded."""
    found = missing_on(board, runs, key)
    if found is None:
        return {}
    measure = parse_measure(key)

    def compute() -> dict[int, MeanRange]:
        return {
            pk: _mean_range(images, measure, found.most)
            for pk in board.competitors
            if (images := _first_images(board, runs, pk, found, measure))
        }

    return cached(compute, "with missing labels and queries", board.fingerprint, key)


def least_ahead(board: Board, runs: BoardRuns, first: int, second: int, key: str) -> float | None:
    """How far the first run's mean is ahead of the second's at least, whatever labels miss: a lower
    bound, see `least_mean_difference`. None where nothing is bounded, or a run has no order."""
    found, measure = missing_on(board, runs, key), parse_measure(key)
    if found is None:
        return None
    a, b = (_first_images(board, runs, pk, found, measure) for pk in (first, second))
    return least_mean_difference(a, b, measure, found.most) if a and b else None


def ahead_of_next(board: Board, runs: BoardRuns, key: str) -> dict[int, int]:
    """Run id -> the id of a run with the next lower mean, of the competing runs with an order that
    none of that mean can pass, whatever labels miss."""
    found, measure = missing_on(board, runs, key), parse_measure(key)
    if found is None:
        return {}

    def compute() -> dict[int, int]:
        means = board.means(key)
        images = {
            pk: _first_images(board, runs, pk, found, measure)
            for pk in mean_ranges(board, runs, key)
        }
        levels = sorted({means[pk] for pk in images}, reverse=True)
        at = {mean: [pk for pk in board.competitors if means.get(pk) == mean] for mean in levels}
        return {
            first: at[below][0]
            for above, below in pairwise(levels)
            for first in at[above]
            if images.get(first)
            and all(
                images.get(second)
                and least_mean_difference(images[first], images[second], measure, found.most) > 0
                for second in at[below]
            )
        }

    return cached(compute, "ahead of the next mean", board.fingerprint, key)


def _mean_range(images: list[FirstImages], measure: Measure, most: int) -> MeanRange:
    tables = np.stack([score_range(first, measure, most) for first in images])
    return MeanRange(mean_range(tables, most), range_with_queries(tables, most))


def _first_images(
    board: Board, runs: BoardRuns, pk: int, found: Unknown, measure: Measure
) -> list[FirstImages]:
    """A run's first images for each query of the board; none for a run without an order."""
    run = runs.runs[pk]
    try:
        rankings = {} if run.kind == Run.Kind.RANDOM else rankings_on(run, runs.release)
    except RunDamaged:
        return []
    return [
        first_images(
            runs.release, query_id, rankings.get(query_id), found.images[query_id], measure
        )
        for query_id in board.query_ids.tolist()
        if rankings
    ]


def first_images(
    release: Release, query_id: int, ranking: Ranking | None, possible: Ids, measure: Measure
) -> FirstImages:
    """The first images of a ranking for a query, down to the measure's cut-off; `possible` are the
    query's images that may be relevant though no label says so, ascending."""
    ids = np.zeros(0, np.int64) if ranking is None else sorted_ranking(ranking).image_ids
    first = ids[: measure.k]
    judged, relevant = release_data(release).qrels.of(query_id)
    found = np.isin(first, possible)
    return FirstImages(
        image_ids=first,
        relevant=np.isin(first, judged[relevant]),
        possible=found,
        total=int(relevant.sum()),
        beyond=len(possible) - int(found.sum()),
    )
