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
    from releases.models import Release


class SimulationConfig(AppConfig):
    """Registers the job and the links on a query's page and among the leaderboard's analyses."""

    name = "extras.simulation"

    def ready(self) -> None:
        """Append to the registries."""
        LINKS.append((LinkPlace.QUERY, _query_link))
        LINKS.append((LinkPlace.ANALYSIS, _analysis_link))
        job_handler("simulate")(_simulate)


def _simulate(job: Job, deadline: float) -> bool:
    """Label a query again, one order and stop after the other."""
    from extras.simulation.services import simulation_step

    return simulation_step(job, deadline)


def _query_link(user: Any, query: Query) -> Link | None:
    if query.state != "complete" or not at_least(user, Role.REVIEWER):
        return None
    return Link("Simulate", f"{reverse('simulations')}?query={query.query_id}")


def _analysis_link(user: Any, release: Release, choice: dict[str, str]) -> Link | None:
    from releases.making.labels import complete_queries

    if not at_least(user, Role.REVIEWER) or not complete_queries().exists():
        return None
    return Link("What would another order or stop rule have cost?", reverse("simulations"))
