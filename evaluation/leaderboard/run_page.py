"""The contents of a run's pages: its scores per subset and per query, and the images it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from evaluation.leaderboard import certified, statistics
from evaluation.leaderboard.board import Board, Ids, printed, printed_span, ranks_among
from evaluation.leaderboard.selectors import (
    BoardRuns,
    board_runs,
    cached,
    splits_of,
    values_on,
)
from evaluation.leaderboard.table import Figure, figure
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data, scores_of_run
from evaluation.runs.services import rankings_on
from evaluation.runs.store import RunDamaged
from evaluation.scoring.measures import HEADLINES, parse_measures
from evaluation.scoring.missing import score_range
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.ties import TieRange, tie_range
from labeling.candidates.selectors import candidate_ranks
from labeling.judging.access import queries_visible_to, why_not
from labeling.queries.models import Query
from releases.access import labels_visible_to
from releases.models import Release
from releases.snapshot.certificates import certificate_of
from releases.snapshot.snapshot import Snapshot, SnapshotQuery
from retrieval.corpus.models import Image
from retrieval.flags.selectors import images_visible_to

#: Images on a page.
PAGE: Final = 100
#: An image counts as found down to this rank.
FOUND_WITHIN: Final = 50
#: The measures whose ranges a query's page shows.
RANGED: Final = ("AP@50", "nDCG@50", "R@50")
#: Missed images that are shown; the page says how many there are.
MOST_MISSED: Final = 100


_NO_IMAGES: Final[Ids] = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class PartRow:
    """One subset's row: a figure for each measure."""

    name: str
    queries: int
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class QueryRow:
    """One query's row."""

    query: SnapshotQuery
    value: float
    text: str
    rank: int
    """Its rank among the competing runs of the board, from 1; equal runs share a rank. 0 for an
    oracle."""
    best: str
    """The competing runs' highest score, as printed."""


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A run's means on one version of its benchmark."""

    release: Release
    split: str
    queries: int
    figures: tuple[str, ...]
    """The means in the paper's measures, as printed."""


@dataclass(frozen=True, slots=True)
class ShownImage:
    """One image of a ranking, or one that is missing from it."""

    image_id: int
    rank: int | None
    """From 1; None where the run doesn't have it."""
    mark: str
    """One of `marks_of`, or empty where labels are hidden."""
    image: Image | None
    """None where the file isn't here, or not for this user."""
    list_rank: int | None = None
    """Its rank in the candidate list of a query that the user may label."""


def runs_with(release: Release, run: Run, user: Any) -> BoardRuns:
    """The runs of the run's task that the user sees on a release, with the run itself, also where
    it was made for another version. NoSnapshot: nothing to score on."""
    runs = board_runs(release, run.task, user)
    if run.pk in runs.runs:
        return runs
    own = {run.pk: run}
    return replace(
        runs,
        runs={**runs.runs, **own},
        values={**runs.values, **values_on(release, own)},
        fingerprint=f"{runs.fingerprint} with {run.pk}",
    )


def part_rows(
    runs: BoardRuns, board: Board, run: Run, measures: Sequence[str]
) -> dict[str, list[PartRow]]:
    """The run's means with intervals in each subset, by grouping."""
    rows = {}
    for grouping in runs.groupings(board.split):
        intervals = statistics.run_intervals(board, run.pk, measures, grouping)
        rows[grouping] = [
            PartRow(
                part.name,
                len(part.queries),
                tuple(
                    figure(measure, board.means(measure, part).get(run.pk), interval)
                    for measure, interval in zip(measures, intervals[part.key], strict=True)
                ),
            )
            for part in board.subsets(grouping)
        ]
    return rows


def query_rows(board: Board, run: Run, measure: str) -> list[QueryRow]:
    """Every scored query of the board with the run's figure and rank, by query id; none where the
    labels of the split are hidden."""
    if board.summary is not None:
        return []
    own = board.scores_of(run.pk, measure)
    competing = board.means(measure).keys() - board.oracles
    best = np.max([board.scores_of(pk, measure) for pk in competing] or [own], axis=0)
    ranks = ranks_among(board, run.pk, measure)
    columns = (own.tolist(), ranks.tolist(), best.tolist())
    return [
        QueryRow(
            query=query,
            value=value,
            text=printed(measure, value),
            rank=rank,
            best=printed(measure, highest),
        )
        for query, value, rank, highest in zip(board.queries, *columns, strict=True)
        if not np.isnan(value)
    ]


def tie_ranges(
    board: Board, run: Run, release: Release, measures: Sequence[str]
) -> list[tuple[str, str]]:
    """The least and the largest mean of each measure, as printed, over all orders of images with
    equal scores; none where the order moves nothing, the run has no ranking, or the labels of the
    split are hidden."""
    if board.summary is not None or run.kind == Run.Kind.RANDOM:
        return []
    parsed = parse_measures(measures)

    def compute() -> TieRange:
        qrels = release_data(release).qrels_of(run.task).only(board.query_ids)
        return tie_range(rankings_on(run, release), qrels, parsed)

    try:
        moved = cached(compute, "ties", board.fingerprint, run.pk, measures).means
    except RunDamaged:
        return []
    return [
        (measure.mean_name, printed_span(measure.key, moved[measure.key]))
        for measure in parsed
        if measure.key in moved
    ]


def missing_rows(
    board: Board, runs: BoardRuns, run: Run, measures: Sequence[str]
) -> list[tuple[str, str, str]]:
    """The mean's name, and its range with what labels may miss, alone and with the sampling of
    queries, as printed; of each measure that has one."""
    return [
        (
            measure.mean_name,
            printed_span(measure.key, found.mean),
            printed_span(measure.key, found.with_queries),
        )
        for measure in parse_measures(measures)
        if (found := certified.mean_ranges(board, runs, measure.key).get(run.pk))
    ]


def query_ranges(run: Run, release: Release, query_id: int) -> dict[str, Any]:
    """The context of how far what the query's own certificate leaves open could move the run's
    scores there; empty where nothing is bounded. With images that wait to be audited it has their
    number alone."""
    snapshot = Snapshot(release.snapshot_directory)
    known = certificate_of(snapshot, query_id) if run.task == Run.Task.FULL else None
    if known is None or run.kind == Run.Kind.RANDOM:
        return {}
    certificate, images = known
    if certificate.waiting:
        return {"to_audit": certificate.waiting}
    ranking, possible = rankings_on(run, release).get(query_id), np.array(images, np.int64)
    ranges = []
    for measure in certified.ranged(release, RANGED):
        first = certified.first_images(release, query_id, ranking, possible, measure)
        span = score_range(first, measure, certificate.missing_at_most)[:, -1]
        ranges.append((measure.key, printed_span(measure.key, span)))
    return {
        "ranges": ranges,
        "missing": certificate.missing_at_most,
        "confidence": f"{100 * snapshot.header.confidence:g}",
    }


def version_rows(user: Any, run: Run) -> list[VersionRow]:
    """A run's means on the versions that it is scored on, the oldest first, by the labels that the
    user sees. They are comparable, since they are over the queries that all of these versions
    score. None of a split that has only one version.
    """
    scores = sorted(scores_of_run(run), key=lambda score: score.release.version)
    rows: list[VersionRow] = []
    for split in sorted(splits_of(run), reverse=True):
        seen = [score for score in scores if labels_visible_to(user, score.release, split)]
        held = [
            {query_id for query_id in score.query_ids if queries[query_id].split == split}
            for score in seen
            for queries in [release_data(score.release).queries]
        ]
        common = set.intersection(*held) if len(held) > 1 else set()
        for score in seen if common else ():
            kept = np.isin(score.query_ids, list(common))
            figures = tuple(
                printed(key, float(np.array(score.measures[key])[kept].mean()))
                for key in HEADLINES[run.task]
            )
            rows.append(VersionRow(score.release, split, len(common), figures))
    return rows


def ranking_of(run: Run, release: Release, query_id: int) -> Ids:
    """Image ids of a run for a query, best first; none where it lacks the query or has no order.

    NoSnapshot, RunDamaged: as `rankings_on`.
    """
    if run.kind == Run.Kind.RANDOM:
        return _NO_IMAGES
    return image_ids_of(rankings_on(run, release), query_id)


def image_ids_of(rankings: Mapping[int, Ranking], query_id: int) -> Ids:
    """Image ids for a query, best first; none where the rankings lack it."""
    ranking = rankings.get(query_id)
    return _NO_IMAGES if ranking is None else ranking.image_ids


def marks_of(release: Release, query_id: int, image_ids: Ids) -> list[str]:
    """ "relevant", "not_relevant", "unjudged", or "unknown" where it isn't known which
    images were judged, for each image."""
    judged, relevant = release_data(release).qrels.of(query_id)
    known = dict(zip(judged.tolist(), relevant.tolist(), strict=True))
    rest = "unjudged" if release_data(release).header.negatives_known else "unknown"
    names = {True: "relevant", False: "not_relevant", None: rest}
    return [names[known.get(image_id)] for image_id in image_ids.tolist()]


def relevant_ids(release: Release, task: str, query_id: int) -> Ids:
    """The relevant images of a query, within its fixed list for the re-ranking task."""
    qrels = release_data(release).qrels_of(task)
    if query_id not in qrels.query_ids:
        return _NO_IMAGES
    judged, relevant = qrels.of(query_id)
    return judged[relevant]


def query_to_label(release: Release, query: SnapshotQuery, user: Any) -> Query | None:
    """The query that a released one came from, if it was opened again, has a list, and the user may
    label it."""
    if not release_data(release).header.corpus_images:
        return None
    visible = queries_visible_to(user).filter(query_id=query.query_id, text=query.text)
    listed = visible.filter(current_list__frozen_at__isnull=False).first()
    return listed if listed is not None and not why_not(user, listed) else None


def shown_images(
    release: Release,
    user: Any,
    image_ids: Ids,
    *,
    ranks: Sequence[int | None],
    marks: list[str],
    to_label: Query | None,
) -> list[ShownImage]:
    """Images ready to be shown, with those of the corpus that are here."""
    ids = image_ids.tolist()
    here: dict[int, Image] = {}
    if release_data(release).header.corpus_images:
        here = images_visible_to(user).in_bulk(ids)
    listed = candidate_ranks(to_label, here) if to_label is not None else {}
    return [
        ShownImage(image_id, rank, mark, here.get(image_id), listed.get(image_id))
        for image_id, rank, mark in zip(ids, ranks, marks, strict=True)
    ]


def missed(relevant: Ids, ranking: Ids) -> tuple[Ids, list[int | None]]:
    """The relevant images that a ranking doesn't have among its first, with their ranks further
    down; images without a rank come last."""
    all_ranks = {image_id: rank for rank, image_id in enumerate(ranking.tolist(), start=1)}
    ranks = {image_id: all_ranks.get(image_id) for image_id in relevant.tolist()}
    lost = [image_id for image_id, rank in ranks.items() if rank is None or rank > FOUND_WITHIN]
    lost.sort(key=lambda image_id: (ranks[image_id] or np.inf, image_id))
    return np.array(lost, dtype=np.int64), [ranks[image_id] for image_id in lost]


def only_by(other: Ids, ranking: Ids, relevant: Ids) -> Ids:
    """Relevant images among the first of `other` but not of `ranking`, in the order of `other`."""
    first = other[:FOUND_WITHIN]
    return first[np.isin(first, relevant) & ~np.isin(first, ranking[:FOUND_WITHIN])]
