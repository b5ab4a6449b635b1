"""Whether measures, or versions of a release, rank the runs alike."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from benchmark.leaderboard_views import get_release


@login_required
@require_safe
def correlations_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Kendall's tau-b between measures over the runs, and between versions for one measure."""
    return render(request, "benchmark/correlations.html", {"release": get_release(pk)})
