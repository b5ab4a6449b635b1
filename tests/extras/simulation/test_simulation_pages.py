"""The simulations' pages: who sees them, how one is begun, and how its job goes on."""

from __future__ import annotations

import csv
import io
import time
from typing import Any

import pytest
from django.test import Client

from core.jobs.kinds import JobFailed
from core.jobs.models import Job
from extras.simulation.pools import SimulationRefused
from extras.simulation.report import Plan
from extras.simulation.services import simulation_begin, simulation_step
from labeling.judging.models import Judgment
from labeling.queries.models import Query
from tests.conftest import client_of, person
from tests.labeling.conftest import run_jobs
from tests.releases.charts import drawings
from tests.releases.complete_queries import complete_query, open_query
from tests.releases.conftest import World

pytestmark = pytest.mark.django_db

FORM = {
    "orders": ["frozen", "active", "random"],
    "stops": "streak:5, certificate:0.6,exhausted",
    "seeds": 10,
    "noise": 0,
}


@pytest.fixture(scope="module")
def query(corpus: World) -> Query:
    """A completed query."""
    return complete_query(30, by=corpus.person("admin"), annotator=corpus.person("annotator"))


@pytest.fixture
def reviewer(query: Query, corpus: World, db: None) -> Any:
    return corpus.person("reviewer")


def begun(client: Client, query: Query, **fields: Any) -> Job:
    answer = client.post("/simulations/", FORM | {"query": query.query_id} | fields)
    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.latest("pk")
    assert answer["Location"] == f"/simulations/{job.pk}/"
    return job


def test_reviewers_and_admins_alone_simulate(query: Query, reviewer: Any, corpus: World) -> None:
    job = begun(client_of(reviewer), query)
    run_jobs()
    addresses = (
        "/simulations/",
        f"/simulations/{job.pk}/",
        f"/simulations/{job.pk}/figures.csv",
    )
    for role, status in (("annotator", 403), ("reviewer", 200), ("admin", 200)):
        client = corpus.client(role)
        assert [client.get(one).status_code for one in addresses] == [status] * 3
        page = client.get(f"/queries/{query.pk}/").content.decode()
        assert (f"/simulations/?query={query.query_id}" in page) == (status == 200)
    assert corpus.client("annotator").post("/simulations/", FORM).status_code == 403
    assert Client().get(addresses[0]).status_code == 302
    other = client_of(person("remo", "reviewer"))
    assert [other.get(one).status_code for one in addresses] == [200, 404, 404]
    assert Job.objects.filter(kind="simulate").count() == 1


def test_a_simulation_from_the_form_to_its_figures(query: Query, reviewer: Any) -> None:
    client = client_of(reviewer)
    form = client.get(f"/simulations/?query={query.query_id}").content.decode()
    assert f'name="query" value="{query.query_id}"' in form
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
    assert len(drawings(page)) == 1
    file = io.StringIO(client.get(f"/simulations/{job.pk}/figures.csv").content.decode())
    rows = list(csv.DictReader(file))
    assert len(rows) == 9
    assert (rows[0]["order"], rows[0]["stop"], rows[0]["labels"]) == ("frozen", "streak:5", "15.0")
    assert job.title in client.get("/simulations/").content.decode()


def test_a_reader_is_in_the_figures_of_a_simulation(query: Query, reviewer: Any) -> None:
    client = client_of(reviewer)
    job = begun(client, query, reader="auc:0.9", noise=0.3, stops="streak:5", seeds=3)
    run_jobs()
    page = client.get(f"/simulations/{job.pk}/").content.decode()
    shown = ("read auc:0.9", "screened auc:0.9", "Doubted labels")
    assert all(text in page for text in shown)
    assert len(drawings(page)) == 1


def test_what_cant_be_simulated_is_said_in_the_form(
    query: Query, reviewer: Any, corpus: World
) -> None:
    unfinished, client = open_query(31, corpus.person("admin")), client_of(reviewer)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"stops": "streak:0"}, "“streak:0” is no stop rule"),
        ({"stops": "exhausted, exhausted"}, "Name at least one stop rule, each once."),
        ({"reader": "0.9"}, "“0.9” is no reader: write auc:0.9"),
        ({"orders": []}, "This field is required."),
        ({"seeds": 2001}, "Ensure this value is less than or equal to 2000."),
        ({"noise": 1}, "Ensure this value is less than or equal to 0.9."),
        ({"query": unfinished.query_id}, "No complete query has this number."),
    ]
    for fields, says in wrong:
        answer = client.post("/simulations/", FORM | {"query": query.query_id} | fields)
        assert answer.status_code == 200
        shown = answer.content.decode().replace("&quot;", '"')
        assert says.replace("“", '"').replace("”", '"') in shown
    assert not Job.objects.filter(kind="simulate").exists()


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


def test_judgments_that_change_or_a_query_that_goes_end_it(query: Query, reviewer: Any) -> None:
    begun = [simulation_begin(query=query, plan=Plan(seeds=5), created_by=reviewer)
             for _ in range(2)]  # fmt: skip
    Job.objects.update(state=Job.State.RUNNING)
    job, again = (Job.objects.get(pk=one.pk) for one in begun)
    assert not simulation_step(job, 0.0)
    Judgment.objects.filter(query=query, relevance="relevant").latest("pk").delete()
    with pytest.raises(JobFailed, match="The judgments changed meanwhile"):
        simulation_step(Job.objects.get(pk=job.pk), 0.0)
    Query.objects.filter(pk=query.pk).update(state="open")
    with pytest.raises(SimulationRefused, match="Query 30 isn't complete, so nobody knows"):
        simulation_step(again, 0.0)
    gone = Job.objects.create(kind="simulate", params={"query": 10**6, "plan": {}})
    with pytest.raises(JobFailed, match="The query was deleted"):
        simulation_step(gone, 0.0)
