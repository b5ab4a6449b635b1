"""Traces by OpenTelemetry, where OTEL_EXPORTER_OTLP_ENDPOINT names a collector.

The SDK reads the other variables: https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/
It begins its threads anew in processes that are forked, as gunicorn's and Celery's are.
"""

from __future__ import annotations

import os
from typing import Any

from django.http import HttpRequest

from annotator.environment import BadSetting
from core.log_lines import request_id
from core.optional import NotInstalled, optional

# As logs, traces name no addresses: links for a forgotten password are among them.
ADDRESSES = ("http.url", "http.target", "url.full", "url.path", "url.query")
DEFAULTS = {
    "OTEL_SERVICE_NAME": "inquire-annotator",
    "OTEL_PYTHON_DJANGO_EXCLUDED_URLS": "healthz",
}


def start_tracing() -> None:
    """Send a span of each request, each statement of SQL and each slice of a job to the collector.

    Called before the middleware is loaded and before the database is connected.
    """
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    try:
        with optional("otel"):
            from opentelemetry import trace
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.instrumentation.celery import CeleryInstrumentor
            from opentelemetry.instrumentation.django import DjangoInstrumentor
            from opentelemetry.instrumentation.psycopg2 import Psycopg2Instrumentor
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except NotInstalled as error:
        raise BadSetting(f"OTEL_EXPORTER_OTLP_ENDPOINT: {error}") from None
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    # Behind RequestIdMiddleware.
    DjangoInstrumentor().instrument(middleware_position=1, request_hook=_describe_request)
    Psycopg2Instrumentor().instrument()
    # A job may have thousands of slices: each is a trace, with a link to what sent its message.
    CeleryInstrumentor().instrument(use_span_links=True)
    _describe_slices(trace)


def _describe_request(span: Any, _request: HttpRequest) -> None:
    if span.is_recording():
        span.set_attributes({name: "" for name in ADDRESSES if name in span.attributes})
        span.set_attribute("inquire.request_id", request_id.get() or "")


def _describe_slices(trace: Any) -> None:
    from celery.signals import task_prerun

    @task_prerun.connect(weak=False)
    def describe(args: Any = (), **_: Any) -> None:
        # Celery's own handler, which is connected before, has begun the span.
        # Messages of an extra may be of no job.
        if args:
            trace.get_current_span().set_attribute("inquire.job_id", args[0])
