"""The pages of readers and the card on a query's page: reviewers see them, admins change them."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_http_methods, require_POST

from core.access import Role, at_least, require_role
from core.errors import Invalid
from core.ids import id_of
from core.jobs.models import Job
from core.jobs.services import job_cancel
from core.pages import refusal_in_form, refusal_in_message
from evaluation.reranking.multimodal.answers import dollars
from extras.reading.api import ReaderUseSerializer
from extras.reading.calibration_card import card
from extras.reading.forms import ReaderForm, ReadingForm
from extras.reading.models import Reader
from extras.reading.queues import MORE_IMAGES, MOST_GIVEN, queue_fill, spend
from extras.reading.readers import reader_create, readers_counted
from extras.reading.reading_job import (
    queries_to_read,
    reading_begin,
    reading_checked,
    reading_estimate,
    reading_jobs,
)
from extras.reading.use import use_of, use_save
from labeling.judging.access import get_query_for
from labeling.queries.models import Query

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


def panel(request: HttpRequest, query: Query) -> SafeString | None:
    """What the query uses a reader for, to reviewers; to admins also what it could."""
    if not at_least(request.user, Role.REVIEWER):
        return None
    use = use_of(query)
    readers = list(Reader.objects.all()) if at_least(request.user, Role.ADMIN) else []
    if not readers and use._state.adding:
        return None
    judged = use.queue and query.state in MORE_IMAGES.offered_in
    context = {"query": query, "use": use, "readers": readers, "judged": judged, "most": MOST_GIVEN}
    return render_to_string("reading/_query_panel.html", context, request)


@login_required
@require_POST
def query_reader(request: HttpRequest, pk: int) -> HttpResponse:
    """Say what a query uses a reader for (admins)."""
    require_role(request.user, Role.ADMIN)
    query = get_query_for(request.user, pk)
    sent = ReaderUseSerializer(data=request.POST)
    with refusal_in_message(request):
        if not sent.is_valid():
            raise Invalid({name: map(str, texts) for name, texts in sent.errors.items()})
        use_save(query, dict(sent.validated_data), request.user)
        messages.success(request, "Saved.")
    return redirect("query-detail", pk=pk)


@login_required
@require_POST
def query_reader_queue(request: HttpRequest, pk: int) -> HttpResponse:
    """Have people judge what the reader calls relevant by now, or as many images of the benchmark's
    queries as they can give judgments (reviewers).
    """
    require_role(request.user, Role.REVIEWER)
    query = get_query_for(request.user, pk)
    with refusal_in_message(request):
        if "count" in request.POST:
            count = id_of(request.POST["count"]) or 0
            images = spend(count=count, benchmark=query.benchmark, by=request.user)
        else:
            images = queue_fill(query=query)
        what = "1 more image waits" if images == 1 else f"{images:,} more images wait"
        messages.success(request, f"{what} to be judged.")
    return redirect("query-detail", pk=pk)
