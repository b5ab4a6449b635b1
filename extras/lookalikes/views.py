"""The pages of look-alikes: groups with their graph, and two species side by side."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, at_least, names_hidden_from, require_role
from core.address_choices import chosen_page
from core.errors import FileRefused
from core.pages import refusal_in_message
from core.world_map import dots
from extras.lookalikes.drawing import graph, month_bars
from extras.lookalikes.selectors import (
    difference_note,
    group_pairs,
    lookalike_groups,
    side_by_side,
)
from extras.lookalikes.services import confusions_import, difference_write
from retrieval.corpus.models import Species

GROUPS_PER_PAGE: Final = 50
#: Species of a group that its graph shows.
MOST_DRAWN: Final = 40
#: Bytes of an uploaded table; the command takes larger ones.
LARGEST_UPLOAD: Final = 20 * 2**20
#: Unknown names that a message has.
NAMED: Final = 5


@login_required
@require_http_methods(["GET", "POST"])
def lookalikes(request: HttpRequest) -> HttpResponse:
    """The groups, and the graph of one; a POST takes in a table (admins)."""
    require_role(request.user, Role.ANNOTATOR)
    if names_hidden_from(request.user):
        raise PermissionDenied("Species names are hidden while you label.")
    if request.method == "POST":
        require_role(request.user, Role.ADMIN)
        _take_in(request)
        return redirect("lookalikes")
    groups = lookalike_groups()
    name = request.GET.get("group") or (groups[0].name if groups else "")
    species = list(
        Species.objects.filter(lookalike_group=name).prefetch_related("names")
        if name
        else Species.objects.none()
    )
    pairs = group_pairs(species)
    page = chosen_page(Paginator(groups, GROUPS_PER_PAGE), request.GET)
    drawn = species[:MOST_DRAWN]
    drawn_ids = {member.pk for member in drawn}
    context = {
        "page": page,
        "name": name,
        "species": species,
        "pairs": pairs,
        "graph": graph(drawn, [p for p in pairs if {p.first.pk, p.second.pk} <= drawn_ids]),
    }
    return render(request, "lookalikes/lookalikes.html", context)


def _take_in(request: HttpRequest) -> None:
    upload = request.FILES.get("file")
    if upload is None or (upload.size or 0) > LARGEST_UPLOAD:
        limit = LARGEST_UPLOAD // 2**20
        messages.error(request, f"A CSV of up to {limit} MiB is needed.")
        return
    try:
        report = confusions_import(lines=upload, name=str(upload.name))
    except FileRefused as error:
        messages.error(request, str(error.errors[0]))
        return
    text = f"{report.pairs:,} pairs; {report.grouped:,} species got a look-alike group."
    if report.unknown:
        names = ", ".join(report.unknown[:NAMED])
        text += f" {len(report.unknown):,} names aren’t in the corpus: {names}."
    messages.success(request, text)


@login_required
@require_http_methods(["GET", "POST"])
def compare_species(request: HttpRequest, pk: int, other: int) -> HttpResponse:
    """Two species side by side; a POST writes how to tell them apart (reviewers). With `part`, what
    the labeling page shows of it.
    """
    require_role(request.user, Role.ANNOTATOR)
    if names_hidden_from(request.user):
        raise PermissionDenied("Species names are hidden while you label.")
    named = Species.objects.prefetch_related("names")
    one, another = get_object_or_404(named, pk=pk), get_object_or_404(named, pk=other)
    if one == another:
        raise Http404("Two species are needed.")
    if request.method == "POST":
        require_role(request.user, Role.REVIEWER)
        text = request.POST.get("text", "")
        with refusal_in_message(request):
            difference_write(one=one, other=another, text=text, by=request.user)
        return redirect("compare-species", pk=pk, other=other)
    context = {
        "both": [
            (
                shown,
                month_bars(shown.months) if any(shown.months) else "",
                dots(shown.cells, label=f"Where {shown.species} was photographed")
                if shown.cells
                else "",
            )
            for shown in side_by_side(one, another, request.user)
        ],
        "note": difference_note(one, another),
        "may_write": at_least(request.user, Role.REVIEWER),
    }
    part = "_compare_species" if "part" in request.GET else "compare_species"
    return render(request, f"lookalikes/{part}.html", context)
