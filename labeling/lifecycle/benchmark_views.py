"""The pages on which an admin writes benchmarks."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from core.access import Role, require_role
from core.pages import refusal_in_form, refusal_in_message
from labeling.lifecycle.benchmarks import benchmark_delete as delete
from labeling.lifecycle.benchmarks import benchmark_save
from labeling.lifecycle.forms import BenchmarkForm, SpeciesForm
from labeling.lifecycle.screening import READY, screening_create, verification_create
from labeling.queries.models import Benchmark

#: Species that are verified by queries made at once.
MOST_VERIFIED: Final = 500


@login_required
@require_safe
def benchmarks(request: HttpRequest) -> HttpResponse:
    """All benchmarks."""
    require_role(request.user, Role.ADMIN)
    found = Benchmark.objects.annotate(
        query_count=Count("queries", distinct=True), people_count=Count("people", distinct=True)
    )
    return render(request, "labeling/benchmarks.html", {"benchmarks": found.order_by("name")})


@login_required
@require_http_methods(["GET", "POST"])
def benchmark_new(request: HttpRequest) -> HttpResponse:
    """Write another benchmark."""
    require_role(request.user, Role.ADMIN)
    return _form_page(request, None)


@login_required
@require_http_methods(["GET", "POST"])
def benchmark_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Change a benchmark; another species filter makes new lists for its open queries."""
    require_role(request.user, Role.ADMIN)
    return _form_page(request, get_object_or_404(Benchmark, pk=pk))


def _form_page(request: HttpRequest, benchmark: Benchmark | None) -> HttpResponse:
    form = BenchmarkForm(request.POST or None, benchmark=benchmark)
    if request.method == "POST" and form.is_valid():
        changed = Benchmark.objects.get(pk=benchmark.pk) if benchmark else None
        with refusal_in_form(form):
            benchmark_save(benchmark=changed, by=request.user, **form.chosen)
            messages.success(request, "Saved.")
            return redirect("benchmarks")
    context = {"form": form, "benchmark": benchmark}
    return render(request, "labeling/benchmark_form.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def screening(request: HttpRequest) -> HttpResponse:
    """Add drafts to the benchmark for screening: the ready queries, or one for each species that
    was chosen, which asks what its images show.
    """
    require_role(request.user, Role.ADMIN)
    verify = SpeciesForm(request.POST if "verify" in request.POST else None)
    if request.method == "POST":
        if verify.is_bound and verify.is_valid():
            species = verify.cleaned_data["species"]
            if not 0 < len(species) <= MOST_VERIFIED:
                verify.add_error("species", f"Choose 1 to {MOST_VERIFIED:,} species.")
        if not verify.errors:
            benchmark = (
                verification_create(species=species, by=request.user)
                if verify.is_bound
                else screening_create(by=request.user)
            )
            messages.success(request, "The queries are drafts now. Open those that you want.")
            return redirect(f"{reverse('dashboard')}?benchmark={benchmark.pk}")
    context = {"ready": READY, "form": verify}
    return render(request, "labeling/screening.html", context)


@login_required
@require_POST
def benchmark_delete(request: HttpRequest, pk: int) -> HttpResponse:
    """Delete a benchmark that has no queries and no releases."""
    require_role(request.user, Role.ADMIN)
    benchmark = get_object_or_404(Benchmark, pk=pk)
    with refusal_in_message(request):
        delete(benchmark=benchmark)
    return redirect("benchmarks")
