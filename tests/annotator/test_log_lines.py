"""The ids of requests and jobs in the lines of the logs, and the lines' two forms."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Callable, Iterator
from logging.config import DictConfigurator
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.test import Client
from django.urls import path

from annotator.processes import supervisor
from core.jobs.kinds import HANDLERS
from core.jobs.models import Job
from core.jobs.services import Slice, job_create, job_slice_run

logger = logging.getLogger("annotator.toy")


def works(request: HttpRequest, name: str) -> HttpResponse:
    logger.warning("within")
    return HttpResponse("well")


def fails(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a fault of ours")


def streams(request: HttpRequest) -> StreamingHttpResponse:
    def rows() -> Iterator[str]:
        logger.warning("on the way")
        yield "row\n"

    return StreamingHttpResponse(rows())


urlpatterns = [
    path("works/<name>/", works, name="works"),
    path("api/fails/", fails, name="fails"),
    path("streams/", streams, name="streams"),
]
handler404 = "annotator.web.problems.page_not_found"
handler500 = "annotator.web.problems.server_error"

Lines = Callable[[], list[str]]


@pytest.fixture
def form() -> str:
    return "json"


@pytest.fixture
def lines(form: str, settings: Any) -> Iterator[Lines]:
    """What the console's handler would have written, in the form `form`."""
    configured = DictConfigurator(django_settings.LOGGING)
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(configured.configure_formatter(configured.config["formatters"][form]))
    for name in configured.config["handlers"]["console"]["filters"]:
        handler.addFilter(configured.configure_filter(configured.config["filters"][name]))
    settings.ROOT_URLCONF = __name__
    root, level = logging.getLogger(), logging.getLogger().level
    root.setLevel(logging.INFO)
    root.addHandler(handler)
    yield lambda: written.getvalue().splitlines()
    root.removeHandler(handler)
    root.setLevel(level)


@pytest.fixture
def client() -> Client:
    return Client(raise_request_exception=False)


def parsed(lines: Lines) -> list[dict[str, Any]]:
    return [json.loads(line) for line in lines()]


def test_a_request_has_one_id_which_its_lines_and_its_answer_carry(
    lines: Lines, client: Client
) -> None:
    ids = [client.get("/works/ann/").headers["X-Request-ID"] for _ in range(2)]
    logger.warning("after")
    assert len(set(ids)) == 2
    found = [(line["message"], line.get("request_id")) for line in parsed(lines)]
    assert [(text.split(" in ")[0], one) for text, one in found] == [
        ("within", ids[0]),
        ("GET works 200", ids[0]),
        ("within", ids[1]),
        ("GET works 200", ids[1]),
        ("after", None),
    ]


@pytest.mark.parametrize("form", ["line"])
def test_a_line_of_text_carries_the_id(lines: Lines, client: Client) -> None:
    one = client.get("/works/ann/").headers["X-Request-ID"]
    logger.warning("after")
    within, request, after = lines()
    assert f"request_id={one}: within" in within
    assert f"request_id={one}: GET works 200" in request
    assert "request_id" not in after


def test_no_line_tells_an_address(lines: Lines, client: Client) -> None:
    """Links for a forgotten password are among them."""
    client.get("/works/ann/?person=ann")
    client.generic("BREW", "/api/ann/")
    client.get("/api/ann/")
    assert client.get("/api/fails/?person=ann").status_code == 500
    assert "ann" not in "".join(lines()).replace("annotator", "")
    requests = [line for line in parsed(lines) if line["logger"] == "annotator.requests"]
    assert [(one["method"], one["view"], one["status"]) for one in requests] == [
        ("GET", "works", 200), ("other", "", 404), ("GET", "", 404), ("GET", "fails", 500),
    ]  # fmt: skip
    [error] = [line for line in parsed(lines) if line["level"] == "ERROR"]
    assert error["exception"].startswith("Traceback")
    assert error["exception"].endswith("RuntimeError: a fault of ours")
    assert error["request_id"] == requests[-1]["request_id"]


def test_what_is_written_while_an_answer_streams_carries_the_id(
    lines: Lines, client: Client
) -> None:
    answer = client.get("/streams/")
    assert answer.getvalue() == b"row\n"
    answer.close()
    logger.warning("after")
    ids = {line["message"]: line.get("request_id") for line in parsed(lines)}
    assert ids["on the way"] == answer.headers["X-Request-ID"]
    assert ids["after"] is None


def test_only_a_proxy_may_give_a_plain_id(settings: Any, client: Client) -> None:
    settings.ROOT_URLCONF = __name__
    plain = ["7f3e-4.a_B", "x" * 64]
    for trusted, given in (
        *((True, one) for one in (*plain, "x" * 65, "a b", "é", "a\nINFO forged", "")),
        (False, plain[0]),
    ):
        settings.TRUST_PROXY = trusted
        answer = client.get("/works/ann/", headers={"X-Request-ID": given})
        assert (answer.headers["X-Request-ID"] == given) is (trusted and given in plain), given
        assert answer.headers["X-Request-ID"]


@pytest.mark.django_db(transaction=True)
def test_lines_of_a_jobs_slice_carry_its_id(lines: Lines, monkeypatch: pytest.MonkeyPatch) -> None:
    def step(job: Job, deadline: float) -> bool:
        logger.warning("at work")
        if job.params["fails"]:
            raise RuntimeError("a fault of ours")
        return True

    monkeypatch.setitem(HANDLERS, "toy", step)
    good, bad = (job_create(kind="toy", params={"fails": fails}) for fails in (False, True))
    assert job_slice_run(job_id=good.pk) is Slice.FINISHED
    logger.warning("between")
    assert job_slice_run(job_id=bad.pk) is Slice.FAILED
    logger.warning("after")
    found = [(line["message"], line.get("job_id")) for line in parsed(lines)]
    assert found == [
        ("at work", good.pk),
        ("between", None),
        ("at work", bad.pk),
        (f"Job {bad.pk} failed", bad.pk),
        ("after", None),
    ]


def test_a_log_that_has_grown_large_is_cut_while_a_program_writes_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "LOG_BYTES", 10)
    log, cut = tmp_path / "web.log", tmp_path / "web.log.1"
    writes = f"echo 123456789012; while test -s {log}; do sleep 0.01; done; echo end"
    child = supervisor.Child(
        "toy", ["sh", "-c", writes], {"PATH": os.environ["PATH"]}, log, once=True
    )
    watch = supervisor.Supervisor(lambda text: None)
    watch.run(child)
    watch.wait(lambda: child.ended() is not None)
    child.clear()
    assert cut.read_text() == "123456789012\n"
    assert log.read_text() == "end\n"
