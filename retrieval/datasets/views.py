"""The pages of data sets: what each holds, what to look at, and what an admin says of it."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.access import Role, require_role
from core.address_choices import chosen, chosen_id
from core.errors import Missing
from core.jobs.models import Job
from core.pages import refusal_in_message
from core.registries import DATASET_PANELS, cards
from retrieval.corpus.counts import image_count
from retrieval.corpus.selectors import datasets
from retrieval.datasets.selectors import (
    COUNTED_AT_ONCE,
    DatasetFigures,
    Finding,
    dataset_figures,
    dataset_mark_of,
    found_images,
    texts_kept_since,
)
from retrieval.datasets.services import KIND, dataset_mark

IMAGES_SHOWN = 60
MOST_JOBS = 3


@login_required
@require_safe
def data_sets(request: HttpRequest) -> HttpResponse:
    """List the data sets with their figures (admins); of a large corpus those are counted where
    `count` asks for it.
    """
    require_role(request.user, Role.ADMIN)
    counted = _is_counted(request)
    context = {
        "section": "corpus",
        "names": [] if counted else datasets(),
        "figures": dataset_figures() if counted else [],
        "counted": counted,
        "since": texts_kept_since(),
    }
    return render(request, "retrieval/data_sets.html", context)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def data_set(request: HttpRequest) -> HttpResponse:
    """Show a data set, its findings and the releases that have its images, and mark it (admins)."""
    require_role(request.user, Role.ADMIN)
    name = request.GET.get("dataset", "")
    if not name:
        return redirect("data-sets")
    if request.method == "POST":
        with refusal_in_message(request):
            said = {
                one: request.POST[one] == "yes"
                for one in ("license_unknown", "locations_obscured")
                if one in request.POST
            }
            dataset_mark(dataset=name, by=request.user, **said)
        return redirect(request.get_full_path())
    try:
        mark = dataset_mark_of(name)
        figures = next(iter(dataset_figures(name)), None) if _is_counted(request) else None
    except Missing as error:
        raise Http404(str(error)) from error
    wanted = Finding(chosen(request.GET, "finding", Finding.values, usual=_first(figures)))
    after = chosen_id(request.GET, "after")
    context = {
        "section": "corpus",
        "name": name,
        "mark": mark,
        "figures": figures,
        "jobs": Job.objects.filter(
            kind=KIND, params__dataset=name, state__in=(*Job.UNFINISHED, Job.State.FAILED)
        )[:MOST_JOBS],
        "finding": wanted,
        "since": texts_kept_since(),
        "found": found_images(name, wanted, after=after, limit=IMAGES_SHOWN) if figures else None,
        "panels": cards(DATASET_PANELS, request, name) if figures else [],
    }
    return render(request, "retrieval/data_set.html", context)


def _is_counted(request: HttpRequest) -> bool:
    return "count" in request.GET or image_count() <= COUNTED_AT_ONCE


def _first(figures: DatasetFigures | None) -> str:
    """The finding to show first: that of which there are images."""
    placed = figures and figures.exact_locations and not figures.license_read
    return Finding.LOCATION if placed else Finding.LICENSE
