"""The page on which an admin opens many drafts at once."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from core.access import Role, require_role
from core.address_choices import chosen_ids
from labeling.lifecycle.opening import OpeningReport, queries_open
from labeling.queries.categories import CATEGORIES
from labeling.queries.models import Query
from labeling.review.overview import queries_filtered

#: Drafts on a page; a form has fewer fields than Django takes at once.
SHOWN: Final = 500
FILTERS: Final = ("search", "split", "category")
#: Refused queries that a message names.
NAMED: Final = 5


@login_required
@require_http_methods(["GET", "POST"])
def queries_open_page(request: HttpRequest) -> HttpResponse:
    """Choose among the drafts and open what was chosen."""
    require_role(request.user, Role.ADMIN)
    if request.method == "POST":
        chosen = chosen_ids(request.POST, "query")[:SHOWN]
        if chosen:
            _tell(request, queries_open(pks=chosen, by=request.user))
            return redirect("dashboard")
        messages.error(request, "No query was chosen.")
    filters = {name: request.GET.get(name, "").strip() for name in FILTERS}
    drafts = queries_filtered(Query.objects.filter(state=Query.State.DRAFT), filters)
    count = drafts.count()
    context: dict[str, Any] = {
        "drafts": drafts.annotate(species_count=Count("species")).order_by("query_id")[:SHOWN],
        "count": count,
        "more": max(count - SHOWN, 0),
        "filters": filters,
        "filtered": any(filters.values()),
        "splits": Query.Split.choices,
        "categories": list(CATEGORIES),
    }
    return render(request, "labeling/queries_open.html", context)


def _tell(request: HttpRequest, report: OpeningReport) -> None:
    if report.opened == 1:
        messages.success(request, "1 query is open. The worker ranks its candidates.")
    elif report.opened:
        messages.success(
            request, f"{report.opened:,} queries are open. The worker ranks their candidates."
        )
    if report.unchanged:
        messages.info(request, f"{report.unchanged:,} of them were open already.")
    if report.refused:
        named = "; ".join(f"query {one.query_id}: {one.detail}" for one in report.refused[:NAMED])
        more = len(report.refused) - NAMED
        messages.error(
            request, f"Not opened: {named}" + (f" And {more:,} more." if more > 0 else "")
        )
