"""The pages from which admins look after the installation, and what they must not show."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from annotator.environment import Environment
from annotator.manage.settings_in_force import settings_in_force
from annotator.manage.views import JOBS_ON_A_PAGE
from annotator.models import Backup
from core.jobs.models import Job
from core.jobs.services import job_slice_run
from tests.conftest import api_of, client_of

pytestmark = pytest.mark.django_db

PAGES = ("/manage/", "/manage/jobs/", "/manage/settings/")


def test_admins_alone_are_let_in(
    clients: dict[str, Client], researcher: Any, annotator_api: Any, admin: Any
) -> None:
    for role, client in (clients | {"researcher": client_of(researcher)}).items():
        if role == "anonymous":
            continue
        expected = 200 if role == "admin" else 403
        assert {client.get(path).status_code for path in PAGES} == {expected}, role
        if role != "admin":
            assert client.post("/manage/backup/").status_code == 403
    assert {clients["anonymous"].get(path).status_code for path in PAGES} == {302}
    for path in ("/api/backups/", "/api/settings/"):
        assert annotator_api.get(path).status_code == 403
        assert api_of(admin).get(path).status_code == 200
    assert annotator_api.post("/api/backups/").status_code == 403
    assert not Job.objects.exists()


def test_no_link_leads_to_djangos_admin(clients: dict[str, Client]) -> None:
    page = clients["admin"].get("/manage/").content.decode()
    assert 'href="/admin/' not in page
    places = ("people", "benchmarks", "benchmarks/screening", "log", "manage/jobs")
    assert all(f'href="/{place}/"' in page for place in places)


def test_settings_in_force_hide_secrets(
    clients: dict[str, Client], settings: Any, monkeypatch: pytest.MonkeyPatch, admin: Any
) -> None:
    secrets = {
        "DATABASE_URL": "postgres://user:hunter2@host/name",
        "EMAIL_URL": "smtp://user:hunter2@mail",
        "S3_ENDPOINT_URL": "https://host/?token=hunter2",
        "MULTIMODAL_API_KEY": "hunter2",
        "OIDC_CLIENT_SECRET": "hunter2",
    }
    settings.VARIABLES = settings.VARIABLES | dict.fromkeys(secrets, True)
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
        if hasattr(settings, name):
            setattr(settings, name, value)
    settings.OIDC_RP_CLIENT_SECRET = "hunter2"
    settings.MULTIMODAL_ENDPOINTS = {"local": "http://user:hunter2@127.0.0.1/v1"}
    settings.STOP_STREAK = 73
    shown = {setting.name: setting for setting in settings_in_force()}
    assert all(shown[name].hidden for name in (*secrets, "MULTIMODAL_ENDPOINTS", "SECRET_KEY"))
    assert shown["STOP_STREAK"].value == "73"
    page = clients["admin"].get("/manage/settings/").content.decode()
    answer = api_of(admin).get("/api/settings/").content.decode()
    assert "hunter2" not in page + answer
    assert settings.SECRET_KEY not in page + answer
    assert "STOP_STREAK" in page


def test_misspelled_variables_are_named_without_their_values(
    clients: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ("/manage/", "/manage/settings/")
    for page in pages:
        assert "nothing reads it" not in clients["admin"].get(page).content.decode()
    monkeypatch.setenv("SECRET_KYE", "hunter2")
    for page in pages:
        shown = clients["admin"].get(page).content.decode()
        assert "<code>SECRET_KYE</code> is set" in shown
        assert "Is <code>SECRET_KEY</code> meant?" in shown
        assert "hunter2" not in shown


def test_every_variable_that_is_read_is_listed() -> None:
    env = Environment({"PORT": "80", "KEY_FILE": "/dev/null"})
    env.number("PORT", 8000, minimum=1)
    env.flag("DEBUG")
    env.chosen("EXTRAS", ["boxes"])
    env.text("KEY")
    assert env.read == {"PORT": True, "DEBUG": False, "EXTRAS": False, "KEY": True}


@pytest.mark.django_db(transaction=True)
def test_the_button_makes_one_backup_beside_its_age(
    admin: Any, settings: Any, tmp_path: Path
) -> None:
    settings.BACKUP_DIR = str(tmp_path)
    client = client_of(admin)
    assert "There is no backup yet." in client.get("/manage/").content.decode()
    for _ in range(2):
        assert client.post("/manage/backup/")["Location"] == "/manage/"
    job = Job.objects.get(kind="backup")
    page = client.get("/manage/").content.decode()
    assert f'data-job="{job.pk}"' in page
    assert "Make a backup" not in page
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == ("done", "")
    backup = Backup.objects.get()
    assert [str(path) for path in tmp_path.iterdir()] == [backup.file]
    page = client.get("/manage/").content.decode()
    assert "Make a backup" in page
    assert backup.file in page
    [listed] = api_of(admin).get("/api/backups/").json()["results"]
    assert (listed["file"], listed["problem"]) == (backup.file, "")


def test_jobs_are_pages_of_a_state(clients: dict[str, Client]) -> None:
    jobs = [Job(kind="pack", title=f"job {number}") for number in range(JOBS_ON_A_PAGE + 1)]
    jobs[0].state = Job.State.FAILED
    Job.objects.bulk_create(jobs)
    client = clients["admin"]
    page = client.get("/manage/jobs/")
    assert len(page.context["page"]) == JOBS_ON_A_PAGE
    assert "?page=2" in page.content.decode()
    assert [job.title for job in client.get("/manage/jobs/?page=2").context["page"]] == ["job 0"]
    failed = client.get("/manage/jobs/?state=failed").context["page"]
    assert [job.title for job in failed] == ["job 0"]
    assert client.get("/manage/jobs/?state=lost").status_code == 404
    assert client.get("/manage/jobs/?page=9").status_code == 404
