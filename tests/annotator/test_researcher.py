"""Every address there is, asked by a researcher: what isn't named here is closed to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from benchmark.releases.models import Release
from benchmark.runs.models import Run
from core.access import Role, at_least, is_evaluator, names_hidden_from
from core.jobs.models import Job
from demo.steps import CAST, demo_people
from labeling.candidates.models import CandidateList
from labeling.judging.access import can_judge, judging_problem, queries_visible_to, sees_query
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import Query, QueryExample
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import images_in_corpus
from tests.annotator.addresses import OPEN
from tests.annotator.world import World, make_world
from tests.conftest import api_of, client_of

pytestmark = pytest.mark.django_db

#: Addresses outside benchmark that a researcher reaches with GET, by their first part, and what is
#: answered. A job is theirs to see if they began it, and any image of the corpus is.
READS = {"": 302, "help/": 200, "api/jobs/": 200, "jobs/": 404, "images/": 200}
#: What belongs to releases, runs and the leaderboard has tests of its own, and so has everybody's
#: account.
ELSEWHERE = (
    "account/",
    "releases/",
    "leaderboard/",
    "runs/",
    "api/releases/",
    "api/runs/",
    "api/submissions/",
)


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Path) -> World:
    """One of everything."""
    return make_world(settings, tmp_path)


def test_labeling_is_closed_to_researchers(world: World) -> None:
    def state() -> list[object]:
        return [
            sorted(Query.objects.values_list("pk", "text", "state")),
            sorted(ImageFlag.objects.values_list("pk", "raised_by", "state")),
            sorted(Job.objects.values_list("pk", "state")),
            JudgmentEvent.objects.count(),
            CandidateList.objects.count(),
            QueryExample.objects.count(),
            images_in_corpus().count(),
        ]

    browser, program = (make(world.people["researcher"]) for make in (client_of, api_of))
    before, asked, wrong = state(), 0, []
    for address in sorted({*world.addresses} - OPEN):
        if address.startswith((*ELSEWHERE, "admin/")):
            continue
        api = address.startswith("api/")
        for method in ("get", "post", "put", "patch", "delete"):
            for client in (browser, program) if api else (browser,):
                status = getattr(client, method)(f"/{address}").status_code
                read = READS.get(address) or READS.get(address.split("/")[0] + "/")
                jobs = address.startswith("api/jobs/")
                closed = {403} if api and not jobs else {403, 404, 405}
                asked += 1
                if status not in ({read} if method == "get" and read else closed):
                    wrong.append(f"{method} {address}: {status}")
    assert wrong == []
    assert state() == before
    assert asked > 300


def test_the_same_addresses_are_there_for_those_who_label(world: World) -> None:
    query = world.queries["open"].pk
    for address in (
        f"queries/{query}/", "search/", "corpus/", "api/queries/", f"api/queries/{query}/",
    ):  # fmt: skip
        assert client_of(world.people["annotator"]).get(f"/{address}").status_code == 200
        assert client_of(world.people["researcher"]).get(f"/{address}").status_code in (403, 404)


def test_a_researcher_follows_their_own_jobs_alone(researcher: Any, admin: Any) -> None:
    Job.objects.create(kind="embed", created_by=admin)
    own = Job.objects.create(kind="embed", created_by=researcher)
    api = api_of(researcher)
    assert [one["id"] for one in api.get("/api/jobs/").json()["results"]] == [own.pk]
    assert api.get(f"/api/jobs/{own.pk}/").status_code == 200
    assert client_of(researcher).get(f"/jobs/{own.pk}/").status_code == 200
    for change in ("cancel", "retry"):
        assert api.post(f"/api/jobs/{own.pk}/{change}/").status_code == 403
    assert api.post("/api/jobs/", {"model": "demo"}).status_code == 403


def test_admins_pages_are_closed(researcher: Any) -> None:
    answer = client_of(researcher).get("/admin/")
    assert (answer.status_code, answer["Location"]) == (302, "/admin/login/?next=/admin/")


def test_no_query_is_there_to_judge(world: World) -> None:
    researcher, query = world.people["researcher"], world.queries["open"]
    assert not queries_visible_to(researcher).exists()
    assert not sees_query(researcher, query)
    assert not can_judge(researcher, query)
    assert judging_problem(researcher, query).startswith("Researchers don't judge")


def test_the_log_in_leads_to_the_leaderboard(researcher: Any) -> None:
    assert client_of(researcher).get("/")["Location"] == reverse("leaderboard-latest")


def test_the_navigation_shows_what_is_open(clients: dict[str, Client], researcher: Any) -> None:
    shown = {
        "researcher": ["Leaderboard", "Releases", "Help"],
        "annotator": ["Queries", "Search", "Corpus", "Help"],
        "reviewer": ["Queries", "Search", "Corpus", "Flags", "Leaderboard", "Releases", "Help"],
    }
    shown["admin"] = [*shown["reviewer"], "People", "Admin"]
    names = set(shown["admin"])
    for role, client in (clients | {"researcher": client_of(researcher)}).items():
        if role == "anonymous":
            continue
        page = client.get("/releases/" if role != "annotator" else "/").content.decode()
        nav = page.split('<nav class="site-nav"')[1].split("</nav>")[0]
        assert {name for name in names if f">{name}<" in nav} == set(shown[role])


def test_researchers_and_reviewers_see_releases_and_annotators_do_not(
    clients: dict[str, Client], researcher: Any
) -> None:
    everybody = clients | {"researcher": client_of(researcher)}
    for address in ("/releases/", "/api/releases/"):
        statuses = {role: client.get(address).status_code for role, client in everybody.items()}
        assert statuses.pop("anonymous") in (302, 401)
        assert statuses == {"annotator": 403, "reviewer": 200, "admin": 200, "researcher": 200}
        assert everybody["researcher"].post(address, {"name": "v1"}).status_code == 403
    assert not Release.objects.exists()
    assert not Run.objects.exists()


def test_what_the_role_means(researcher: Any, annotator: Any, settings: Any) -> None:
    settings.HIDE_SPECIES_NAMES = True
    assert at_least(researcher, Role.RESEARCHER)
    assert not at_least(researcher, Role.ANNOTATOR)
    assert at_least(annotator, Role.RESEARCHER)
    assert (is_evaluator(researcher), is_evaluator(annotator)) == (True, False)
    # They are hidden so that they don't steer a judgment.
    assert (names_hidden_from(researcher), names_hidden_from(annotator)) == (False, True)


def test_the_demo_has_a_researcher_also_where_it_was_made_before(
    settings: Any, tmp_path: Any
) -> None:
    settings.VAR_DIR = tmp_path
    cast = demo_people()
    assert {one.name: one.role for one in cast} == {n: role.value for n, role in CAST.items()}
    kept = tmp_path / "demo_passwords.json"
    before = kept.read_text()
    assert demo_people() == cast
    assert kept.read_text() == before
    entries = before.split(" {")
    kept.write_text(" {".join(entries[:-1]).rstrip().rstrip(",") + "\n]")
    again = demo_people()
    assert again[:-1] == cast[:-1]
    assert (again[-1].name, again[-1].role) == ("researcher", "researcher")
