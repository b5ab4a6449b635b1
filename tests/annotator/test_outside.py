"""What requests ask outside of this machine: nobody but a few services, of which one that is slow
holds one thread of a web process at most.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from celery import Celery
from django.conf import settings as django_settings
from django.test import Client

from annotator.people.services import mails_set
from annotator.web import health
from core import outside
from core.bucket import Bucket
from core.jobs.models import Job
from core.log_lines import request_id
from core.outages import LogInAway, StorageAway
from core.outside import Outside
from labeling.queries.models import Assignment, Query
from retrieval.embedding.models import EmbeddingModel
from retrieval.images.storage import image_store
from tests.annotator import sockets
from tests.conftest import api_of, client_of
from tests.labeling.conftest import make_images, new_query, toy_model
from tests.processes import wait_for
from tests.retrieval.buckets import KEYS
from tests.retrieval.making import image_row, jpeg

__all__ = ["new_query", "toy_model"]
HUB = "hf-hub:owner/name"
THREADS = 4
LONG = 60.0


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call is slow after a moment, and given up soon after."""
    monkeypatch.setattr(outside, "GRACE", 0.05)
    monkeypatch.setattr(outside, "PATIENCE", 0.2)
    monkeypatch.setattr(outside, "SHORT_WAIT", 0.01)


def in_request(call: Callable[[], Any]) -> Any:
    token = request_id.set("a")
    try:
        return call()
    finally:
        request_id.reset(token)


@contextmanager
def hanging() -> Iterator[tuple[threading.Event, Callable[[], str]]]:
    """A call that ends when the event is set, at the latest with the block."""
    end = threading.Event()

    def call() -> str:
        end.wait(LONG)
        return "answered"

    try:
        yield end, call
    finally:
        end.set()


@pytest.mark.pure
class TestOutside:
    """The rule, without a service."""

    def test_of_several_threads_one_waits_for_a_slow_call(
        self, soon: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(outside, "PATIENCE", LONG)
        service = Outside("bucket", StorageAway)
        with hanging() as (end, call), ThreadPoolExecutor(THREADS) as web:
            asking = [web.submit(in_request, lambda: service.ask(call)) for _ in range(THREADS)]
            refused: set[Future[Any]] = set()
            while len(refused) < THREADS - 1:
                done, _ = wait(set(asking) - refused, return_when=FIRST_COMPLETED)
                refused |= done
            assert all(isinstance(one.exception(), StorageAway) for one in refused)
            (waiting,) = set(asking) - refused
            assert not waiting.done()
            # The next are refused too, and begin no call.
            with pytest.raises(StorageAway):
                in_request(lambda: service.ask(pytest.fail))
            end.set()
            assert waiting.result() == "answered"
        assert in_request(lambda: service.ask(lambda: "well again")) == "well again"

    def test_a_call_without_an_answer_is_given_up_and_nobody_asks_for_a_while(
        self, soon: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = Outside("provider", LogInAway)
        with hanging() as (_, call):
            with pytest.raises(LogInAway):
                in_request(lambda: service.ask(call))
            monkeypatch.setattr(service, "_rests_until", float("inf"))
            with pytest.raises(LogInAway):
                in_request(lambda: service.ask(pytest.fail))
            monkeypatch.setattr(service, "_rests_until", 0.0)
            monkeypatch.setattr(outside, "PATIENCE", LONG)
            assert in_request(lambda: service.ask(lambda: "well again")) == "well again"

    def test_an_error_that_comes_late_counts_as_no_answer_and_one_at_once_does_not(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service = Outside("bucket", StorageAway)
        monkeypatch.setattr(outside, "PATIENCE", LONG)

        def fail() -> None:
            raise OSError("refused")

        # What comes within the grace is at once, and after none all is late.
        for grace in (LONG, LONG, 0.0):
            monkeypatch.setattr(outside, "GRACE", grace)
            with pytest.raises(OSError, match="refused"):
                in_request(lambda: service.ask(fail))
        with pytest.raises(StorageAway):
            in_request(lambda: service.ask(pytest.fail))

    def test_calls_that_were_given_up_do_not_heap_up(
        self, soon: None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        service, begun = Outside("bucket", StorageAway), []
        with hanging() as (_, call):
            for _ in range(2 * outside.MOST_CALLS):
                monkeypatch.setattr(service, "_rests_until", 0.0)
                with pytest.raises(StorageAway):
                    in_request(lambda: service.ask(lambda: (begun.append(1), call())))
        assert len(begun) == outside.MOST_CALLS

    def test_a_call_that_goes_on_is_waited_for(self, soon: None) -> None:
        service, heard = Outside("bucket", StorageAway), []
        with hanging() as (end, call):

            def hear() -> float:
                heard.append(time.monotonic())
                if len(heard) > 10:
                    end.set()
                return heard[-1]

            assert in_request(lambda: service.ask(call, heard=hear)) == "answered"

    def test_what_is_told_is_not_waited_for(
        self, soon: None, caplog: pytest.LogCaptureFixture
    ) -> None:
        service, told = Outside("mail server"), []
        with hanging() as (end, call):
            for number in range(5):
                in_request(lambda n=number: service.tell(lambda: (call(), told.append(n))))
            assert told == []
            end.set()
            in_request(lambda: service.tell(lambda: (_ for _ in ()).throw(OSError("refused"))))
            service._teller.shutdown()
        assert told == list(range(5))
        assert "mail server could not be told: refused" in caplog.text

    def test_outside_of_requests_calls_are_made_where_they_stand(self, soon: None) -> None:
        service, threads = Outside("broker"), []
        ask = lambda: threads.append(threading.current_thread())  # noqa: E731
        service.ask(ask)
        service.tell(ask)
        assert threads == [threading.current_thread()] * 2
        with pytest.raises(OSError, match="refused"):
            service.tell(lambda: (_ for _ in ()).throw(OSError("refused")))


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never says anything; its host and port."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """No service is known to be slow."""
    for name in ("BUCKET", "PROVIDER", "MAIL", "BROKER"):
        one: Outside = getattr(outside, name)
        monkeypatch.setattr(one, "_rests_until", 0.0)
        monkeypatch.setattr(one, "_given_up", False)


@pytest.mark.usefixtures("db", "anew", "soon", "sockets_of_requests")
class TestSilentServices:
    """Each service, when it takes connections and never answers."""

    def test_images_say_that_the_bucket_is_away(
        self, in_bucket: Any, settings: Any, tmp_path: Path, annotator: Any, silent: str
    ) -> None:
        settings.VAR_DIR = tmp_path
        image = image_row(1, sha256=image_store(jpeg("red")).sha256)
        settings.S3_ENDPOINT_URL = f"http://{silent}"
        settings.STORAGES = {**settings.STORAGES}
        client = client_of(annotator)
        client.raise_request_exception = False
        for address in (image.thumbnail_url, image.url):
            answer = client.get(address)
            assert (answer.status_code, answer["Retry-After"]) == (503, "5")
        assert client.get("/").status_code == 200

    def test_a_log_in_says_that_the_provider_is_away(
        self, client: Client, settings: Any, silent: str
    ) -> None:
        settings.OIDC_ISSUER, settings.OIDC_RP_CLIENT_ID = f"http://{silent}", "annotator"
        settings.OIDC_RP_CLIENT_SECRET = "hush"
        client.raise_request_exception = False
        for _ in range(2):
            answer = client.get("/oidc/")
            assert (answer.status_code, answer["Retry-After"]) == (503, "5")
            assert b"provider of log-ins doesn&#x27;t answer now" in answer.content
        assert client.get("/login/").status_code == 200


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("anew", "soon", "sockets_of_requests")
def test_mail_and_messages_to_workers_hold_nobody(
    settings: Any, silent: str, monkeypatch: pytest.MonkeyPatch, toy_model: EmbeddingModel,
    admin: Any, annotator: Any, new_query: Callable[..., Query],
) -> None:  # fmt: skip
    settings.EMAIL_URL, (host, _, port) = f"smtp://{silent}", silent.partition(":")
    settings.EMAIL_HOST, settings.EMAIL_PORT, settings.EMAIL_TIMEOUT = host, int(port), LONG
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    mails_set(user=annotator, email="ann@example.org", mails=True)
    make_images(6)
    query = new_query()
    client, address = client_of(admin), f"/queries/{query.pk}"
    with hanging() as (_, call):
        monkeypatch.setattr(Celery, "send_task", lambda *_, **__: call())
        for sent in ({"state": "open"}, {"people": [annotator.pk], "wanted": 1}):
            page = f"{address}/{'team' if 'people' in sent else 'transition'}/"
            assert client.post(page, sent).status_code == 302
        assert Job.objects.filter(state="queued").exists()
        assert Assignment.objects.filter(annotator=annotator).exists()
        assert (outside.MAIL._told, outside.BROKER._told) == (1, 1)
        # Neither does what asks the broker how much waits for workers.
        monkeypatch.setattr(health, "_queued_messages", call)
        answer = api_of(admin).get("/metrics")
        assert answer.status_code == 200
        assert b"inquire_queue_messages" not in answer.content
    wait_for(lambda: outside.BROKER._told == 0, what="the message")


def test_of_several_who_ask_how_all_is_one_waits(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(health, "CHECKS", {dict: {}})
    monkeypatch.setattr(health, "wait", lambda _runs, timeout: waited.append(timeout))
    with health._waits:
        client.get("/healthz")
    client.get("/healthz")
    assert waited == [outside.GRACE, health.ANSWER_SECONDS]


@pytest.mark.pure
def test_the_limits_of_each_service_are_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    limits = in_request(lambda: Bucket("s3://bucket/prefix").client.meta.config)
    assert limits.connect_timeout + limits.read_timeout <= outside.PATIENCE
    assert limits.retries["total_max_attempts"] == 2
    assert sum(django_settings.OIDC_TIMEOUT) <= outside.PATIENCE
    assert django_settings.EMAIL_TIMEOUT <= outside.PATIENCE
    assert outside.PATIENCE <= 5
    assert django_settings.CELERY_TASK_PUBLISH_RETRY_POLICY["max_retries"] == 1


def test_a_request_that_asks_another_is_named(
    db: None, client: Client, monkeypatch: pytest.MonkeyPatch, sockets_of_requests: list[str]
) -> None:
    """The test of all requests sees what it is to see."""

    def ask(*_: Any, **__: Any) -> Any:
        # An address of documents, which no other test asks (RFC 5737).
        return socket.create_connection(("198.51.100.7", 9), timeout=1)

    monkeypatch.setattr(health, "CHECKS", {})
    monkeypatch.setattr(health, "JsonResponse", ask)
    with pytest.raises(sockets.Forbidden, match=r"/healthz asks 198\.51\.100\.7:9"):
        client.get("/healthz")
    assert sockets_of_requests.pop().startswith("/healthz asks 198.51.100.7:9 (socket.getaddrinfo")
