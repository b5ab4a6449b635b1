"""The page of near-duplicates and bursts, on which reviewers decide."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.address_choices import chosen_page
from core.ids import id_of
from core.pages import refusal_in_message
from extras.duplicates.models import DuplicateGroup
from extras.duplicates.services import (
    duplicate_counts,
    duplicates_job_create,
    group_decide,
    unfinished_job,
)

GROUPS_PER_PAGE = 12


@login_required
@require_http_methods(["GET", "POST"])
def duplicates(request: HttpRequest) -> HttpResponse:
    """The groups to decide on, the oldest first; a POST decides on one, or begins to look."""
    require_role(request.user, Role.REVIEWER)
    if request.method == "POST" and "look" in request.POST:
        with refusal_in_message(request):
            return redirect("job", duplicates_job_create(by=request.user).pk)
        return redirect("duplicates")
    if request.method == "POST":
        group = get_object_or_404(DuplicateGroup, pk=id_of(request.POST.get("group")))
        decision = request.POST.get("decision", "")
        if decision in DuplicateGroup.Decision.values:
            if not group_decide(group=group, decision=decision, by=request.user):
                messages.info(request, "Somebody has decided on this group.")
            return redirect("duplicates")
    groups = DuplicateGroup.objects.filter(decision="").prefetch_related("images__species")
    page = chosen_page(Paginator(groups, GROUPS_PER_PAGE), request.GET)
    context = {
        "section": "flags",
        "page": page,
        "counts": duplicate_counts(),
        "job": unfinished_job(),
    }
    return render(request, "duplicates/duplicates.html", context)
