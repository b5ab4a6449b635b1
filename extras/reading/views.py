"""The pages of readers: reviewers see them, admins make readers and have them read."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.jobs.models import Job
from core.jobs.services import job_cancel
from core.pages import refusal_in_form
from evaluation.reranking.multimodal.answers import dollars
from extras.reading.calibration_card import card
from extras.reading.forms import ReaderForm, ReadingForm
from extras.reading.readers import reader_create, readers_counted
from extras.reading.reading_job import (
    queries_to_read,
    reading_begin,
    reading_checked,
    reading_estimate,
    reading_jobs,
)

SECTION: Final = "dashboard"
"""The entry of the navigation that the pages are of."""
RECENT: Final = 10


@login_required
@require_http_methods(["GET", "POST"])
def readers_page(request: HttpRequest) -> HttpResponse:
    """The readers that there are; a POST makes another."""
    require_role(request.user, Role.REVIEWER)
    posted = request.method == "POST"
    if posted:
        require_role(request.user, Role.ADMIN)
    form = ReaderForm(request.POST if posted else None)
    if form.is_valid():
        with refusal_in_form(form):
            return redirect("reader", reader_create(reader=form.instance, by=request.user).pk)
    context = {"section": SECTION, "form": form, "readers": readers_counted()}
    return render(request, "reading/readers.html", context)


@login_required
@require_http_methods(["GET", "POST"])
def reader_page(request: HttpRequest, pk: int) -> HttpResponse:
    """A reader's setup, jobs and calibration; a POST estimates what reading takes, or starts it."""
    require_role(request.user, Role.REVIEWER)
    reader = get_object_or_404(readers_counted(), pk=pk)
    posted = request.method == "POST"
    if posted:
        require_role(request.user, Role.ADMIN)
    if request.POST.get("act") == "stop":
        for job in reading_jobs(reader).filter(state__in=Job.UNFINISHED):
            job_cancel(job=job)
        return redirect("reader", pk)
    form = ReadingForm(request.POST if posted else None)
    context: dict[str, Any] = {"section": SECTION, "reader": reader, "form": form}
    if form.is_valid():
        with refusal_in_form(form):
            wanted = dict(form.cleaned_data)
            seen = str(sorted(wanted.items(), key=str))
            queries = queries_to_read(wanted.pop("queries"), wanted.pop("benchmark"))
            # Start only what was estimated: the form may have changed since.
            if request.POST.get("seen") == seen and request.POST.get("act") == "start":
                reading_begin(reader=reader, queries=queries, by=request.user, **wanted)
                return redirect("reader", pk)
            reading_checked(reader=reader, **wanted)
            estimate = reading_estimate(reader=reader, queries=queries, depth=wanted["depth"])
            cost = "" if estimate.cost is None else dollars(estimate.cost)
            context |= {"estimate": estimate, "cost": cost, "seen": seen}
    context["cards"] = [card(request, reader)]
    context["jobs"] = reading_jobs(reader)[:RECENT]
    return render(request, "reading/reader.html", context)
