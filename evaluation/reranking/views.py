"""The page on which admins start two-stage runs and see their progress."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from core.access import Role, require_role
from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.services import job_cancel
from core.pages import refusal_in_form, refusal_in_message
from evaluation.reranking.estimate import Estimate, rerank_estimate
from evaluation.reranking.forms import RerankForm, ResumeForm
from evaluation.reranking.multimodal.answers import dollars
from evaluation.reranking.services import RERANK_JOB, rerank_begin, rerank_checked, rerank_resume
from evaluation.reranking.setup import EndpointSetup
from evaluation.runs.models import Run
from evaluation.runs.selectors import NoSnapshot, release_data
from releases.models import Release

RECENT = 10


@dataclass(frozen=True, slots=True)
class RunRow:
    """A two-stage run as the page shows it."""

    run: Run
    stopped: bool
    spent: str
    """What its own requests cost so far; empty without prices."""
    limit: str
    """What they may cost; empty without a limit."""
    resume: ResumeForm | None
    """For a multimodal run that stopped."""


@login_required
@require_http_methods(["GET", "POST"])
def rerank_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Choose a two-stage run, see its estimated cost, and start it."""
    require_role(request.user, Role.ADMIN)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    try:
        data = release_data(release)
    except NoSnapshot as error:
        return render(request, "evaluation/rerank.html", {"release": release, "lost": error})
    form = RerankForm(request.POST or None, release=release, fixed=len(data.fixed))
    context: dict[str, Any] = {"release": release, "form": form}
    if not data.header.corpus_images:
        context["lost"] = "The images of this release are not here, so nothing can re-rank them."
    elif request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            choice = rerank_checked(form.choice)
            # Start only what was estimated: the form may have changed since.
            seen = _mark(form)
            if request.POST.get("act") == "start" and request.POST.get("seen") == seen:
                run = rerank_begin(choice=choice, created_by=request.user)
                messages.success(request, f"“{run.name}” is being made.")
                return redirect("rerank-run", pk=pk)
            estimate = rerank_estimate(choice)
            context |= {"choice": choice, "seen": seen, **_estimate_context(estimate)}
    context["rows"] = _rows(release)
    context["has_key"] = bool(settings.MULTIMODAL_API_KEY)
    return render(request, "evaluation/rerank.html", context)


@login_required
@require_POST
def rerank_resume_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a run that stopped, with the limits that were typed."""
    run = _two_stage_run(request, pk)
    form = ResumeForm(request.POST)
    with refusal_in_message(request):
        if not form.is_valid():
            raise Conflict("The limits are not numbers from 0.")
        rerank_resume(
            run=run, max_cost=form.cleaned_data["max_cost"], rpm=form.cleaned_data["rpm"] or 0
        )
        messages.success(request, f"“{run.name}” is resumed.")
    return redirect("rerank-run", pk=run.release_id)


@login_required
@require_POST
def rerank_stop_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop a run that is at work; its answers stay."""
    run = _two_stage_run(request, pk)
    if run.job is not None and job_cancel(job=run.job):
        messages.success(request, f"“{run.name}” is stopped. Its answers are stored.")
    return redirect("rerank-run", pk=run.release_id)


def _two_stage_run(request: HttpRequest, pk: int) -> Run:
    require_role(request.user, Role.ADMIN)
    return get_object_or_404(
        Run.objects.select_related("job").filter(kind__startswith="rerank_"), pk=pk
    )


def _mark(form: RerankForm) -> str:
    """Identifies a filled form, without the name, which doesn't change the estimate."""
    values = [str(form.cleaned_data[name]) for name in form.fields if name != "name"]
    return hashlib.sha256("\n".join(values).encode()).hexdigest()


def _estimate_context(estimate: Estimate) -> dict[str, Any]:
    return {
        "estimate": estimate,
        "cost": "" if estimate.cost is None else dollars(estimate.cost),
        "hours": estimate.minutes and estimate.minutes / 60,
        "max_failures": settings.MULTIMODAL_MAX_FAILURES,
        "too_few": 100 * estimate.unavailable > settings.MULTIMODAL_MAX_FAILURES * estimate.pairs,
    }


def _rows(release: Release) -> list[RunRow]:
    """The two-stage runs of a release: first those at work or stopped, then ready ones."""
    runs = Run.objects.select_related("job", "first_stage").filter(
        release=release, kind__startswith="rerank_", job__kind=RERANK_JOB
    )
    at_work = list(runs.filter(ready_at__isnull=True).order_by("-pk"))
    ready = list(runs.filter(ready_at__isnull=False).order_by("-pk")[:RECENT])
    return [_row(run) for run in at_work + ready]


def _row(run: Run) -> RunRow:
    state = run.job.state if run.job is not None else ""
    stopped = not run.ready and state in (Job.State.FAILED, Job.State.CANCELED)
    if run.kind != Run.Kind.RERANK_MULTIMODAL:
        return RunRow(run, stopped, "", "", None)
    setup = EndpointSetup.of(run)
    spent = setup.prices.cost(setup.paid)
    limits = {"max_cost": setup.max_cost, "rpm": setup.rpm}
    return RunRow(
        run=run,
        stopped=stopped,
        spent="" if spent is None else dollars(spent),
        limit="" if setup.max_cost is None else dollars(setup.max_cost),
        resume=ResumeForm(initial=limits, auto_id=f"id_{run.pk}_%s") if stopped else None,
    )
