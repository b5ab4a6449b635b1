"""The health check for monitoring, without a log-in and without secrets."""

import logging
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from datetime import timedelta
from threading import Lock

from celery import current_app
from django.conf import settings
from django.core.files.storage import default_storage
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from kombu.exceptions import KombuError

from annotator.models import WorkerHeartbeat
from core.locks import is_locked, lock_key
from core.outages import ServiceAway, free_bytes
from core.outside import BROKER, GRACE
from core.storage import is_shared

logger = logging.getLogger(__name__)

OK = "ok"
UNREACHABLE = "unreachable"
UNKNOWN = "unknown"
NO_ANSWER = "no answer"
# Three beats: one may be late while the machine is busy.
WORKER_SILENCE = timedelta(seconds=45)
ANSWER_SECONDS = 4.0

Parts = dict[str, str]


def database_health() -> Parts:
    """`database`, and what it knows: `migrations` (pending where the tables are older than the
    code), `worker` (silent where none gave a sign of life lately, by the database's clock) and
    `texts` (silent where no process encodes texts for this one).
    """
    parts = {"database": UNREACHABLE, "migrations": UNKNOWN, "worker": UNKNOWN, "texts": UNKNOWN}
    try:
        executor = MigrationExecutor(connection)
        parts["database"] = OK
        pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
        parts["migrations"] = "pending" if pending else OK
        lively = WorkerHeartbeat.objects.filter(seen_at__gt=Now() - WORKER_SILENCE)
        parts["worker"] = OK if lively.exists() else "silent"
        served = not settings.TEXT_PROCESS or is_locked(lock_key("texts"))
        parts["texts"] = OK if served else "silent"
    except (DatabaseError, InterfaceError):
        pass
    finally:
        connection.close()
    return parts


def queued_messages() -> int | None:
    """How many messages no worker has taken yet; None where the broker can't be reached."""
    try:
        return BROKER.ask(_queued_messages)
    except ServiceAway:
        return None


def _queued_messages() -> int | None:
    with current_app.connection_for_write() as broker:
        try:
            broker.ensure_connection(max_retries=1, interval_start=0)
            queue = broker.default_channel.queue_declare(queue=current_app.conf.task_default_queue)
        except (KombuError, *broker.connection_errors, *broker.channel_errors, OSError):
            return None
    return int(queue.message_count)


def broker_health() -> Parts:
    """`broker`: whether the queue of messages to the workers can be read."""
    return {"broker": UNREACHABLE if queued_messages() is None else OK}


def disk_health() -> Parts:
    """`disk`: whether VAR_DIR can be written and has DISK_MIN_FREE_BYTES left."""
    try:
        if not os.access(settings.VAR_DIR, os.W_OK):
            return {"disk": "read-only"}
        return {"disk": "low" if free_bytes() < settings.DISK_MIN_FREE_BYTES else OK}
    except OSError:
        return {"disk": UNREACHABLE}


def storage_health() -> Parts:
    """`storage`: whether the bucket of STORAGE_URL can be read; nothing where there is none."""
    if not is_shared():
        return {}
    try:
        default_storage.check()  # type: ignore[attr-defined]
    except Exception:
        logger.exception("The bucket of STORAGE_URL can't be read")
        return {"storage": UNREACHABLE}
    return {"storage": OK}


# Each check with what stands for its parts when it doesn't end in time.
CHECKS: dict[Callable[[], Parts], Parts] = {
    database_health: {
        "database": NO_ANSWER,
        "migrations": UNKNOWN,
        "worker": UNKNOWN,
        "texts": UNKNOWN,
    },
    broker_health: {"broker": NO_ANSWER},
    disk_health: {"disk": NO_ANSWER},
    storage_health: {"storage": NO_ANSWER},
}
_threads = ThreadPoolExecutor(max_workers=len(CHECKS), thread_name_prefix="health")
_running: "dict[Callable[[], Parts], Future[Parts]]" = {}
_begins = Lock()
_waits = Lock()
"""Held by the request that waits for checks: one alone keeps a thread of the web server so long."""


def _begun(check: Callable[[], Parts]) -> "Future[Parts]":
    """The check's run, which all who ask meanwhile share: one that hangs is not begun again."""
    with _begins:
        run = _running.get(check)
        if run is None or run.done():
            run = _running[check] = _threads.submit(check)
        return run


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 with `status` and every part `ok`, else 503 with what each part is, in ANSWER_SECONDS.

    What spreads requests over several web servers asks `web_health`: pages and labels need neither
    broker nor worker, and without the database each web server says what is away.
    """
    runs = {check: _begun(check) for check in CHECKS}
    alone = _waits.acquire(blocking=False)
    try:
        wait(runs.values(), timeout=ANSWER_SECONDS if alone else GRACE)
    finally:
        if alone:
            _waits.release()
    parts: Parts = {}
    for check, run in runs.items():
        parts |= run.result() if run.done() else CHECKS[check]
    ill = any(state != OK for state in parts.values())
    body = {"status": "unavailable" if ill else OK, **parts}
    return JsonResponse(body, status=503 if ill else 200)


@never_cache
@require_safe
def web_health(request: HttpRequest) -> HttpResponse:
    """200 as soon as the web server itself answers."""
    return HttpResponse("ok\n", content_type="text/plain")
