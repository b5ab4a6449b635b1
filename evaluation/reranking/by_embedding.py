"""The second stage of a run by an embedding model of the corpus."""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from django.db import transaction

from core import storage
from core.jobs.kinds import JobCanceled
from core.jobs.models import Job
from core.jobs.services import job_advance
from evaluation.reranking.order import BEHIND, reranked
from evaluation.reranking.pairs import first_stage_images, query_texts
from evaluation.runs.models import Run
from evaluation.runs.services import run_finish, run_store
from evaluation.runs.store import load_run, save_run
from evaluation.scoring.run_files import Ranking
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.text_vectors import text_vector
from retrieval.ranking.selectors import image_scores


def embedding_scores(
    *, model: EmbeddingModel, text: str, image_ids: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """The cosine similarity (n,) of a text to images (n,) as `rank_images` gives it; NaN for an
    image without an embedding. ModelSpecError: the model can't be loaded.
    """
    similarities = image_scores(
        model=model, text_vector=text_vector(model, text), image_ids=image_ids.tolist()
    )
    return np.array(
        [similarities.get(image_id, np.nan) for image_id in image_ids.tolist()], dtype=np.float64
    )


def embedding_rerank_step(run: Run, job: Job, deadline: float) -> bool:
    """Re-rank queries until `deadline`; True when the run is scored.

    The rankings so far are in the run's own file, which nobody reads before the run is ready.
    """
    model = run.embedding_model
    assert model is not None
    images = first_stage_images(release=run.release, first_stage=run.first_stage)
    texts = query_texts(run.release)
    depth = run.rerank_depth or 0
    if job.total is None:
        # The file may be of an earlier database, whose run had the same number.
        storage.remove(run.path)
        job_advance(job=job, total=sum(min(depth, len(ids)) for ids in images.values()))
    stored = storage.local_file(run.path)
    rankings = load_run(stored) if stored.is_file() else {}
    for query_id in sorted(images.keys() - rankings.keys()):
        head = images[query_id][:depth]
        scores = embedding_scores(model=model, text=texts[query_id], image_ids=head)
        rankings[query_id] = reranked(images[query_id], scores, depth=depth)
        if time.monotonic() >= deadline:
            break
    _store_part(run, job, rankings, depth)
    if len(rankings) < len(images):
        return False
    if not run.ready:
        run = run_store(run=run, rankings=rankings)
        run_finish(run=run)
    return True


def _store_part(run: Run, job: Job, rankings: dict[int, Ranking], depth: int) -> None:
    """Store the rankings so far and count them again, since a slice may have been cut short."""
    done = sum(min(depth, len(ranking.image_ids)) for ranking in rankings.values())
    unscored = done - sum(int((ranking.scores > BEHIND).sum()) for ranking in rankings.values())
    with transaction.atomic():
        locked_run = Run.objects.select_for_update(of=("self",)).filter(pk=run.pk).first()
        if locked_run is None:
            raise JobCanceled
        job_advance(job=job, done=done - job.done, result={"unscored": unscored})
        if not locked_run.ready:
            save_run(run.path, rankings)
            Run.objects.filter(pk=run.pk).update(endpoint={"unscored": unscored})
