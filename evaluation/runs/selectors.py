"""What runs are scored on, which runs a user sees, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from django.core.exceptions import PermissionDenied
from django.db.models import Q, QuerySet
from django.http import Http404

from core import storage
from core.access import Role, at_least, is_evaluator
from core.errors import Conflict
from core.jobs.models import Job
from evaluation.runs.models import Run, RunScores
from evaluation.scoring.evaluation import rerank_qrels, rerankable_queries
from evaluation.scoring.hidden_labels import HALVES, PRIVATE, PUBLIC, public_half
from evaluation.scoring.measures import DEFAULT_MEASURES, Measure
from releases.access import labels_visible_to, other_versions
from releases.models import Release
from releases.snapshot.qrels import Qrels
from releases.snapshot.snapshot import Header, Snapshot, SnapshotQuery

#: Releases whose judged pairs a process remembers; INQUIRE's take 3 MB.
REMEMBERED: Final = 8


class NoSnapshot(Conflict):
    """A release has nothing that runs could be scored on; the text says why."""


@dataclass(frozen=True, slots=True)
class ReleaseData:
    """The parts of a release that scoring needs; never changed."""

    header: Header
    queries: dict[int, SnapshotQuery]
    qrels: Qrels
    fixed: dict[int, npt.NDArray[np.int64]]
    """The fixed list of each query that is fit for re-ranking, best first."""
    fixed_qrels: Qrels
    """The judged pairs within those lists."""

    @property
    def measures(self) -> list[Measure]:
        """The measures that runs are scored by; without those of how much was judged where the
        release doesn't say."""
        known = self.header.negatives_known
        return [measure for measure in DEFAULT_MEASURES if known or not measure.kind.needs_judged]

    def qrels_of(self, task: str) -> Qrels:
        """The judged pairs that runs of a task are scored on."""
        return self.fixed_qrels if task == Run.Task.RERANK else self.qrels


def release_data(release: Release) -> ReleaseData:
    """Everything of a release that scoring reads; read once, since releases never change.

    NoSnapshot: it isn't made yet, or its files are lost.
    """
    if not release.files_ready:
        raise NoSnapshot(f"{release} is not made yet.")
    try:
        return _release_data(str(release.snapshot_directory))
    except FileNotFoundError:
        raise NoSnapshot(
            f"{release} has no snapshot, so that no run can be scored on it: its files are lost. "
            "Restore them from a backup, or make a new version."
        ) from None


def queries_in(release: Release, split: str) -> frozenset[int]:
    """The queries of "val", "test" or one of HALVES in a release. NoSnapshot: see
    `release_data`."""
    queries = release_data(release).queries
    whole = "test" if split in HALVES else split
    held = frozenset(query_id for query_id in queries if queries[query_id].split == whole)
    if split == whole:
        return held
    public = public_half(release.halves_secret, held)
    return public if split == PUBLIC else held - public


def summarized_splits(release: Release) -> tuple[str, ...]:
    """What those who don't see the labels of a release's test split see means of: "test", or where
    it has halves the public one, and once the board is closed also the private one."""
    if not release.has_halves:
        return ("test",)
    return (PRIVATE, PUBLIC) if release.board_closed_at else (PUBLIC,)


def runs_visible_to(user: Any) -> QuerySet[Run]:
    """The runs that exist for the user: published ones and their own; for admins all, for
    annotators none, since they label the corpus that is ranked.

    The best possible re-rank of a run goes with that run.
    """
    runs = Run.objects.all()
    if at_least(user, Role.ADMIN):
        return runs
    if not is_evaluator(user):
        return runs.none()
    return runs.filter(
        Q(published_at__isnull=False)
        | Q(owner=user.pk)
        | Q(kind=Run.Kind.BEST, first_stage__owner=user.pk)
    )


def get_run_for(user: Any, pk: int) -> Run:
    """The run with its release, owner and job, or Http404 for one that doesn't exist for the
    user."""
    related = ("release", "owner", "job", "embedding_model", "first_stage")
    run = runs_visible_to(user).select_related(*related).filter(pk=pk).first()
    if run is None:
        raise Http404("There is no such run.")
    return run


def scores_of_run(run: Run) -> list[RunScores]:
    """A run's scores on every release that it was scored on, its own first."""
    scores = list(run.scores.select_related("release").order_by("release_id"))
    return sorted(scores, key=lambda score: score.release_id != run.release_id)


def scores_visible_to(user: Any, run: Run) -> list[RunScores]:
    """Those of a run's scores that the user may see something of, its own release's first.

    On another version only where that doesn't hide its test labels from the user: the difference of
    two versions shows which labels changed.
    """
    return [
        score
        for score in scores_of_run(run)
        if score.release_id == run.release_id or labels_visible_to(user, score.release, "test")
    ]


@dataclass(frozen=True, slots=True)
class QueryScores:
    """A run's scores of n queries on a release."""

    release_id: int
    query_ids: list[int]
    """(n,) ascending."""
    measures: dict[str, list[float]]
    """Measure key -> (n,)."""


def query_scores_for(user: Any, scores: RunScores) -> QueryScores:
    """The scores of those queries whose labels the user may see. NoSnapshot: see `release_data`."""
    queries = release_data(scores.release).queries
    places = [
        place
        for place, query_id in enumerate(scores.query_ids)
        if labels_visible_to(user, scores.release, queries[query_id].split)
    ]
    return QueryScores(
        release_id=scores.release_id,
        query_ids=[scores.query_ids[place] for place in places],
        measures={
            key: [values[place] for place in places] for key, values in scores.measures.items()
        },
    )


def releases_to_score_on(user: Any, run: Run) -> list[Release]:
    """Other made versions of the run's benchmark whose test labels the user may see, newest first;
    none for a benchmark's only one."""
    return other_versions(user, run.release, "test")


def can_edit(user: Any, run: Run) -> bool:
    """Whether the user may change a run's method card: its owner, while they may submit, and
    admins."""
    return at_least(user, Role.ADMIN) or (is_evaluator(user) and run.owner_id == user.pk)


def can_publish(user: Any, run: Run) -> bool:
    """Whether the user may publish the run now: private, scored, and theirs. With test queries
    not once the board is closed, since its owner sees the private half."""
    late = bool(run.test_queries and run.release.board_closed_at)
    may = run.ready and not run.published and not run.is_baseline and not late
    return may and can_edit(user, run)


def can_unpublish(user: Any, run: Run) -> bool:
    """Whether the user may make the run private again: admins alone."""
    return run.published and not run.is_baseline and at_least(user, Role.ADMIN)


def can_delete(user: Any, run: Run) -> bool:
    """Whether the user may delete the run: a private one that is theirs, or as admin any private
    one.
    """
    return not run.published and not run.is_baseline and can_edit(user, run)


def require_allowed(allowed: bool) -> None:
    """PermissionDenied unless the user may do what was asked, see `can_edit` and the others."""
    if not allowed:
        raise PermissionDenied("Your role, or whose run it is, doesn't allow this.")


def may_score_again(run: Run) -> bool:
    """Whether a run has its ranking, or the submitted file with the job that knows how to read it,
    and nothing scores it: its job failed, or is gone."""
    if run.ready or (run.job is not None and run.job.state in Job.UNFINISHED):
        return False
    return bool(run.sha256) or (run.job is not None and storage.exists(run.upload))


@lru_cache(maxsize=REMEMBERED)
def _release_data(directory: str) -> ReleaseData:
    return read_release_data(Snapshot(Path(directory)))


def read_release_data(snapshot: Snapshot) -> ReleaseData:
    """What scoring needs of a release, from its snapshot."""
    qrels = snapshot.qrels()
    every = _fixed(snapshot)
    fixed = {query_id: every[query_id] for query_id in rerankable_queries(every, qrels)}
    return ReleaseData(
        header=snapshot.header,
        queries=snapshot.queries,
        qrels=qrels,
        fixed=fixed,
        fixed_qrels=rerank_qrels(qrels, fixed),
    )


def _fixed(snapshot: Snapshot) -> dict[int, npt.NDArray[np.int64]]:
    """All fixed lists of a snapshot, fit or not."""
    table = pq.read_table(snapshot.path("fixed"), columns=["query_id", "image_id"])
    query_ids, image_ids = (table[name].to_numpy() for name in ("query_id", "image_id"))
    queries, begins = np.unique(query_ids, return_index=True)
    edges = [*begins.tolist(), len(image_ids)]
    return {
        query_id: image_ids[edges[number] : edges[number + 1]]
        for number, query_id in enumerate(queries.tolist())
    }
