"""Labeling a complete query again, by other orders and stop rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.access import Role, at_least
from core.jobs.kinds import job_handler
from core.registries import LINKS, Link, LinkPlace

if TYPE_CHECKING:
    from core.jobs.models import Job
    from labeling.queries.models import Query


class SimulationConfig(AppConfig):
    """Registers the job and the link on a query's page."""

    name = "extras.simulation"

    def ready(self) -> None:
        """Append to the registries."""
        LINKS.append((LinkPlace.QUERY, _link))
        job_handler("simulate")(_simulate)


def _simulate(job: Job, deadline: float) -> bool:
    """Label a query again, one order and stop after the other."""
    from extras.simulation.services import simulation_step

    return simulation_step(job, deadline)


def _link(user: Any, query: Query) -> Link | None:
    if query.state != "complete" or not at_least(user, Role.REVIEWER):
        return None
    return Link("Simulate", f"{reverse('simulations')}?query={query.pk}")
