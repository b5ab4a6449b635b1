"""What a researcher sees, who takes no part in labeling; test_addresses.py asks every address."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from core.access import Role, at_least, is_evaluator, names_hidden_from
from core.jobs.models import Job
from evaluation.runs.models import Run
from releases.models import Release
from tests.conftest import api_of, client_of

pytestmark = pytest.mark.django_db


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


def test_the_log_in_leads_to_the_leaderboard(researcher: Any) -> None:
    assert client_of(researcher).get("/")["Location"] == reverse("leaderboard-latest")


def test_the_navigation_shows_what_is_open(clients: dict[str, Client], researcher: Any) -> None:
    shown = {
        "researcher": ["Leaderboard", "Releases", "Help"],
        "annotator": ["Queries", "Images", "Help"],
        "reviewer": ["Queries", "Images", "Flags", "Leaderboard", "Releases", "Help"],
    }
    shown["admin"] = [*shown["reviewer"], "Manage"]
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
