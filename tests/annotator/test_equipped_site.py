"""A site with all that an installation may add: PgBouncer in transaction mode with fewer
connections than threads, logs as JSON, and traces by OpenTelemetry, sent to a
collector that reads OTLP as others do.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import psycopg2
import pytest

from tests.processes import PGBOUNCER, PgBouncer, pool_url, wait_for
from tests.site import Site
from tests.worlds import start_site

pytestmark = [pytest.mark.e2e, pytest.mark.faults]

CONNECTIONS = 2
ACTS = 60


class Collector:
    """The spans that were sent to a port of this machine."""

    def __init__(self) -> None:
        from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

        spans: list[tuple[str, Any]] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = trace_service_pb2.ExportTraceServiceRequest()
                sent.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
                for resource in sent.resource_spans:
                    service = values(resource.resource)["service.name"]
                    for scope in resource.scope_spans:
                        spans.extend((service, span) for span in scope.spans)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.spans = spans
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def wait(self, **wanted: Any) -> Any:
        """The first span whose name or attributes (`__` for a dot) are these."""

        def fits(span: Any) -> bool:
            known = values(span) | {"name": span.name}
            return all(known.get(key.replace("__", ".")) == one for key, one in wanted.items())

        return wait_for(
            lambda: next((span for _, span in list(self.spans) if fits(span)), None),
            what=f"a span with {wanted}",
        )


def values(holder: Any) -> dict[str, Any]:
    """Attributes of a span or a resource."""
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in holder.attributes}


@dataclass
class Equipped:
    """The site and what is beside it."""

    site: Site
    pool: PgBouncer
    collector: Collector


@pytest.fixture(scope="module")
def equipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Equipped]:
    """A site whose web server reaches its database by a pool of CONNECTIONS."""
    if PGBOUNCER is None:
        pytest.skip("pgbouncer is not installed")
    pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` isn't installed")
    folder, collector = tmp_path_factory.mktemp("equipped"), Collector()
    made = start_site(
        folder / "var",
        DATABASE_POOL_URL=pool_url(),
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server.server_port}",
        OTEL_BSP_SCHEDULE_DELAY="100",
        OTEL_SERVICE_NAME="tried",
        LOG_FORMAT="json",
        TRUST_PROXY="true",
        # Celery warns of a worker that root runs, before its logs are set up.
        PYTHONWARNINGS="ignore",
    )
    try:
        pool = PgBouncer(folder, made.served, CONNECTIONS)
        try:
            made.served.wait_healthy()
            yield Equipped(made, pool, collector)
        finally:
            pool.kill()
    finally:
        made.served.end()
        collector.server.shutdown()
        collector.server.server_close()


@pytest.fixture
def site(equipped: Equipped) -> Site:
    return equipped.site


@pytest.fixture
def pool(equipped: Equipped) -> PgBouncer:
    return equipped.pool


@pytest.fixture
def collector(equipped: Equipped) -> Collector:
    return equipped.collector


def servers(site: Site) -> int:
    """How many connections to the database the pool has."""
    console = psycopg2.connect(site.served.environment["DATABASE_POOL_URL"], dbname="pgbouncer")
    try:
        console.autocommit = True
        with console.cursor() as cursor:
            cursor.execute("SHOW SERVERS")
            return len(cursor.fetchall())
    finally:
        console.close()


def test_each_process_writes_json(site: Site) -> None:
    asked = urllib.request.Request(f"{site.url}/login/", headers={"X-Request-ID": "from-a-proxy"})
    with urllib.request.urlopen(asked, timeout=30) as answer:
        assert answer.headers["X-Request-ID"] == "from-a-proxy"
    found = {}
    for name in ("web", "worker", "texts"):
        text = (site.served.var_dir / "log" / f"{name}.log").read_text()
        found[name] = [json.loads(line) for line in text.splitlines()]
    (one,) = [line for line in found["web"] if line.get("request_id") == "from-a-proxy"]
    assert (one["view"], one["status"]) == ("login", 200)
    assert {line["logger"] for line in found["web"]} >= {"annotator.requests", "gunicorn.error"}
    assert any(line["message"].endswith("ready.") for line in found["worker"])


def test_requests_sql_and_jobs_are_traced(site: Site, collector: Collector) -> None:
    query = site.open_query("a hopper on a stone")
    opening = collector.wait(http__method="PATCH")
    described = values(opening)
    assert described["http.route"] == "api/queries/<id:pk>/"
    assert len(described["inquire.request_id"]) == 16
    assert described["http.status_code"] == 200
    # The request's statements and its message to the workers are parts of its trace.
    within = [span for _, span in collector.spans if span.parent_span_id == opening.span_id]
    statements = [str(values(one).get("db.statement")) for one in within]
    assert any("labeling_query" in one for one in statements)
    (message,) = [one for one in within if one.name == "apply_async/core.run_job"]
    assert message.trace_id == opening.trace_id
    # A slice of the job is linked to it, knows its job, and has its own statements.
    run = wait_for(
        lambda: next(
            (
                span
                for _, span in list(collector.spans)
                if span.name == "run/core.run_job"
                and [link.span_id for link in span.links] == [message.span_id]
            ),
            None,
        ),
        what="the job's first slice",
    )
    assert values(run)["inquire.job_id"] > 0
    assert any(span.parent_span_id == run.span_id for _, span in collector.spans)
    # The encoder's statements come from the third process.
    wait_for(
        lambda: any(
            "retrieval_textvector" in str(values(span).get("db.statement"))
            and not span.parent_span_id
            for _, span in list(collector.spans)
        ),
        what="the encoder's statements",
    )
    # No address is sent: those for forgotten passwords are secret.
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{site.url}/password/MQ/secret-link/?and=secret-too")
    collector.wait(http__route="password/<uidb64>/<token>/")
    told = str([str(span) for _, span in collector.spans])
    assert f"/api/queries/{query}/" not in told
    assert "secret-" not in told
    assert {service for service, _ in collector.spans} == {"tried"}


def test_requests_share_few_connections_and_nothing_is_lost(site: Site) -> None:
    query = site.open_query("a hopper on a stone")
    ids = [one["image"] for one in site.candidates("ann", query, limit=ACTS)["results"]]

    def act(image: int) -> None:
        site.judge("ann", query, [(image, "not_relevant")])
        site.api("rita", "GET", f"/api/queries/{query}/outline/")
        site.api("rita", "GET", "/api/species/?search=hop")

    with ThreadPoolExecutor(12) as pool:
        list(pool.map(act, ids))
    assert 1 <= servers(site) <= CONNECTIONS
    judged = site.api("rita", "GET", f"/api/queries/{query}/judgments/?limit=100")
    assert {one["image"] for one in judged["results"]} == set(ids)


def test_a_pool_that_is_killed_is_waited_for(site: Site, pool: PgBouncer) -> None:
    query = site.open_query("a moth at a lamp")
    first, second = (one["image"] for one in site.candidates("ann", query, limit=2)["results"])
    site.judge("ann", query, [(first, "relevant")])
    pool.kill()
    with pytest.raises(urllib.error.HTTPError) as refused:
        site.judge("ann", query, [(second, "relevant")])
    assert (refused.value.code, refused.value.headers["Retry-After"]) == (503, "5")
    wait_for(lambda: site.served.health()["database"] == "unreachable", what="word of it")
    pool.start()
    wait_for(lambda: site.served.health()["database"] == "ok", what="the pool")
    site.judge("ann", query, [(second, "relevant")])
    assert site.progress("ann", query)["judged"] == 2
