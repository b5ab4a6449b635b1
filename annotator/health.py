"""Whether the parts work: asked by people's monitors, without a log-in and without secrets."""

from datetime import timedelta

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models.functions import Now
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from annotator.models import WorkerHeartbeat

OK = "ok"
# Three beats: one may be late while the machine is busy.
WORKER_SILENCE = timedelta(seconds=45)


def database_health() -> str:
    """`ok`, or what is wrong."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return "unreachable"
    return OK


def migrations_health() -> str:
    """`ok`, or `pending` where the tables are older than the code."""
    executor = MigrationExecutor(connection)
    pending = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return "pending" if pending else OK


def worker_health() -> str:
    """`ok`, or `silent` where no worker gave a sign of life lately, by the database's clock."""
    alive = WorkerHeartbeat.objects.filter(seen_at__gt=Now() - WORKER_SILENCE).exists()
    return OK if alive else "silent"


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """200 with {status, database, migrations, worker} all ok, else 503 naming what is not."""
    parts = dict.fromkeys(("database", "migrations", "worker"), "unknown")
    checks = {
        "database": database_health,
        "migrations": migrations_health,
        "worker": worker_health,
    }
    try:
        for part, check in checks.items():
            parts[part] = check()
            if parts[part] != OK:
                break
    except DatabaseError:
        parts["database"] = "unreachable"
    healthy = all(state == OK for state in parts.values())
    body = {"status": OK if healthy else "unavailable", **parts}
    return JsonResponse(body, status=200 if healthy else 503)
