"""The page of a job."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to


@login_required
@require_safe
def job(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a job with its progress and failed items."""
    found: Job = get_object_or_404(jobs_visible_to(request.user), pk=pk)
    context = {"job": found, "errors": found.item_errors.order_by("pk")[:200]}
    return render(request, "core/job.html", context)
