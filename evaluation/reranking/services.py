"""Two-stage runs: starting them, resuming them after a stop, and the job's work on them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from core.errors import Conflict
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_create, job_retry
from evaluation.reranking.multimodal.client import BadAddress, base_address
from evaluation.reranking.multimodal.prompt import checked_template
from evaluation.reranking.pairs import first_stage_images, first_stages
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot, release_data
from evaluation.runs.store import RunDamaged
from releases.models import Release
from retrieval.embedding.models import EmbeddingModel

RERANK_JOB: Final = "rerank_run"
MAX_NAME: Final = 150
MAX_PRICE: Final = 1e6
MAX_RPM: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class RerankChoice:
    """The choice of a two-stage run, with exactly one of the two kinds of second stage."""

    release: Release
    first_stage: Run | None
    """None for the release's fixed lists, in the task of re-ranking."""
    depth: int
    embedding_model: EmbeddingModel | None = None
    endpoint: EndpointSetup | None = None
    name: str = ""
    """Empty for a name made from the other fields."""

    @property
    def task(self) -> str:
        """A value of Run.Task."""
        return str(Run.Task.FULL if self.first_stage is not None else Run.Task.RERANK)

    @property
    def second_name(self) -> str:
        """The name of the second stage's model."""
        if self.embedding_model is not None:
            return self.embedding_model.name
        return self.endpoint.model if self.endpoint is not None else ""

    @property
    def run_name(self) -> str:
        """The given name, or a name made from both stages and the depth."""
        if self.name.strip():
            return self.name.strip()
        first = self.first_stage.name if self.first_stage is not None else "fixed lists"
        end = f" → {self.second_name[:60]} (top {self.depth})"
        return first[: MAX_NAME - len(end)] + end


def rerank_checked(choice: RerankChoice) -> RerankChoice:
    """The choice with its address normalized.

    Raises ValidationError, with the field's name, for what can't be re-ranked.
    """
    _check_first_stage(choice)
    if not 1 <= choice.depth <= settings.RERANK_MAX_DEPTH:
        raise ValidationError(
            {"depth": f"Choose a depth from 1 to {settings.RERANK_MAX_DEPTH:,} (RERANK_MAX_DEPTH)."}
        )
    if len(choice.name.strip()) > MAX_NAME or not choice.name.isprintable():
        raise ValidationError(
            {"name": f"Choose a name of at most {MAX_NAME} characters that can be printed."}
        )
    if choice.endpoint is None:
        if choice.embedding_model is None:
            raise ValidationError({"kind": "Choose an embedding model or a multimodal model."})
        return choice
    if choice.embedding_model is not None:
        raise ValidationError({"kind": "Choose one second stage, not two."})
    return replace(choice, endpoint=checked_setup(choice.endpoint))


def rerank_begin(*, choice: RerankChoice, created_by: Any = None) -> Run:
    """Create a two-stage run and its job.

    The same choice again resumes a run that stopped, with the new limits and prices, or returns the
    run that is at work. Raises ValidationError for what can't be re-ranked, and if the choice's run
    is ready already.
    """
    choice = rerank_checked(choice)
    with transaction.atomic():
        # If two requests come at once, the second waits and uses the first one's run.
        Release.objects.select_for_update(of=("self",)).get(pk=choice.release.pk)
        same = _same(choice)
        if same is None:
            return _create(choice, created_by)
        if same.ready:
            raise ValidationError(
                {"name": f"Run {same.pk} is ready with this choice; choose another name."}
            )
        if choice.endpoint is not None:
            _set_limits(same, choice.endpoint)
        _resume(same)
        return same


def rerank_resume(
    *,
    run: Run,
    max_cost: float | None = None,
    rpm: int = 0,
) -> Run:
    """Resume a run that stopped, failed or was canceled, with other limits.

    Both limits apply to multimodal models only: `max_cost` in US dollars for the whole run, None
    for no limit; `rpm` in requests per minute, 0 for no limit. Raises ValidationError for
    impossible limits; Conflict for a run that is at work or ready, or isn't a two-stage run.
    """
    with transaction.atomic():
        run = Run.objects.select_for_update(of=("self",)).select_related("job").get(pk=run.pk)
        if run.kind == Run.Kind.RERANK_MULTIMODAL:
            setup = replace(EndpointSetup.of(run), rpm=rpm, max_cost=max_cost)
            _set_limits(run, checked_setup(setup))
        if run.ready or not _resume(run):
            raise Conflict("Only a two-stage run that stopped can be resumed.")
    return run


def rerank_step(job: Job, deadline: float) -> bool:
    """One slice of a two-stage run, of either kind."""
    run = (
        Run.objects.select_related("release", "first_stage", "embedding_model")
        .filter(pk=job.params["run"])
        .first()
    )
    if run is None:
        raise JobFailed("The run was deleted.")
    # Imported here since web processes neither load models nor talk to servers.
    if run.kind == Run.Kind.RERANK_EMBEDDING:
        from evaluation.reranking.by_embedding import embedding_rerank_step

        return embedding_rerank_step(run, job, deadline)
    from evaluation.reranking.by_multimodal import multimodal_rerank_step

    return multimodal_rerank_step(run, job, deadline)


def _check_first_stage(choice: RerankChoice) -> None:
    first = choice.first_stage
    if first is not None and not first_stages(choice.release).filter(pk=first.pk).exists():
        raise ValidationError(
            {"first_stage": "Choose a scored run of this release's full ranking task."}
        )
    try:
        if not release_data(choice.release).header.corpus_images:
            raise ValidationError({"first_stage": "The images of this release are not here."})
        images = first_stage_images(release=choice.release, first_stage=first)
    except (NoSnapshot, RunDamaged) as error:
        raise ValidationError({"first_stage": str(error)}) from error
    if not images:
        raise ValidationError(
            {
                "first_stage": "This release has no fixed lists that are fit for re-ranking."
                if first is None
                else "This run holds no query of the release."
            }
        )


def checked_setup(setup: EndpointSetup) -> EndpointSetup:
    """The setup with its address normalized, and images in the present size. Raises
    ValidationError, with the field's name."""
    try:
        address = base_address(setup.base_url)
    except BadAddress as error:
        raise ValidationError({"endpoint": str(error)}) from error
    model = setup.model.strip()
    if not model or len(model) > 200 or not model.isprintable():
        raise ValidationError({"api_model": "Write the model's name as the server knows it."})
    try:
        prompt = checked_template(setup.prompt)
    except ValueError as error:
        raise ValidationError({"prompt": str(error)}) from error
    for field, price in (("price_in", setup.prices.input), ("price_out", setup.prices.output)):
        # Also refuses what is not a number.
        if price is not None and not 0 <= price <= MAX_PRICE:
            raise ValidationError({field: "Write US dollars for a million tokens, 0 or more."})
    if (setup.prices.input is None) != (setup.prices.output is None):
        raise ValidationError({"price_out": "Write both prices, or neither."})
    if setup.max_cost is not None:
        if not 0 < setup.max_cost <= 1e9:
            raise ValidationError({"max_cost": "Write US dollars, more than 0."})
        if setup.prices.input is None:
            raise ValidationError({"max_cost": "A cost limit needs both prices."})
    if not 0 <= setup.rpm <= MAX_RPM:
        raise ValidationError({"rpm": f"Write a number from 0, no limit, to {MAX_RPM:,}."})
    return replace(
        setup,
        base_url=address,
        model=model,
        prompt=prompt,
        max_side=settings.MULTIMODAL_MAX_SIDE,
    )


def _same(choice: RerankChoice) -> Run | None:
    """The run of the same choice and name."""
    runs = Run.objects.filter(
        release=choice.release,
        task=choice.task,
        first_stage=choice.first_stage,
        rerank_depth=choice.depth,
        name=choice.run_name,
        kind__in=[Run.Kind.RERANK_EMBEDDING, Run.Kind.RERANK_MULTIMODAL],
        embedding_model=choice.embedding_model,
    )
    if choice.endpoint is not None:
        runs = runs.filter(
            endpoint__base_url=choice.endpoint.base_url,
            endpoint__model=choice.endpoint.model,
            endpoint__prompt=choice.endpoint.prompt,
        )
    return runs.select_for_update(of=("self",)).select_related("job").first()


def _create(choice: RerankChoice, created_by: Any) -> Run:
    endpoint = choice.endpoint
    run = Run(
        release=choice.release,
        task=choice.task,
        kind=Run.Kind.RERANK_EMBEDDING if endpoint is None else Run.Kind.RERANK_MULTIMODAL,
        name=choice.run_name,
        owner=created_by,
        description=_about(choice),
        embedding_model=choice.embedding_model,
        first_stage=choice.first_stage,
        rerank_depth=choice.depth,
        endpoint=endpoint.as_json() if endpoint is not None else {},
    )
    run.full_clean(validate_unique=False, validate_constraints=False)
    run.save()
    run.job = job_create(
        kind=RERANK_JOB,
        params={"run": run.pk},
        created_by=created_by,
        title=f"Re-rank: {run.name}",
    )
    run.save(update_fields=["job"])
    return run


def _about(choice: RerankChoice) -> str:
    first = choice.first_stage.name if choice.first_stage is not None else "the fixed list"
    how = (
        "by cosine similarity under"
        if choice.endpoint is None
        else "by the probability of yes against no in the answers of"
    )
    return f"The first {choice.depth} images of {first}, re-ranked {how} {choice.second_name}."


def _set_limits(run: Run, setup: EndpointSetup) -> None:
    if run.job is not None and run.job.state in Job.UNFINISHED:
        return
    # A run sends all images in the same size, even after a change of the setting.
    preserved = {name: run.endpoint[name] for name in ("paid", "max_side")}
    run.endpoint = {**setup.as_json(), **preserved}
    run.save(update_fields=["endpoint"])


def _resume(run: Run) -> bool:
    return run.job is not None and job_retry(job=run.job)
