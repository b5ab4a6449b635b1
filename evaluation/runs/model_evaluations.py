"""Evaluating a model: one job embeds the corpus by it, and ranks and scores it on a release."""

from __future__ import annotations

from typing import Any, Final

from core.access import Role, at_least
from core.errors import Conflict
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_get_or_create
from evaluation.runs.baselines import baselines_step
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel
from retrieval.embedding.services import embedding_step
from retrieval.encoding.model_specs import described_here, parsed, require_among_models

EVALUATION_JOB: Final = "evaluate_model"


def evaluation_begin(*, release: Release, model_name: str, created_by: Any = None) -> Job:
    """Have a model evaluated on a release, as a baseline of it; the unfinished job if there is one.

    `model_name` is as the setting EMBEDDING_MODEL takes it; who is no admin names a model that is
    known here already, or files below MODELS_DIR. ModelSpecError: it names no model, as far as that
    is known without a connection: the job says what the hub tells. NoSnapshot, Conflict: nothing to
    score on, or no image of the release is here.
    """
    if not EmbeddingModel.objects.filter(name=model_name).exists():
        if created_by is not None and not at_least(created_by, Role.ADMIN):
            require_among_models(model_name)
        described_here(model_name)
    if not release_data(release).header.corpus_images:
        raise Conflict(f"The images of {release} aren't here, so no model can rank them.")
    return job_get_or_create(
        kind=EVALUATION_JOB,
        params={"release": release.pk, "model": model_name},
        created_by=created_by,
        title=f"Evaluate {parsed(model_name).name} on {release}",
    )


def evaluation_step(job: Job, deadline: float) -> bool:
    """Embed what the model hasn't embedded, then make and score its runs, until `deadline`; True
    when they are scored. Killed in either part, it goes on there.

    JobFailed: it can't embed the corpus. NoSnapshot, RunDamaged: there is nothing to score on.
    """
    if "models" not in job.cursor and not embedding_step(job, deadline):
        return False
    if not baselines_step(job, deadline):
        return False
    model_name = job.params["model"]
    runs = Run.objects.filter(release=job.params["release"], kind=Run.Kind.MODEL)
    if not runs.filter(embedding_model__name=model_name, ready_at__isnull=False).exists():
        problem = job.item_errors.filter(item=model_name).first()
        raise JobFailed(problem.message if problem else "The model has embedded no image.")
    return True
