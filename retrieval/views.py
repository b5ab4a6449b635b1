"""Pages of the corpus: species and embeddings, flagged images, jobs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from retrieval.access import Role, require_role
from retrieval.address_choices import chosen, chosen_page
from retrieval.api.flag_serializers import FlagReviewSerializer
from retrieval.encoders import ModelSpecError
from retrieval.models import Job
from retrieval.selectors.corpus import corpus_counts, corpus_coverage
from retrieval.selectors.flags import flag_reviews, flagged_images, withdrawn_images
from retrieval.selectors.jobs import jobs_visible_to
from retrieval.selectors.species import species_listed, with_image_counts
from retrieval.services.embedding import embedding_job_create

SPECIES_PER_PAGE = 50
RECENT_JOBS = 8
FLAGS_AT_ONCE = 24


@login_required
@require_http_methods(["GET", "POST"])
def corpus(request: HttpRequest) -> HttpResponse:
    """What the corpus holds; admins start an embedding job here."""
    require_role(request.user, Role.ANNOTATOR)
    form_error = ""
    if request.method == "POST":
        require_role(request.user, Role.ADMIN)
        try:
            job = embedding_job_create(
                model_name=request.POST.get("model", "").strip(), created_by=request.user
            )
            return redirect("job", pk=job.pk)
        except ModelSpecError as error:
            form_error = str(error)
    species_text = request.GET.get("species", "").strip()[:100]
    pages = Paginator(species_listed(species_text), SPECIES_PER_PAGE)
    page = chosen_page(pages, request.GET)
    page.object_list = with_image_counts(page.object_list)
    context = {
        "counts": corpus_counts(),
        "coverage": corpus_coverage(),
        "species_text": species_text,
        "species_page": page,
        "jobs": jobs_visible_to(request.user)[:RECENT_JOBS],
        "default_model": request.POST.get("model") or settings.EMBEDDING_MODEL,
        "form_error": form_error,
    }
    return render(request, "retrieval/corpus.html", context)


@login_required
@require_safe
def flags(request: HttpRequest) -> HttpResponse:
    """Where reviewers decide about flagged images, and bring withdrawn ones back."""
    require_role(request.user, Role.REVIEWER)
    found = {"open": flagged_images(), "withdrawn": withdrawn_images()}
    state = chosen(request.GET, "state", found, "open")
    reviews = FlagReviewSerializer(
        flag_reviews(found[state][:FLAGS_AT_ONCE]), many=True, context={"request": request}
    )
    counts = {name: images.count() for name, images in found.items()}
    context = {
        "state": state,
        "counts": counts,
        "page": {
            "state": state,
            "count": counts[state],
            "limit": FLAGS_AT_ONCE,
            "results": reviews.data,
        },
    }
    return render(request, "retrieval/flags.html", context)


@login_required
@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """One job with its progress and what it could not do."""
    found: Job = get_object_or_404(jobs_visible_to(request.user), pk=pk)
    context = {"job": found, "errors": found.item_errors.order_by("pk")[:200]}
    return render(request, "retrieval/job.html", context)
