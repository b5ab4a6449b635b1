"""Every address there is, asked by a researcher: what isn't named here is closed to them."""

from __future__ import annotations

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
from retrieval.corpus.models import Image, Species
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import images_in_corpus
from tests.annotator.test_anonymous import ADDRESSES
from tests.conftest import api_of, client_of, person

pytestmark = pytest.mark.django_db

#: Addresses outside benchmark that a researcher reaches with GET, and what is answered. A job and
#: a picture are theirs to see if they began the one and the other is in the corpus.
READS = {
    "": 302,
    "api/jobs/": 200,
    "api/jobs/1/": 404,
    "jobs/1/": 404,
    "images/1/abcdef12.jpg": 404,
}
#: What belongs to releases, runs and the leaderboard has tests of its own.
EVALUATION = (
    "releases/",
    "leaderboard/",
    "runs/",
    "api/releases/",
    "api/runs/",
    "api/submissions/",
)
LABELLING = sorted(
    address
    for address in ADDRESSES
    if not address.startswith((*EVALUATION, "admin/")) and address not in READS
)


@pytest.fixture
def researcher(db: None) -> Any:
    """A researcher."""
    return person("rosa", Role.RESEARCHER)


@pytest.fixture
def everything(admin: Any, annotator: Any) -> Query:
    """One of each thing that the addresses name, with the id 1."""
    species = Species.objects.create(pk=1, scientific_name="Bufo bufo", genus="Bufo")
    image = Image.objects.create(
        pk=1,
        dataset="toy",
        source_id="1",
        file_name="1.jpg",
        sha256="abcdef12" + "0" * 56,
        format="JPEG",
        width=4,
        height=3,
        size_bytes=100,
        species=species,
    )
    query = Query.objects.create(
        pk=1, query_id=1, text="a toad", category="Species ID", split="val", state="open"
    )
    QueryExample.objects.create(query=query, image=image, relevant=True)
    ImageFlag.objects.create(pk=1, image=image, kind="other", note="odd", raised_by=annotator)
    Job.objects.create(pk=1, kind="embed", created_by=admin)
    return query


def test_the_walk_knows_labeling_from_evaluation() -> None:
    assert {"search/", "corpus/", "queries/1/", "api/queries/", "api/search/"} <= set(LABELLING)
    assert set(READS) <= set(ADDRESSES)


@pytest.mark.parametrize("method", ["get", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("address", LABELLING)
def test_labeling_is_closed_to_researchers(
    researcher: Any, everything: Query, address: str, method: str
) -> None:
    program = address.startswith("api/")
    clients = [client_of(researcher), *([api_of(researcher)] if program else [])]
    closed = {403, 404, 405} if not program or address.startswith("api/jobs/") else {403}
    assert {getattr(one, method)(f"/{address}").status_code for one in clients} <= closed
    everything.refresh_from_db()
    assert (everything.text, everything.state) == ("a toad", "open")
    assert not JudgmentEvent.objects.exists()
    assert not CandidateList.objects.exists()
    assert ImageFlag.objects.get().raised_by.username == "ann"
    assert images_in_corpus().filter(pk=1).exists()


def test_the_same_addresses_are_there_for_those_who_label(
    annotator: Any, researcher: Any, everything: Query
) -> None:
    for address in ("queries/1/", "search/", "corpus/", "api/queries/", "api/queries/1/"):
        assert client_of(annotator).get(f"/{address}").status_code == 200
        assert client_of(researcher).get(f"/{address}").status_code in (403, 404)


@pytest.mark.parametrize(("address", "status"), READS.items())
def test_what_is_left_to_researchers(
    researcher: Any, everything: Query, address: str, status: int
) -> None:
    assert client_of(researcher).get(f"/{address}").status_code == status


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


def test_no_query_is_there_to_judge(researcher: Any, everything: Query) -> None:
    assert not queries_visible_to(researcher).exists()
    assert not sees_query(researcher, everything)
    assert not can_judge(researcher, everything)
    assert judging_problem(researcher, everything).startswith("Researchers don't judge")


def test_the_log_in_leads_to_the_leaderboard(researcher: Any) -> None:
    assert client_of(researcher).get("/")["Location"] == reverse("leaderboard-latest")


def test_the_navigation_shows_what_is_open(clients: dict[str, Client], researcher: Any) -> None:
    shown = {
        "researcher": ["Leaderboard", "Releases"],
        "annotator": ["Queries", "Search", "Corpus"],
        "reviewer": ["Queries", "Search", "Corpus", "Flags", "Leaderboard", "Releases"],
        "admin": ["Queries", "Search", "Corpus", "Flags", "Leaderboard", "Releases", "Admin"],
    }
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
