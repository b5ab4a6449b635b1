"""The simulations' pages: who sees them, how one is begun, and how its job goes on."""

from __future__ import annotations

import csv
import io
import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from benchmark.simulation.report import Plan
from benchmark.simulation.services import simulation_begin, simulation_step
from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from tests.benchmark.charts import drawings
from tests.benchmark.simulations import complete_query, make_corpus, open_query
from tests.conftest import client_of, person
from tests.labeling.conftest import run_jobs

pytestmark = pytest.mark.django_db

FORM = {
    "orders": ["frozen", "active", "random"],
    "stops": "streak:5, certificate:0.6,exhausted",
    "seeds": 10,
    "noise": 0,
}


@pytest.fixture
def query(var_dir: Path, settings: Any, admin: Any, annotator: Any) -> Query:
    """A completed query."""
    make_corpus(settings)
    return complete_query(30, by=admin, annotator=annotator)


def begun(client: Client, query: Query, **fields: Any) -> Job:
    answer = client.post("/simulations/", FORM | {"query": query.pk} | fields)
    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.latest("pk")
    assert answer["Location"] == f"/simulations/{job.pk}/"
    return job


def test_reviewers_and_admins_alone_simulate(query: Query, reviewer: Any, clients: Any) -> None:
    job = begun(client_of(reviewer), query)
    run_jobs()
    addresses = (
        "/simulations/",
        f"/simulations/{job.pk}/",
        f"/simulations/{job.pk}/figures.csv",
    )
    for role, status in (("annotator", 403), ("reviewer", 200), ("admin", 200)):
        assert [clients[role].get(one).status_code for one in addresses] == [status] * 3
    assert clients["annotator"].post("/simulations/", FORM).status_code == 403
    assert clients["anonymous"].get(addresses[0]).status_code == 302
    other = client_of(person("remo", "reviewer"))
    assert [other.get(one).status_code for one in addresses] == [200, 404, 404]
    assert Job.objects.filter(kind="simulate").count() == 1


def test_a_simulation_from_the_form_to_its_figures(query: Query, reviewer: Any) -> None:
    client = client_of(reviewer)
    assert f'<option value="{query.pk}" selected>30: a toad, number 30' in (
        client.get(f"/simulations/?query={query.pk}").content.decode()
    )
    job = begun(client, query)
    waiting = client.get(f"/simulations/{job.pk}/").content.decode()
    assert f'data-job="{job.pk}"' in waiting
    assert client.get(f"/simulations/{job.pk}/figures.csv").status_code == 404
    run_jobs()
    job.refresh_from_db()
    assert (job.state, job.done, job.total) == ("done", 12, 12)
    page = client.get(f"/simulations/{job.pk}/").content.decode()
    assert "4 of 40 images are relevant. All 40 embedded images of the filter were judged." in page
    assert all(text in page for text in ("Order that learns", "certificate:0.6", "WSS@95"))
    assert len(drawings(page)) == 3
    file = io.StringIO(client.get(f"/simulations/{job.pk}/figures.csv").content.decode())
    rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert (rows[0]["order"], rows[0]["stop"], rows[0]["labels"]) == ("frozen", "streak:5", "15.0")
    assert job.title in client.get("/simulations/").content.decode()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"stops": "streak:0"}, "“streak:0” is no stop rule"),
        ({"stops": "exhausted, exhausted"}, "Name at least one stop rule, each once."),
        ({"orders": []}, "This field is required."),
        ({"orders": ["clip"]}, "clip is not one of the available choices"),
        ({"seeds": 2001}, "Ensure this value is less than or equal to 2000."),
        ({"noise": 1}, "Ensure this value is less than or equal to 0.9."),
        ({"query": 10**6}, "Select a valid choice."),
    ],
)
def test_what_cant_be_simulated_is_said_in_the_form(
    query: Query, reviewer: Any, fields: dict[str, Any], says: str
) -> None:
    answer = client_of(reviewer).post("/simulations/", FORM | {"query": query.pk} | fields)
    assert answer.status_code == 200
    shown = answer.content.decode().replace("&quot;", '"')
    assert says.replace("“", '"').replace("”", '"') in shown
    assert not Job.objects.filter(kind="simulate").exists()


def test_an_open_query_isnt_offered(query: Query, admin: Any) -> None:
    other = open_query(31, admin)
    client = client_of(admin)
    assert "31: a toad" not in client.get("/simulations/").content.decode()
    answer = client.post("/simulations/", FORM | {"query": other.pk})
    assert "Select a valid choice." in answer.content.decode()


def test_a_job_goes_on_where_it_was_cut_short(query: Query, reviewer: Any) -> None:
    plan = Plan(seeds=5, stops=("streak:5", "certificate:0.6"))
    whole, cut = (simulation_begin(query=query, plan=plan, created_by=reviewer) for _ in range(2))
    Job.objects.update(state=Job.State.RUNNING)
    assert simulation_step(Job.objects.get(pk=whole.pk), time.monotonic() + 60)
    turns = 1
    # Each turn reads the job anew, as another worker would.
    while not simulation_step(Job.objects.get(pk=cut.pk), 0.0):
        turns += 1
    assert turns == 9
    results = [Job.objects.get(pk=one.pk) for one in (whole, cut)]
    assert results[0].result == results[1].result
    assert [one.done for one in results] == [9, 9]


def test_judgments_that_change_between_two_slices_end_it(query: Query, reviewer: Any) -> None:
    job = simulation_begin(query=query, plan=Plan(seeds=5), created_by=reviewer)
    Job.objects.update(state=Job.State.RUNNING)
    assert not simulation_step(Job.objects.get(pk=job.pk), 0.0)
    Judgment.objects.filter(query=query, relevance="relevant").latest("pk").delete()
    with pytest.raises(JobFailed, match="The judgments changed meanwhile"):
        simulation_step(Job.objects.get(pk=job.pk), 0.0)


def test_a_query_that_was_reopened_or_has_gone_fails_the_job(
    query: Query, reviewer: Any, admin: Any
) -> None:
    job = simulation_begin(query=query, plan=Plan(seeds=5), created_by=reviewer)
    Query.objects.filter(pk=query.pk).update(state="open")
    run_jobs()
    page = client_of(reviewer).get(f"/simulations/{job.pk}/").content.decode()
    assert "Query 30 isn&#x27;t complete, so nobody knows what is relevant to it." in page
    gone = Job.objects.create(kind="simulate", params={"query": 10**6, "plan": {}})
    with pytest.raises(JobFailed, match="The query was deleted"):
        simulation_step(gone, 0.0)


def test_a_complete_query_leads_to_its_simulation(
    query: Query, reviewer: Any, clients: Any
) -> None:
    address = f"/simulations/?query={query.pk}"
    for role, shown in (("reviewer", True), ("annotator", False)):
        page = clients[role].get(f"/queries/{query.pk}/").content.decode()
        assert (address in page) == shown
