"""The page on which admins choose the model in use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.jobs.models import Job
from retrieval.embedding.choosing import failed_job, local_models, models_listed
from retrieval.embedding.counts import has_embeddings
from retrieval.embedding.embedding_models import model_use
from retrieval.embedding.in_use import model_in_use
from retrieval.embedding.machines import has_gpu, hub_reach
from retrieval.embedding.measuring import measure_job_create
from retrieval.embedding.recommending import built_in_model, recommended_models
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.loading import tokenizer_folder
from retrieval.encoding.model_specs import (
    CONFIG_NAME,
    WEIGHTS_NAMES,
    ModelSpecError,
    described_here,
    published_names,
)

_JOBS: dict[str, Callable[..., Job]] = {
    "measure": lambda name, by: measure_job_create(name=name, created_by=by),
    # The first model that works is put to use.
    "embed": lambda name, by: embedding_job_create(model_name=name, created_by=by, use=True),
}


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def models(request: HttpRequest) -> HttpResponse:
    """Show the models and what the one that is asked for is; measure it, use it, embed with it."""
    require_role(request.user, Role.ADMIN)
    in_use = model_in_use()
    embedded = has_embeddings(in_use)
    # Before anything is embedded, the one that would be first is shown.
    first = "" if embedded else in_use
    name = str(request.POST.get("model", request.GET.get("model", first))).strip()[:300]
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
    listed = models_listed()
    hub, built_in = hub_reach(), built_in_model()
    reached = hub is None or hub.reached
    is_local = name == built_in or Path(name).is_absolute()
    known = next((row for row in listed if row.model.name == name), None)
    context: dict[str, Any] = {
        "models": listed,
        "in_use": in_use,
        "in_use_embedded": embedded,
        "recommended": recommended_models(),
        "has_gpu": has_gpu(),
        "published": published_names(),
        "name": name,
        "chosen": chosen,
        "known": known,
        "known_embedded": known is not None and known.embedded,
        "problem": problem,
        "failed": failed_job(),
        "hub": hub,
        "unreachable": not reached and known is None and not is_local,
        "built_in": built_in,
        "local": local_models(),
        "models_dir": settings.MODELS_DIR,
        "tokenizers": tokenizer_folder("OWNER/NAME"),
        "config_name": CONFIG_NAME,
        "weights_names": WEIGHTS_NAMES,
    }
    return render(request, "retrieval/models.html", context)
