"""Simulations as jobs: their figures are the job's result."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, Final

from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from core.jobs.services import job_advance, job_create
from extras.simulation.pools import query_pool
from extras.simulation.report import Figures, Plan, with_step
from labeling.queries.models import Query

JOB_KIND: Final = "simulate"


def simulation_begin(*, query: Query, plan: Plan, created_by: Any) -> Job:
    """Have a query simulated."""
    return job_create(
        kind=JOB_KIND,
        params={"query": query.pk, "plan": asdict(plan)},
        created_by=created_by,
        title=f"Simulation of query {query.query_id}: {query.text}"[:300],
    )


def simulation_step(job: Job, deadline: float) -> bool:
    """Do a plan's steps until the deadline, at least one; each is stored with the progress.

    JobFailed: the query is gone, or was judged between two slices. SimulationRefused: it can't be
    simulated.
    """
    queries = Query.objects.select_related("current_list__embedding_model")
    query = queries.filter(pk=job.params["query"]).first()
    if query is None:
        raise JobFailed("The query was deleted.")
    judged = query_pool(query)
    figures: Figures = job.result or judged.about
    if any(figures[name] != value for name, value in judged.about.items()):
        raise JobFailed("The judgments changed meanwhile. Start the simulation again.")
    plan = Plan.of(job.params["plan"])
    simulation, total = plan.simulation(judged.pool), len(plan.steps)
    job_advance(job=job, total=total)
    for number in range(job.cursor.get("steps", 0), total):
        figures = with_step(figures, simulation, *plan.steps[number])
        job_advance(job=job, done=1, cursor={"steps": number + 1}, result=figures)
        if number + 1 < total and time.monotonic() >= deadline:
            return False
    return True
