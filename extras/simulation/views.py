"""The pages on which reviewers have queries simulated."""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from core.access import Role, require_role
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from extras.simulation.drawing import recall_chart
from extras.simulation.forms import ORDER_TITLES, SimulationForm
from extras.simulation.report import doubt_table, figures_csv, order_table, stop_table
from extras.simulation.services import JOB_KIND, simulation_begin

RECENT: Final = 20
SECTION: Final = "dashboard"
"""The entry of the navigation that the pages are of."""


def _simulations(user: Any) -> QuerySet[Job]:
    """Those that the user may see. Forbidden: the user is no reviewer."""
    require_role(user, Role.REVIEWER)
    return jobs_visible_to(user).filter(kind=JOB_KIND)


@login_required
@require_http_methods(["GET", "POST"])
def simulations(request: HttpRequest) -> HttpResponse:
    """Choose a query, orders and stops; see the latest simulations."""
    jobs = _simulations(request.user)
    posted = request.POST if request.method == "POST" else None
    form = SimulationForm(posted, initial={"query": request.GET.get("query")})
    if form.is_valid():
        query = form.cleaned_data["query"]
        job = simulation_begin(query=query, plan=form.plan, created_by=request.user)
        return redirect("simulation", job.pk)
    context = {"section": SECTION, "form": form, "jobs": jobs[:RECENT]}
    return render(request, "simulation/simulations.html", context)


@login_required
@require_safe
def simulation(request: HttpRequest, pk: int) -> HttpResponse:
    """How far a simulation is, and once it is done its figures."""
    job = get_object_or_404(_simulations(request.user), pk=pk)
    context: dict[str, Any] = {"section": SECTION, "job": job, "plan": job.params["plan"]}
    if job.state == Job.State.DONE:
        doubts = doubt_table([job.result])
        context |= {
            "figures": job.result,
            "chart": recall_chart(job.result),
            "tables": [
                ("Orders", *_titled(order_table([job.result]))),
                ("Stops", *_titled(stop_table([job.result]))),
                *([("Doubted labels", *_titled(doubts))] if doubts else []),
            ],
        }
    return render(request, "simulation/simulation.html", context)


def _titled(table: list[Any]) -> tuple[Any, list[Any]]:
    """A table's head, and its rows with the orders as pages name them."""
    head, *rows = table
    return head, [[ORDER_TITLES.get(order, order), *cells] for order, *cells in rows]


@login_required
@require_safe
def simulation_figures(request: HttpRequest, pk: int) -> HttpResponse:
    """The figures of a simulation that is done, as CSV."""
    job = get_object_or_404(_simulations(request.user), pk=pk)
    if job.state != Job.State.DONE:
        raise Http404("The simulation isn't done.")
    name = f"simulation-{job.pk}-query-{job.result['query_id']}.csv"
    return HttpResponse(
        figures_csv([job.result]),
        content_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
