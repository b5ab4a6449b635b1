"""`/metrics` for Prometheus: requests, jobs, the queue, judgments and the disk."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from typing import Final

from django.conf import settings
from django.db import connection
from django.db.models import Count, Max
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from rest_framework.request import Request
from rest_framework.views import APIView

from annotator.models import Backup
from annotator.web.health import queued_messages
from core.access import Role, require_role
from core.jobs.kinds import workers_alive
from core.jobs.models import Job
from labeling.judging.models import JudgmentEvent

REQUESTS: Final = Histogram(
    "inquire_request_seconds",
    "Time from a request to its answer, without the sending of files",
    ["method", "view", "status"],
    # 0.25 is the longest that a judgment may take: see deploy/prometheus-rules.yaml.
    buckets=(0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1, 2, 5, 10),
)
# A line a request, which LOG_LEVEL=WARNING leaves out.
logger = logging.getLogger("annotator.requests")
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class MetricsMiddleware:
    """Times every request by method, view and status, and logs a line of these."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on, and record and log how long it took."""
        begun = time.perf_counter()
        response = self.get_response(request)
        # Neither addresses nor invented methods, of which there is no end.
        view = request.resolver_match.view_name if request.resolver_match else ""
        method = request.method if request.method in METHODS else "other"
        seconds = time.perf_counter() - begun
        status = response.status_code
        REQUESTS.labels(method, view, status).observe(seconds)
        milliseconds = round(1000 * seconds)
        logger.info(
            "%s %s %d in %d ms",
            *(method, view or "-", status, milliseconds),
            extra={"method": method, "view": view, "status": status, "milliseconds": milliseconds},
        )
        return response


class StateCollector:
    """What the database, the broker and the disk say at the moment of the request."""

    def collect(self) -> Iterator[Metric]:
        """One value of each; some SQL queries."""
        jobs = GaugeMetricFamily("inquire_jobs", "Jobs", labels=["kind", "state"])
        counted = Job.objects.order_by().values_list("kind", "state").annotate(Count("pk"))
        for kind, state, number in counted:
            jobs.add_metric([kind, state], number)
        yield jobs
        yield _gauge("workers", "Workers seen within a minute", workers_alive())
        messages = queued_messages()
        if messages is not None:
            yield _gauge("queue_messages", "Messages to workers that none has taken", messages)
        judged = JudgmentEvent.objects.aggregate(last=Max("pk"))["last"] or 0
        yield CounterMetricFamily(
            "inquire_judgments", "Number of the last judgment or removal of one", value=judged
        )
        disk = shutil.disk_usage(settings.VAR_DIR)
        yield _gauge("disk_free_bytes", "Free on the disk of VAR_DIR", disk.free)
        yield _gauge("disk_bytes", "Size of the disk of VAR_DIR", disk.total)
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            yield _gauge("database_bytes", "Size of the database", cursor.fetchone()[0])
        backup = Backup.objects.exclude(finished_at=None).first()
        if backup is not None:
            began = backup.started_at.timestamp()
            yield _gauge("last_backup_timestamp_seconds", "Moment of the last whole backup", began)


class MetricsView(APIView):
    """The metrics, to admins: Prometheus sends an admin's API token."""

    # No part of the API: its description doesn't name it.
    schema = None

    def get(self, request: Request) -> HttpResponse:
        """Answer in Prometheus's text format."""
        require_role(request.user, Role.ADMIN)
        registry = CollectorRegistry()
        if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
            MultiProcessCollector(registry)
        else:
            registry.register(REGISTRY)
        registry.register(StateCollector())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


def _gauge(name: str, about: str, value: float) -> Metric:
    return GaugeMetricFamily(f"inquire_{name}", about, value=value)
