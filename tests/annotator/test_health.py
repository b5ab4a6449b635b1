import json
import subprocess
import sys
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models.functions import Now

from annotator.models import WorkerHeartbeat
from annotator.worker import beat
from tests.processes import ROOT, free_port

pytestmark = pytest.mark.django_db


def health(client):
    answer = client.get("/healthz")
    assert "no-store" in answer.headers["Cache-Control"]
    return answer.status_code, answer.json()


def test_healthy_with_a_worker_that_lives(client):
    beat("worker@here:1")
    assert health(client) == (
        200,
        {"status": "ok", "database": "ok", "migrations": "ok", "worker": "ok"},
    )


def test_no_worker_ever(client):
    status, body = health(client)
    assert (status, body["status"], body["worker"]) == (503, "unavailable", "silent")


def test_a_worker_that_fell_silent(client):
    beat("worker@here:1")
    WorkerHeartbeat.objects.update(seen_at=Now() - timedelta(seconds=46))
    assert health(client)[1]["worker"] == "silent"
    WorkerHeartbeat.objects.update(seen_at=Now() - timedelta(seconds=40))
    assert health(client)[1]["worker"] == "ok"


def test_a_beat_renews_the_worker_and_forgets_the_long_dead(client):
    beat("worker@here:1")
    beat("worker@here:2")
    WorkerHeartbeat.objects.update(seen_at=Now() - timedelta(days=2))
    beat("worker@here:2")
    assert list(WorkerHeartbeat.objects.values_list("worker", flat=True)) == ["worker@here:2"]


def test_migrations_that_were_not_applied(client):
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'axes'")
    status, body = health(client)
    assert (status, body["database"], body["migrations"]) == (503, "ok", "pending")


def test_a_database_that_cannot_be_reached(tmp_path, monkeypatch):
    monkeypatch.setenv("DJANGO_SETTINGS_MODULE", "annotator.settings")
    monkeypatch.setenv("VAR_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", f"postgres://nobody:hunter2@127.0.0.1:{free_port()}/none")
    script = (
        "import django; django.setup()\n"
        "from django.test import Client\n"
        "answer = Client(headers={'host': '127.0.0.1'}).get('/healthz')\n"
        "print(answer.status_code, answer.content.decode())"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    status, body = done.stdout.split(" ", 1)
    assert status == "503"
    assert json.loads(body) == {
        "status": "unavailable",
        "database": "unreachable",
        "migrations": "unknown",
        "worker": "unknown",
    }


def test_only_reading_is_allowed(client):
    assert client.post("/healthz").status_code == 405
    assert client.head("/healthz").status_code == 503
