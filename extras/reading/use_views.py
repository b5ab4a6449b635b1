"""The card of a query's reader, and what its forms send."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from core.access import Role, at_least, require_role
from core.errors import Invalid
from core.ids import id_of
from core.pages import refusal_in_message
from extras.reading.models import Reader
from extras.reading.queues import MORE_IMAGES, MOST_GIVEN, queue_fill, spend
from extras.reading.use_api import ReaderUseSerializer, use_of, use_save
from labeling.judging.access import get_query_for
from labeling.queries.models import Query


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
