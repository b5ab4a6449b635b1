"""Everything that changes runs: their rankings and scores, their cards, publishing and deleting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from core import storage
from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.services import job_advance, job_cancel, job_create, job_retry
from evaluation.runs.models import Run, RunScores
from evaluation.runs.selectors import ReleaseData, release_data
from evaluation.runs.store import load_run, save_run
from evaluation.scoring.evaluation import best_rerank, random_scores, score_run, scored_query_ids
from evaluation.scoring.measures import Measure
from evaluation.scoring.run_files import Ranking
from releases.models import Release

SCORE_JOB: Final = "score_run"
#: How many of a first stage's images the rows "best possible re-rank" reorder.
BEST_DEPTHS: Final = (50, 100)
#: The kinds of runs over the corpus that "best possible re-rank" rows are made of.
FIRST_STAGES: Final = (Run.Kind.UPLOAD, Run.Kind.MODEL, Run.Kind.FUSION)
#: Of parameters (millions) and costs (US dollars), as the database takes them.
LARGEST_NUMBER: Final = 1e9
#: The fields of the method card; nothing else of a published run ever changes.
CARD_FIELDS: Final = (
    "name",
    "link",
    "code",
    "description",
    "parameters",
    "training_data",
    "tuning",
    "open_weights",
    "cost",
)


def run_store(*, run: Run, rankings: Mapping[int, Ranking]) -> Run:
    """Store the rankings of a run that isn't scored yet, and count what is in them.

    Both are one transaction, so a run whose file could not be written never has its SHA-256.
    Conflict: the run is scored already.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("release").get(pk=run.pk)
        if run.ready:
            raise Conflict("The run is scored, so its ranking doesn't change any more.")
        for name, value in run_contents(run.release, rankings).items():
            setattr(run, name, value)
        run.sha256 = save_run(run.path, rankings)
        run.save(update_fields=["val_queries", "test_queries", "rows", "depth", "sha256"])
    return run


def run_score(*, run: Run, release: Release) -> RunScores:
    """Score a run on a release, its own or another version of the benchmark; stored once for each
    pair, and replaced by a repeat, which gives the same.

    Queries that the run doesn't hold score 0. A random order gets its exact expectation there, a
    best possible re-rank is made for that release's labels, and re-ranking counts only what is in
    that release's fixed lists. NoSnapshot, RunDamaged: nothing to score on, or no ranking.
    """
    data = release_data(release)
    values = run_values(run, data, data.measures)
    scores, _ = RunScores.objects.update_or_create(
        run=run,
        release=release,
        defaults={
            "query_ids": scored_query_ids(data.qrels_of(run.task)).tolist(),
            "measures": {key: array.tolist() for key, array in values.items()},
        },
    )
    return scores


def run_values(
    run: Run, data: ReleaseData, measures: Sequence[Measure]
) -> dict[str, npt.NDArray[np.float64]]:
    """A run's scores by a release's labels, as `run_score` says: of each measure's key a value for
    each scored query, ascending. RunDamaged: it has no ranking."""
    qrels = data.qrels_of(run.task)
    if run.kind == Run.Kind.RANDOM:
        rerank = run.task == Run.Task.RERANK
        sizes = qrels.sizes() if rerank else data.header.corpus_images
        return random_scores(qrels, sizes, measures)
    return score_run(_rankings(run, data), qrels, measures)


def run_score_elsewhere(*, run: Run, release: Release) -> RunScores:
    """Score a run and its best possible re-ranks on another version of the benchmark; the run's
    scores. NoSnapshot, RunDamaged: see `run_score`."""
    for best in _best_reranks(run):
        run_score(run=best, release=release)
    return run_score(run=run, release=release)


def rankings_on(run: Run, release: Release) -> dict[int, Ranking]:
    """A run's rankings as they are scored on a release. NoSnapshot, RunDamaged: see `run_score`."""
    return _rankings(run, release_data(release))


def _rankings(run: Run, data: ReleaseData) -> dict[int, Ranking]:
    if run.kind == Run.Kind.BEST and run.first_stage is not None:
        return best_rerank(load_run(run.first_stage.local_path), data.qrels, run.rerank_depth or 0)
    rankings = load_run(run.local_path)
    if run.task != Run.Task.RERANK:
        return rankings
    return {
        query_id: _within(rankings[query_id], data.fixed[query_id])
        for query_id in rankings
        if query_id in data.fixed
    }


def run_score_begin(
    *,
    run: Run,
    created_by: Any = None,
    publish: bool = False,
    upload: dict[str, str] | None = None,
    fusion: dict[str, Any] | None = None,
) -> Job:
    """Have a run scored by a job, which then publishes it if `publish` is set; a job that failed is
    retried. `upload` has the name and the split of a submitted file that the job reads
    first, `fusion` the runs that it fuses first (runs, method, normalization)."""
    if run.job is not None and (run.job.state in Job.UNFINISHED or job_retry(job=run.job)):
        return run.job
    run.job = job_create(
        kind=SCORE_JOB,
        params={"run": run.pk, "publish": publish, "upload": upload, "fusion": fusion},
        created_by=created_by,
        title=f"Score {run.name[:200]} on {run.release}",
    )
    run.save(update_fields=["job"])
    return run.job


def run_finish(*, run: Run, job: Job | None = None) -> None:
    """Score a run whose ranking is stored, and make the best possible re-ranks of it.

    Each step is one transaction with the job's progress; done again from any point, the outcome is
    the same.
    """
    is_first_stage = run.task == Run.Task.FULL and run.kind in FIRST_STAGES
    depths = BEST_DEPTHS if is_first_stage else ()
    if job is not None:
        job_advance(job=job, total=1 + len(depths))
    with transaction.atomic():
        locked = Run.objects.select_for_update(of=("self",)).select_related("release")
        held = locked.filter(pk=run.pk).first()
        if held is None:
            return
        if not held.ready:
            run_score(run=held, release=held.release)
            Run.objects.filter(pk=run.pk).update(ready_at=Now())
        _progress(job, 1)
    for number, depth in enumerate(depths, start=2):
        with transaction.atomic():
            _best_make(run, depth)
            _progress(job, number)


def run_card_update(*, run: Run, **fields: Any) -> Run:
    """Change fields of the method card (CARD_FIELDS), also of a published run.

    Raises ValidationError, with the fields named, for values that can't be.
    """
    unknown = sorted(set(fields) - set(CARD_FIELDS))
    if unknown:
        raise TypeError(f"not on the method card: {unknown}")
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
        for name, value in fields.items():
            setattr(run, name, value.strip() if isinstance(value, str) else value)
        card_validate(run)
        run.save(update_fields=list(fields))
    return run


def card_validate(run: Run) -> None:
    """Raise ValidationError, with the fields named, for a card that can't be."""
    errors: dict[str, Any] = {}
    try:
        run.clean_fields(exclude={field.name for field in run._meta.fields} - set(CARD_FIELDS))
    except ValidationError as error:
        errors = error.error_dict
    for name in ("name", "training_data"):
        # Also of those that can't be seen, with which one run could pass for another.
        if name not in errors and not getattr(run, name).isprintable():
            errors[name] = ["Use characters that can be printed, in one line."]
    for name in ("parameters", "cost"):
        value = getattr(run, name)
        if value is not None and name not in errors and not 0 <= value <= LARGEST_NUMBER:
            errors[name] = ["Write a number from 0 to 1,000,000,000."]
    if errors:
        raise ValidationError(errors)


@transaction.atomic
def run_publish(*, run: Run) -> Run:
    """Show a run to everybody, with its best possible re-ranks; a repeat changes nothing.

    Conflict: it isn't scored yet, or it re-ranks a run that is private, which it would name.
    """
    run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
    if not run.ready:
        raise Conflict("The run isn't scored yet; publish it when it is.")
    # Locked, so that it doesn't become private meanwhile.
    first = Run.objects.select_for_update(of=("self",)).filter(second_stages=run).first()
    if first is not None and not first.published:
        raise Conflict(f"It re-ranks “{first.name}”, which is private; publish that first.")
    family = Run.objects.filter(pk=run.pk) | _best_reranks(run)
    family.filter(published_at__isnull=True).update(published_at=Now())
    run.refresh_from_db()
    return run


@transaction.atomic
def run_unpublish(*, run: Run) -> Run:
    """Make a run private again, with its best possible re-ranks.

    Conflict: it is a baseline, or another published run re-ranks it.
    """
    run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
    if run.is_baseline:
        raise Conflict("Baselines are always public.")
    second = run.second_stages.exclude(kind=Run.Kind.BEST).filter(published_at__isnull=False)
    if second.exists():
        raise Conflict(f"The published run “{second[0].name}” re-ranks this one.")
    (Run.objects.filter(pk=run.pk) | _best_reranks(run)).update(published_at=None)
    run.refresh_from_db()
    return run


@transaction.atomic
def run_delete(*, run: Run) -> None:
    """Delete a private run, its scores, its best possible re-ranks and, once that is committed,
    their files. Submissions stay counted.

    Conflict: it is public, or another run re-ranks it.
    """
    run = Run.objects.select_for_update(of=("self",)).get(pk=run.pk)
    if run.is_baseline:
        raise Conflict("This run was computed from another one and is deleted with it.")
    if run.published:
        raise Conflict("A public run can't be deleted; an admin can make it private first.")
    second = run.second_stages.exclude(kind=Run.Kind.BEST).first()
    if second is not None:
        raise Conflict(f"The run “{second.name}” re-ranks this one; delete that first.")
    if run.job is not None:
        job_cancel(job=run.job)
    for deleted in [*_best_reranks(run), run]:
        for path in (deleted.path, deleted.upload):
            transaction.on_commit(partial(storage.remove, path), robust=True)
        deleted.delete()


def _best_make(run: Run, depth: int) -> None:
    """The best possible re-rank of a run, if it isn't made yet: row, ranking and scores."""
    held = Run.objects.select_for_update(of=("self",)).select_related("release").filter(pk=run.pk)
    first = held.first()
    if first is None:
        return
    best, _ = Run.objects.get_or_create(
        release=first.release,
        task=first.task,
        kind=Run.Kind.BEST,
        first_stage=first,
        rerank_depth=depth,
        defaults={
            "name": f"Best possible re-rank of the top {depth}",
            "published_at": first.published_at,
        },
    )
    if not best.ready:
        run_store(run=best, rankings=rankings_on(best, first.release))
        run_score(run=best, release=first.release)
        Run.objects.filter(pk=best.pk).update(ready_at=Now())


def _best_reranks(run: Run) -> QuerySet[Run]:
    return Run.objects.filter(first_stage=run, kind=Run.Kind.BEST)


def _progress(job: Job | None, reached: int) -> None:
    """Set the job's count to `reached`; a repeat changes nothing."""
    if job is not None:
        job_advance(job=job, done=reached - job.done)


def run_contents(release: Release, rankings: Mapping[int, Ranking]) -> dict[str, int]:
    """How many queries of each split, rows, and images of one query at most are in a run."""
    queries = release_data(release).queries
    sizes = [len(ranking.image_ids) for ranking in rankings.values()]
    splits = [queries[query_id].split for query_id in rankings]
    return {
        "val_queries": splits.count("val"),
        "test_queries": splits.count("test"),
        "rows": sum(sizes),
        "depth": max(sizes, default=0),
    }


def _within(ranking: Ranking, fixed: npt.NDArray[np.int64]) -> Ranking:
    inside = np.isin(ranking.image_ids, fixed)
    return Ranking(image_ids=ranking.image_ids[inside], scores=ranking.scores[inside])
