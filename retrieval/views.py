"""The page of the corpus: species, embeddings and the jobs at work."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from core.access import Role, require_role
from core.address_choices import chosen_page
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.registries import LinkPlace, links
from retrieval.corpus.selectors import corpus_counts, datasets
from retrieval.embedding.counts import corpus_coverage
from retrieval.species.selectors import species_by_name, with_image_counts

SPECIES_PER_PAGE = 50
MOST_JOBS = 8


@login_required
@require_safe
def corpus(request: HttpRequest) -> HttpResponse:
    """Show the corpus."""
    require_role(request.user, Role.ANNOTATOR)
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
        "jobs": jobs_visible_to(request.user).filter(state__in=Job.UNFINISHED)[:MOST_JOBS],
    }
    return render(request, "retrieval/corpus.html", context)
