"""The page on which admins choose the model in use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.jobs.models import Job
from retrieval.embedding.choosing import has_gpu, models_listed, recommended_models
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.embedding_models import NotFetched, model_use
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.measuring import measure_job_create
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.model_specs import ModelSpecError, described_here, published_names


def _embed(name: str, by: Any) -> Job:
    """Also put the model to use, while the one in use has embedded nothing; the job does so with
    one that it has to fetch.
    """
    use = False
    if not has_embeddings(model_in_use()):
        try:
            model_use(name=name)
        except NotFetched:
            use = True
    return embedding_job_create(model_name=name, created_by=by, use=use)


_JOBS: dict[str, Callable[..., Job]] = {
    "measure": lambda name, by: measure_job_create(name=name, created_by=by),
    "embed": _embed,
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def models(request: HttpRequest) -> HttpResponse:
    """Show the models and what the one that is asked for is; measure it, use it, embed with it."""
    require_role(request.user, Role.ADMIN)
    name = str(request.POST.get("model", request.GET.get("model", ""))).strip()[:300]
    chosen, problem = None, ""
    try:
        action = request.POST.get("action", "")
        if name and action in _JOBS:
            return redirect("job", pk=_JOBS[action](name, request.user).pk)
        if name and action == "use":
            model_use(name=name)
            messages.success(request, f"{name} is in use now.")
            return redirect(reverse("models", query={"model": name}))
        chosen = described_here(name) if name else None
    except ModelSpecError as error:
        problem = str(error)
    listed, in_use = models_listed(), model_in_use()
    context: dict[str, Any] = {
        "models": listed,
        "in_use": in_use,
        "in_use_embedded": has_embeddings(in_use),
        "recommended": recommended_models(),
        "has_gpu": has_gpu(),
        "published": published_names(),
        "name": name,
        "chosen": chosen,
        "known": next((row for row in listed if row.model.name == name), None),
        "problem": problem,
    }
    return render(request, "retrieval/models.html", context)
