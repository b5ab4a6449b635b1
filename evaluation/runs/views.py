"""Pages on which runs are submitted, described, published and deleted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, at_least, require_evaluator, require_role
from core.address_choices import chosen, chosen_id, chosen_ids
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.pages import refusal_in_form, refusal_in_message
from evaluation.runs.corpus import withdrawn_since
from evaluation.runs.forms import EvaluateForm, JudgeForm, MethodCardForm, SubmitForm
from evaluation.runs.fusions import fusible_runs, run_fuse
from evaluation.runs.model_evaluations import EVALUATION_JOB, evaluation_begin
from evaluation.runs.models import Run
from evaluation.runs.rows import run_rows
from evaluation.runs.selectors import (
    NoSnapshot,
    can_delete,
    can_edit,
    can_publish,
    can_unpublish,
    get_run_for,
    may_score_again,
    release_data,
    releases_to_score_on,
    require_allowed,
    scores_of_run,
)
from evaluation.runs.services import (
    run_card_update,
    run_delete,
    run_publish,
    run_score_begin,
    run_score_elsewhere,
    run_unpublish,
)
from evaluation.runs.submissions import allowance_of, run_submit
from evaluation.runs.unjudged import MOST, unjudged_request
from evaluation.scoring.fusion import METHODS, NORMALIZATIONS
from releases.formats.writing import counted
from releases.models import Release

_NOT_PUBLISHED: Final = (
    "This run is public already, not scored yet, or too late: the board is closed."
)
#: Of evaluations of models, on their page.
LATEST_JOBS: Final = 8


@login_required
@require_http_methods(["GET", "POST"])
def submit_run(request: HttpRequest, pk: int) -> HttpResponse:
    """Upload a run for a release."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    try:
        data = release_data(release)
    except NoSnapshot as error:
        return render(request, "evaluation/submit_run.html", {"release": release, "lost": error})
    form = SubmitForm(
        request.POST or None, request.FILES or None, release=release, rerank=bool(data.fixed)
    )
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            run = _submitted(request, release, form)
            messages.success(
                request, f"“{run.name}” is taken in. It is checked and scored now; only you see it."
            )
            return redirect("run", pk=run.pk)
    context = {
        "release": release,
        "form": form,
        "allowance": allowance_of(request.user),
        "fit": len(data.fixed),
        "withdrawn": withdrawn_since(release),
        "max_bytes": settings.RUN_MAX_BYTES,
    }
    return render(request, "evaluation/submit_run.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def evaluate_model(request: HttpRequest, pk: int) -> HttpResponse:
    """Have a model embed the corpus, and be ranked and scored on a release (reviewers)."""
    require_role(request.user, Role.REVIEWER)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    form = EvaluateForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            name = form.cleaned_data["model"]
            job = evaluation_begin(release=release, model_name=name, created_by=request.user)
            return redirect("job", pk=job.pk)
    jobs = Job.objects.filter(kind=EVALUATION_JOB, params__release=release.pk)
    context = {
        "release": release,
        "form": form,
        "jobs": jobs_visible_to(request.user).filter(pk__in=jobs)[:LATEST_JOBS],
    }
    return render(request, "evaluation/evaluate_model.html", context)


def _submitted(request: HttpRequest, release: Release, form: SubmitForm) -> Run:
    upload = form.cleaned_data["file"]
    return run_submit(
        release=release,
        owner=request.user,
        file=upload,
        file_name=upload.name,
        task=form.cleaned_data["task"],
        split=form.cleaned_data["split"],
        card=form.card,
    )


@login_required
@require_POST
def fuse_runs(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a private run that fuses chosen ones of a release."""
    require_evaluator(request.user)
    release = get_object_or_404(Release.objects.made(), pk=pk)
    numbers = chosen_ids(request.POST, "run")
    by_id = fusible_runs(release, request.user).select_related("release").in_bulk(numbers)
    with refusal_in_message(request):
        run = run_fuse(
            runs=[by_id[number] for number in numbers if number in by_id],
            owner=request.user,
            method=chosen(request.POST, "method", METHODS, "rrf"),
            normalization=chosen(request.POST, "normalization", NORMALIZATIONS, "min-max"),
        )
        messages.success(request, f"“{run.name}” is made and scored now; only you see it.")
        return redirect("run", pk=run.pk)
    return redirect("leaderboard-analysis", pk=pk)


@login_required
@require_safe
def my_runs(request: HttpRequest) -> HttpResponse:
    """The user's own runs; for admins, on demand, everybody's."""
    require_evaluator(request.user)
    of = chosen(request.GET, "of", ("own", "all"))
    everybody = of == "all" and at_least(request.user, Role.ADMIN)
    context = {
        "rows": run_rows(request.user, everybody=everybody),
        "everybody": everybody,
        "release": Release.objects.made().first(),
        "allowance": allowance_of(request.user),
    }
    return render(request, "evaluation/my_runs.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def run_card(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a run's method card."""
    run = get_run_for(request.user, pk)
    require_allowed(can_edit(request.user, run))
    form = MethodCardForm(request.POST or None, instance=get_run_for(request.user, pk))
    if request.method == "POST" and form.is_valid():
        with refusal_in_form(form):
            run_card_update(run=run, **form.card)
            messages.success(request, "Saved.")
            return redirect("run", pk=pk)
    context = {
        "run": run,
        "form": form,
        "may_publish": can_publish(request.user, run),
        "may_unpublish": can_unpublish(request.user, run),
        "may_delete": can_delete(request.user, run),
        "may_score_again": may_score_again(run),
        "others": releases_to_score_on(request.user, run),
        "scored": {score.release_id for score in scores_of_run(run)},
    }
    return render(request, "evaluation/run_card.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def publish(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a run to everybody, once that is confirmed."""
    run = get_run_for(request.user, pk)
    require_allowed(can_edit(request.user, run))
    if not can_publish(request.user, run):
        messages.error(request, _NOT_PUBLISHED)
        return redirect("run", pk=pk)
    return _confirmed(request, run, "publish", run_publish, "The run is public now.")


@login_required
@require_http_methods(["GET", "POST"])
def unpublish(request: HttpRequest, pk: int) -> HttpResponse:
    """Make a run private again, once that is confirmed (admins)."""
    run = get_run_for(request.user, pk)
    require_allowed(can_unpublish(request.user, run))
    return _confirmed(request, run, "unpublish", run_unpublish, "The run is private now.")


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a private run, once that is confirmed."""
    run = get_run_for(request.user, pk)
    require_allowed(can_delete(request.user, run))
    return _confirmed(request, run, "delete", run_delete, f"“{run.name}” is deleted.")


@login_required
@require_POST
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """Have the first images of a run that nobody has judged judged (reviewers)."""
    require_role(request.user, Role.REVIEWER)
    run = get_run_for(request.user, pk)
    form = JudgeForm(request.POST)
    if not form.is_valid():
        messages.error(request, f"Choose a number of images from 1 to {MOST}.")
        return redirect("run", pk=pk)
    with refusal_in_message(request):
        images, queries = unjudged_request(
            run=run, depth=form.cleaned_data["depth"], by=request.user
        )
        new = f"{counted(images, 'image', 'images')} of {counted(queries, 'query', 'queries')}"
        waits = "waits for annotators now" if images == 1 else "wait for annotators now"
        messages.success(request, f"{new} {waits}." if images else "Nothing new is to be judged.")
    return redirect("run", pk=pk)


@login_required
@require_POST
def score(request: HttpRequest, pk: int) -> HttpResponse:
    """Score a run on another release of its benchmark, or again where that failed."""
    run = get_run_for(request.user, pk)
    require_evaluator(request.user)
    number = chosen_id(request.POST, "release")
    with refusal_in_message(request):
        if number is not None:
            others = releases_to_score_on(request.user, run)
            other = next((release for release in others if release.pk == number), None)
            if other is None:
                raise Http404("There is no such version that you may score the run on.")
            run_score_elsewhere(run=run, release=other)
            messages.success(request, f"Scored on {other}.")
        elif can_edit(request.user, run) and may_score_again(run):
            run_score_begin(run=run, created_by=request.user)
    return redirect("run", pk=pk)


def _confirmed(
    request: HttpRequest, run: Run, act: str, do: Callable[..., object], done: str
) -> HttpResponse:
    """Ask, and after the answer do it."""
    if request.method == "POST":
        with refusal_in_message(request):
            do(run=run)
            messages.success(request, done)
            if act == "delete":
                return redirect("my-runs")
        return redirect("run", pk=run.pk)
    return render(request, "evaluation/run_confirm.html", {"run": run, "act": act})
