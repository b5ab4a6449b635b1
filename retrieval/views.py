"""The page of the corpus: species, embeddings and jobs."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.address_choices import chosen_page
from core.jobs.selectors import jobs_visible_to
from core.registries import LinkPlace, links
from retrieval.corpus.selectors import corpus_counts, datasets
from retrieval.embedding.counts import corpus_coverage
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.species.selectors import species_by_name, with_image_counts

SPECIES_PER_PAGE = 50
RECENT_JOBS = 8


@login_required
@require_http_methods(["GET", "POST"])
def corpus(request: HttpRequest) -> HttpResponse:
    """Show the corpus; admins can start an embedding job."""
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
    pages = Paginator(species_by_name(species_text), SPECIES_PER_PAGE)
    page = chosen_page(pages, request.GET)
    page.object_list = with_image_counts(page.object_list)
    context = {
        "links": links(LinkPlace.CORPUS),
        "counts": corpus_counts(),
        "datasets": datasets(),
        "coverage": corpus_coverage(),
        "species_text": species_text,
        "species_page": page,
        "jobs": jobs_visible_to(request.user)[:RECENT_JOBS],
        "default_model": request.POST.get("model") or settings.EMBEDDING_MODEL,
        "form_error": form_error,
    }
    return render(request, "retrieval/corpus.html", context)
