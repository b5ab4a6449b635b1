"""Traces by OpenTelemetry, sent to a collector that reads OTLP as others do."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import start_site
from tests.processes import ROOT, wait_for

pytest.importorskip("opentelemetry.sdk", reason="the extra `otel` isn't installed")


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


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.mark.e2e
def test_requests_sql_and_jobs_are_traced(collector: Collector, tmp_path: Path) -> None:
    site = start_site(
        tmp_path / "var",
        OTEL_EXPORTER_OTLP_ENDPOINT=f"http://127.0.0.1:{collector.server.server_port}",
        OTEL_BSP_SCHEDULE_DELAY="100",
        OTEL_SERVICE_NAME="tried",
    )
    try:
        site.served.wait_healthy()
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
    finally:
        site.served.end()
    told = str([str(span) for _, span in collector.spans])
    assert f"/api/queries/{query}/" not in told
    assert "secret-" not in told
    assert {service for service, _ in collector.spans} == {"tried"}


def test_nothing_is_imported_without_a_collector() -> None:
    code = (
        "import django, sys; django.setup(); import annotator.wsgi; "
        # Redis' own client imports the API where it is installed.
        "print([name for name in sys.modules if name.startswith("
        "('opentelemetry.exporter', 'opentelemetry.instrumentation'))])"
    )
    assert run(code).stdout.strip() == "[]"


def test_the_extra_is_installed_where_tests_run() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = (ROOT / "requirements-dev.txt").read_text().splitlines()
    assert set(project["optional-dependencies"]["otel"]) <= set(installed)


def test_missing_packages_are_named() -> None:
    code = "import sys; sys.modules['opentelemetry.sdk'] = None; import django; django.setup()"
    done = run(code, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "OTEL_EXPORTER_OTLP_ENDPOINT needs packages that are missing (opentelemetry.sdk.trace): "
        "pip install 'inquire-annotator[otel]'."
    )


def run(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Some Python with the application's settings."""
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "annotator.settings"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
