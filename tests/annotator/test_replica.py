"""Search and leaderboard read from a real standby of the session's database server."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.db import InternalError, OperationalError, connection, connections, transaction
from django.http import HttpRequest, HttpResponse
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.urls import resolve, reverse

from annotator.web import replica as web
from annotator.web.replica import COOKIE, READ, ReplicaMiddleware, Watch, replica_lag
from core.replica import REPLICA, on_primary, reading_replica
from retrieval.corpus.models import Species
from retrieval.embedding.models import TextVector
from tests.annotator.test_metrics_page import values
from tests.annotator.world import World, make_world
from tests.conftest import PASSWORD, api_of, client_of
from tests.processes import wait_for
from tests.settings import SESSION_DIR
from tests.standby import Standby

pytestmark = [
    pytest.mark.faults,
    pytest.mark.django_db(transaction=True, databases=["default", REPLICA]),
]


@pytest.fixture(scope="module")
def server(django_db_setup: None, tmp_path_factory: Any) -> Iterator[Standby]:
    """A standby of the session's server, as the replica in the settings."""
    made = Standby(SESSION_DIR, tmp_path_factory.mktemp("standby") / "var")
    database = deepcopy(connection.settings_dict) | {"HOST": made.host}
    database["OPTIONS"] |= {"options": "-c default_transaction_read_only=on"}
    django_settings.DATABASES[REPLICA] = database
    yield made
    connections[REPLICA].close()
    del connections[REPLICA], django_settings.DATABASES[REPLICA]
    made.remove()


@pytest.fixture
def standby(server: Standby, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Standby:
    """The standby, looked at by each request."""
    monkeypatch.setattr(web, "watch", Watch())
    monkeypatch.setattr(web, "CHECK_SECONDS", 0.0)
    return server


@pytest.fixture
def world(standby: Standby, settings: Any, tmp_path: Path) -> World:
    """One of everything, on both servers."""
    made = make_world(settings, tmp_path)
    caught_up()
    return made


def caught_up() -> None:
    wait_for(lambda: replica_lag() == 0, what="the standby", pause=0.02)


def database_name() -> str:
    return str(connection.settings_dict["NAME"])


PARAMETERS = {
    "search": "?text=toad",
    "api-search": "?text=toads",
    "api-species-groups": "?search=b",
}


def test_every_view_of_the_list_is_answered_by_the_standby(world: World, settings: Any) -> None:
    # Requests are counted on the primary.
    settings.API_RATE = (1_000_000, 3600)
    admin = world.people["admin"]
    parameters = {**PARAMETERS, "compare-runs": f"?a={world.run.pk}"}
    walked = set()
    for address in world.addresses:
        view = resolve(f"/{address}").view_name
        if view not in READ:
            continue
        walked.add(view)
        path = f"/{address}{parameters.get(view, '')}"
        for client in [client_of(admin), api_of(admin)][: 1 + view.startswith("api-")]:
            with (
                CaptureQueriesContext(connections[REPLICA]) as read,
                CaptureQueriesContext(connection) as written,
            ):
                answer = client.get(path)
            assert answer.status_code in (200, 302), (path, answer.content)
            assert len(read) > 1, path
            # The session with its person, or the token; the text; whether a matrix is to be packed;
            # and what `replica_lag` asks.
            expected = (
                *("django_session", "annotator_", "retrieval_textvector"),
                *("retrieval_embeddingcount", "pg_current_wal"),
            )
            others = [
                one["sql"]
                for one in written
                if one["sql"] not in ("BEGIN", "COMMIT")
                and not any(word in one["sql"] for word in expected)
            ]
            assert others == [], path
    assert walked == READ
    assert set(TextVector.objects.values_list("text", flat=True)) >= {"toad", "toads"}


def test_people_and_what_they_have_written_are_read_from_the_primary(
    world: World, standby: Standby
) -> None:
    species = world.species
    path = reverse("api-species-detail", args=[species.pk])

    def name(client: Client) -> str:
        return str(client.get(path).json()["scientific_name"])

    with standby.halted(database_name()):
        Species.objects.filter(pk=species.pk).update(scientific_name="Bufo new")
        reader, writer = client_of(world.people["admin"]), Client()
        # Of this log-in the standby knows nothing.
        assert name(reader) == "Bufo bufo"
        secret = {"username": world.people["admin"].username, "password": PASSWORD}
        assert writer.post("/login/", secret).status_code == 302
        assert writer.cookies[COOKIE]["max-age"] == web.STICKY_SECONDS
        assert name(writer) == "Bufo new"
        del writer.cookies[COOKIE]
        assert name(writer) == "Bufo bufo"
        # A new token opens, one that was revoked doesn't.
        script = api_of(world.people["admin"])
        assert name(script) == "Bufo bufo"
        world.people["admin"].api_tokens.all().delete()
        assert script.get(path).status_code == 401
    wait_for(lambda: name(reader) == "Bufo new", what="the standby")


def test_judgments_which_none_of_the_pages_shows_dont_count_as_written(world: World) -> None:
    client = client_of(world.people["annotator"])
    answer = client.post(
        f"/api/queries/{world.queries['open'].pk}/judgments/", [], "application/json"
    )
    assert answer.status_code == 200
    assert COOKIE not in client.cookies


def test_a_view_that_writes_fails_loudly(standby: Standby, admin: Any) -> None:
    def view(request: HttpRequest) -> HttpResponse:
        Species.objects.create(scientific_name="Rana nova")
        return HttpResponse()

    request = RequestFactory().get("/search/")
    request.user, request.resolver_match = admin, resolve("/search/")
    with pytest.raises(InternalError, match="read-only transaction"):
        ReplicaMiddleware(view).process_view(request, view, (), {})
    # Not only because a standby can't: a replica may have become a primary.
    with connections[REPLICA].cursor() as cursor:
        cursor.execute("SHOW default_transaction_read_only")
        assert cursor.fetchone() == ("on",)
    assert not Species.objects.filter(scientific_name="Rana nova").exists()


def test_within_reading_the_primary_can_be_worked_on(standby: Standby) -> None:
    with reading_replica():
        assert connection.alias == REPLICA
        with transaction.atomic():
            with on_primary():
                assert not connection.in_atomic_block
                Species.objects.create(scientific_name="Rana nova")
            assert connection.in_atomic_block
        with pytest.raises(OperationalError), connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    assert connection.alias == "default"
    assert Species.objects.filter(scientific_name="Rana nova").exists()


def test_a_replica_that_fails_or_lags_is_left_alone_and_said(
    world: World, standby: Standby, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    caplog.set_level(logging.INFO, logger=web.__name__)
    client = client_of(world.people["admin"])
    board = reverse("leaderboard", args=[world.release.pk])

    def health() -> tuple[set[str], str]:
        parts = client.get("/healthz").json()
        ill = {part for part, state in parts.items() if state != "ok"} - {"status", "replica"}
        assert (parts["status"] == "unavailable") == bool(ill)
        return ill, parts["replica"]

    def reads() -> bool:
        with CaptureQueriesContext(connections[REPLICA]) as read:
            assert client.get(board).status_code == 200
        return any("benchmark_release" in one["sql"] for one in read)

    assert reads()
    assert 0 <= values(client.get("/metrics"))["inquire_replica_lag_seconds",] < web.MOST_LAG
    # A statement in the middle of a page and of an answer of the API is canceled by the standby.
    for path in (board, reverse("api-release-runs", args=[world.release.pk])):
        with connections[REPLICA].execute_wrapper(recovery_conflict):
            assert client.get(path).status_code == 200
    assert "The primary answers instead of the replica: canceling statement" in caplog.text
    assert reads()

    with standby.halted(database_name()):
        Species.objects.create(scientific_name="Rana nova")
        with monkeypatch.context() as patch:
            patch.setattr(web, "MOST_LAG", 0.0)
            assert not reads()
            assert health()[1] == "behind"
            assert values(client.get("/metrics"))["inquire_replica_lag_seconds",] > 0
    caught_up()

    standby.stop()
    try:
        assert not reads()
        assert health()[1] == "unreachable"
        assert ("inquire_replica_lag_seconds",) not in values(client.get("/metrics"))
        assert "replica: unreachable; pages read from the primary" in caplog.text
    finally:
        standby.start()
    wait_for(reads, what="the replica's use")
    assert "replica: ok; pages read from the replica" in caplog.text
    assert health()[1] == "ok"


def recovery_conflict(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    """As the standby does where it must replay what a statement's snapshot contradicts."""
    if "benchmark_run" not in sql:
        return execute(sql, params, many, context)
    raise OperationalError("canceling statement due to conflict with recovery")


def test_the_primary_itself_is_no_replica(
    standby: Standby, monkeypatch: Any, client: Client
) -> None:
    monkeypatch.setitem(
        connections[REPLICA].settings_dict, "HOST", connection.settings_dict["HOST"]
    )
    connections[REPLICA].close()
    assert (replica_lag(), web.replica_state(), web.watch.well()) == (None, "no replica", False)
    connections[REPLICA].close()
