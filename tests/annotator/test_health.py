from datetime import timedelta
from threading import Event

import pytest
from django.db import connection, connections
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from annotator.models import WorkerHeartbeat
from annotator.processes.worker import beat
from annotator.web import health as checks
from core.locks import lock_key
from core.outages import free_bytes
from tests.processes import free_port, wait_for

pytestmark = pytest.mark.django_db(transaction=True)
WELL = dict.fromkeys(
    ("status", "database", "migrations", "worker", "texts", "broker", "disk"), "ok"
)


def health(client):
    answer = client.get("/healthz")
    assert "no-store" in answer.headers["Cache-Control"]
    return answer.status_code, answer.json()


def pass_time(seconds):
    """Make each sign of life older, as if the clock had gone on."""
    WorkerHeartbeat.objects.update(seen_at=Now() - timedelta(seconds=seconds))


def test_healthy_with_a_worker_that_lives(client):
    beat("worker@here:1")
    assert health(client) == (200, WELL)


def test_the_web_server_alone_is_well_whatever_is_away(client):
    with CaptureQueriesContext(connection) as asked:
        answer = client.get("/healthz/web")
    assert (answer.status_code, answer.content, len(asked)) == (200, b"ok\n", 0)


def test_no_worker_ever(client):
    assert health(client) == (503, {**WELL, "status": "unavailable", "worker": "silent"})


def test_a_worker_that_fell_silent(client):
    beat("worker@here:1")
    pass_time(46)
    assert health(client)[1]["worker"] == "silent"
    pass_time(40)
    assert health(client)[1]["worker"] == "ok"


def test_a_real_worker_gives_signs_of_life(client, worker):
    wait_for(lambda: health(client)[0] == 200, what="a sign of life")


def test_nobody_encodes_texts_for_this_process(client, settings):
    beat("worker@here:1")
    settings.TEXT_PROCESS = True
    assert health(client) == (503, {**WELL, "status": "unavailable", "texts": "silent"})
    other = connections.create_connection("default")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("texts")])
        assert health(client) == (200, WELL)
    finally:
        other.close()


def test_a_disk_with_less_than_it_should_have(client, settings):
    beat("worker@here:1")
    settings.DISK_MIN_FREE_BYTES = 2 * free_bytes()
    assert health(client) == (503, {**WELL, "status": "unavailable", "disk": "low"})


def test_a_folder_of_messages_that_is_gone_and_cannot_be_made(client, settings, tmp_path):
    beat("worker@here:1")
    folder = settings.VAR_DIR / "broker"
    assert health(client) == (200, WELL)
    folder.rename(tmp_path / "broker")
    folder.write_text("A file in its place")
    try:
        assert health(client) == (503, {**WELL, "status": "unavailable", "broker": "unreachable"})
    finally:
        folder.unlink()
        (tmp_path / "broker").rename(folder)
    assert health(client) == (200, WELL)


def test_a_check_that_hangs_is_not_waited_for_nor_begun_again(client, monkeypatch):
    beat("worker@here:1")
    begun, end = [], Event()

    def hangs():
        begun.append(1)
        end.wait(60)
        return {"broker": "ok"}

    monkeypatch.setattr(checks, "ANSWER_SECONDS", 1.0)
    parts = {check: late for check, late in checks.CHECKS.items() if "broker" not in late}
    monkeypatch.setattr(checks, "CHECKS", {**parts, hangs: {"broker": "no answer"}})
    for _ in range(3):
        status, body = health(client)
        # On a busy machine others may be late too.
        assert (status, body["status"], body["broker"]) == (503, "unavailable", "no answer")
    assert len(begun) == 1
    end.set()
    wait_for(lambda: health(client) == (200, WELL), what="the check's end")


def test_a_beat_renews_the_worker_and_forgets_the_long_dead(client):
    beat("worker@here:1")
    beat("worker@here:2")
    WorkerHeartbeat.objects.update(seen_at=Now() - timedelta(days=2))
    beat("worker@here:2")
    assert list(WorkerHeartbeat.objects.values_list("worker", flat=True)) == ["worker@here:2"]


def test_migrations_that_were_not_applied(client):
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET app = 'x' WHERE app = 'axes'")
    try:
        status, body = health(client)
    finally:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE django_migrations SET app = 'axes' WHERE app = 'x'")
    assert (status, body["database"], body["migrations"]) == (503, "ok", "pending")


def test_a_database_that_cannot_be_reached(client, monkeypatch):
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(connection.settings_dict, "HOST", "127.0.0.1")
        patch.setitem(connection.settings_dict, "PORT", free_port())
        status, body = health(client)
    connection.close()
    away = dict.fromkeys(("migrations", "worker", "texts"), "unknown")
    assert status == 503
    assert body == {**WELL, **away, "status": "unavailable", "database": "unreachable"}


def test_only_reading_is_allowed(client):
    assert client.post("/healthz").status_code == 405
    assert client.head("/healthz").status_code == 503
