"""The baselines of a release: random order, every embedding model, and the best possible re-ranks.

One job a release makes them all, a query at a time. The results are in the database and on disk, so
a job cut short goes on where it was, and a repeated one makes only what is new.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from django.db import transaction
from django.utils import timezone

from core import storage
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create, job_item_error, job_retry
from evaluation.runs.corpus import RankedCorpus, ranked_corpus
from evaluation.runs.models import Run
from evaluation.runs.selectors import ReleaseData, release_data
from evaluation.runs.services import run_finish, run_store
from evaluation.runs.store import load_run, save_run
from evaluation.scoring.run_files import Ranking
from releases.models import Release
from retrieval.embedding.counts import embedded_models
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vectors
from retrieval.encoding.model_specs import ModelSpecError, parsed
from retrieval.ranking.batches import in_batches, vectors_at_once
from retrieval.ranking.selectors import corpus_counts, image_scores, rank_images_many

BASELINES_JOB: Final = "make_baselines"
#: How many images an embedding model's run has for a query of the full task.
DEPTH: Final = 1000
#: The share of the corpus that may have no embedding: images whose files can't be read. With more,
#: the model isn't done with the corpus, and its run would only look bad.
MISSING_AT_MOST: Final = 0.01

RANDOM_ABOUT: Final = "The exact expectation over all orders, not one that was drawn."


@dataclass(slots=True)
class _Progress:
    """Units done and given up, counted again in each slice from the stored results."""

    job: Job
    done: int
    failed: int

    def store(self, cursor: dict[str, Any] | None = None) -> None:
        """Bring the job's counts up to these, never back."""
        job_advance(
            job=self.job,
            done=max(self.done - self.job.done, 0),
            failed=max(self.failed - self.job.failed, 0),
            cursor=cursor,
        )


@dataclass(slots=True)
class _ModelRun:
    """One embedding model's run of one task, made query by query."""

    run: Run
    model: EmbeddingModel
    texts: dict[int, str]
    """What is still to be ranked."""
    rankings: dict[int, Ranking] = field(default_factory=dict)

    @property
    def partial(self) -> Path:
        """Where the rankings are until all are there."""
        return self.run.path.with_name(f".{self.run.pk}.partial.npz")


def baselines_begin(*, release: Release, created_by: Any = None) -> Job:
    """Have a release's baselines made by a job; the unfinished one if there is one, and one that
    failed last is continued.

    NoSnapshot: the release has nothing that could be scored on.
    """
    release_data(release)
    with transaction.atomic():
        # Of two requests, one waits and finds the other's job.
        Release.objects.select_for_update(of=("self",)).get(pk=release.pk)
        last = baselines_job(release)
        if last is not None and (last.state in Job.UNFINISHED or job_retry(job=last)):
            return last
        return job_create(
            kind=BASELINES_JOB,
            params={"release": release.pk},
            created_by=created_by,
            title=f"Baselines of {release}",
        )


def baselines_job(release: Release) -> Job | None:
    """The release's last job of this kind."""
    return Job.objects.filter(kind=BASELINES_JOB, params__release=release.pk).first()


def baselines_step(job: Job, deadline: float) -> bool:
    """Make baselines until `deadline` (of `time.monotonic`); True when all are there."""
    release = Release.objects.get(pk=job.params["release"])
    data = release_data(release)
    if "models" not in job.cursor:
        _plan(job, release, data)
    tasks = _tasks(data)
    progress = _Progress(job, done=job.cursor["settled"], failed=job.cursor["given_up"])
    for task in tasks:
        _score_random_order(release, task)
        progress.done += 1
    progress.store()
    for model in EmbeddingModel.objects.filter(pk__in=job.cursor["models"]).order_by("pk"):
        before = progress.done
        try:
            for task in tasks:
                if not _model_step(release, data, model, task, progress, deadline):
                    return False
        except ModelSpecError as error:
            units = sum(len(_texts(data, task)) for task in tasks)
            _give_up(progress, model, str(error), done=progress.done - before, units=units)
    for run in Run.objects.filter(
        release=release, task=Run.Task.FULL, kind=Run.Kind.UPLOAD, ready_at__isnull=False
    ):
        run_finish(run=run)
    return True


def _plan(job: Job, release: Release, data: ReleaseData) -> None:
    """Decide, once for the job, which models get a run (all, or the one that the job names), and
    store the total of its units.
    """
    tasks = _tasks(data)
    chosen = []
    models = embedded_models().order_by("pk")
    if "model" in job.params:
        models = models.filter(name=job.params["model"])
    before = {"settled": job.done, "given_up": job.failed}
    with transaction.atomic():
        for model in models if data.header.corpus_images else ():
            problem = _incomplete(release, model)
            if problem:
                job_item_error(job=job, item=model.name, message=problem)
            else:
                chosen.append(model.pk)
        total = len(tasks) + len(chosen) * sum(len(_texts(data, task)) for task in tasks)
        total += job.done + job.failed
        job_advance(job=job, total=total, cursor={**job.cursor, "models": chosen, **before})


def _incomplete(release: Release, model: EmbeddingModel) -> str:
    """Why a model has no run yet; empty if nothing is in the way."""
    counts = corpus_counts(model=model, **ranked_corpus(release)._asdict())
    if counts.unembedded <= MISSING_AT_MOST * (counts.embedded + counts.unembedded):
        return ""
    return (
        f"No embedding under it: {_images(counts.unembedded)} of the corpus. Embed them, then "
        "compute the baselines again."
    )


def _give_up(
    progress: _Progress, model: EmbeddingModel, message: str, *, done: int, units: int
) -> None:
    """Leave a model out of what is still to be done."""
    cursor = progress.job.cursor
    progress.failed += units - done
    with transaction.atomic():
        job_item_error(job=progress.job, item=model.name, message=message)
        progress.store(
            {
                **cursor,
                "models": [pk for pk in cursor["models"] if pk != model.pk],
                "settled": cursor["settled"] + done,
                "given_up": progress.failed,
            }
        )


def _tasks(data: ReleaseData) -> list[str]:
    """The tasks that baselines are made for."""
    tasks = []
    if data.header.corpus_images:
        tasks.append(Run.Task.FULL)
    if data.fixed:
        tasks.append(Run.Task.RERANK)
    return [str(task) for task in tasks]


def _texts(data: ReleaseData, task: str) -> dict[int, str]:
    ids = data.fixed if task == Run.Task.RERANK else data.queries
    return {query_id: data.queries[query_id].text for query_id in ids}


def _score_random_order(release: Release, task: str) -> None:
    """Score the random order of a task, if it isn't scored yet."""
    run, _ = Run.objects.get_or_create(
        release=release,
        task=task,
        kind=Run.Kind.RANDOM,
        defaults={
            "name": "Random order",
            "description": RANDOM_ABOUT,
            "published_at": timezone.now(),
            "val_queries": release.val_queries,
            "test_queries": release.test_queries,
        },
    )
    if not run.ready:
        run_finish(run=run)


def _model_step(
    release: Release,
    data: ReleaseData,
    model: EmbeddingModel,
    task: str,
    progress: _Progress,
    deadline: float,
) -> bool:
    """Rank queries under a model until `deadline`; True once its run is scored."""
    texts = _texts(data, task)
    run = Run.objects.filter(
        release=release, task=task, kind=Run.Kind.MODEL, embedding_model=model
    ).first()
    if run is None:
        run = _model_run(release, model, task, list(texts.values()))
    if not run.ready:
        made = _with_partial(_ModelRun(run=run, model=model, texts=texts))
        finished = _rank(made, release, data, deadline)
        if not finished:
            save_run(made.partial, made.rankings)
            progress.done += len(made.rankings)
            progress.store()
            return False
        run = run_store(run=run, rankings=made.rankings)
        storage.remove(made.partial)
    # Also of a run that is scored: its best possible re-ranks may be missing.
    run_finish(run=run)
    progress.done += len(texts)
    progress.store()
    return True


def _model_run(release: Release, model: EmbeddingModel, task: str, texts: Sequence[str]) -> Run:
    """The row of a model's run, with what the model says of itself. ModelSpecError: it can't be
    loaded, so there is none."""
    # With the vectors comes what the model says of itself.
    text_vectors(model, texts)
    model.refresh_from_db(fields=["parameters"])
    name = parsed(model.name).name
    # "<architecture>/<pretrained tag>" is there for everybody; files on this machine may not be.
    downloaded = name == model.name and "/" in model.name
    run, _ = Run.objects.get_or_create(
        release=release,
        task=task,
        kind=Run.Kind.MODEL,
        embedding_model=model,
        defaults={
            "name": name[:150],
            "description": _about(release, model),
            "parameters": model.millions_of_parameters,
            "training_data": name.rpartition("/")[2] if downloaded else "",
            "open_weights": True if downloaded else None,
            "published_at": timezone.now(),
        },
    )
    return run


def _with_partial(made: _ModelRun) -> _ModelRun:
    """The same with the rankings that an earlier slice left."""
    partial = storage.local_file(made.partial)
    if partial.is_file():
        made.rankings = load_run(partial)
        made.texts = {
            query_id: text for query_id, text in made.texts.items() if query_id not in made.rankings
        }
    return made


def _rank(made: _ModelRun, release: Release, data: ReleaseData, deadline: float) -> bool:
    """Rank until `deadline`, as many queries at once as one pass over the corpus serves."""
    corpus = ranked_corpus(release)
    queries = list(made.texts.items())
    for number, batch in enumerate(in_batches(queries, vectors_at_once(made.model))):
        if number and time.monotonic() >= deadline:
            return False
        for (query_id, _), rows in zip(batch, _rankings(made, batch, data, corpus), strict=True):
            made.rankings[query_id] = Ranking(
                image_ids=np.array([row[0] for row in rows], dtype=np.int64),
                scores=np.array([row[1] for row in rows], dtype=np.float64),
            )
    return True


def _rankings(
    made: _ModelRun, queries: Sequence[tuple[int, str]], data: ReleaseData, corpus: RankedCorpus
) -> list[list[tuple[int, float]]]:
    """(image id, score), best first, for each (query id, text)."""
    model = made.model
    vectors = text_vectors(model, [text for _, text in queries])
    if made.run.task == Run.Task.FULL:
        return rank_images_many(model=model, text_vectors=vectors, limit=DEPTH, **corpus._asdict())
    scored = (
        image_scores(model=model, text_vector=vector, image_ids=data.fixed[query_id].tolist())
        for (query_id, _), vector in zip(queries, vectors, strict=True)
    )
    return [sorted(scores.items(), key=lambda row: (-row[1], row[0])) for scores in scored]


def _about(release: Release, model: EmbeddingModel) -> str:
    """The description of an embedding model's run."""
    counts = corpus_counts(model=model, **ranked_corpus(release)._asdict())
    about = "Images by cosine similarity to the query's text, in exact order."
    if counts.unembedded:
        about += f" Without an embedding, and so missing: {_images(counts.unembedded)}."
    return about


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"
