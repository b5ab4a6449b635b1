"""What a Celery worker does beside its tasks: heartbeats, and repeating lost messages."""

import logging
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from celery.signals import worker_process_init, worker_ready, worker_shutting_down
from django.db import close_old_connections, connection
from django.db.models.functions import Now

from annotator.models import WorkerHeartbeat
from core.parent_death import end_soon, end_with_parent, watch_parent

INTERVAL_SECONDS = 15.0
UPLOADS_SECONDS = 3600.0
# A worker's name holds its process number, so restarts leave rows behind.
KEEP = timedelta(days=1)
LIVELY = timedelta(minutes=1)

logger = logging.getLogger(__name__)
_stop = threading.Event()
_backups: "list[subprocess.Popen[bytes]]" = []
_threads: dict[str, threading.Thread] = {}


def beat(worker: str) -> None:
    """Record that `worker` lives, by the database's clock, and forget the long dead."""
    WorkerHeartbeat.objects.update_or_create(worker=worker, defaults={"seen_at": Now()})
    WorkerHeartbeat.objects.filter(seen_at__lt=Now() - KEEP).delete()


def live_workers() -> int:
    """How many workers were seen within the last minute."""
    return WorkerHeartbeat.objects.filter(seen_at__gt=Now() - LIVELY).count()


def backup_start() -> None:
    """Start `backup --daily` as a process of its own if one is due and ours has ended."""
    from annotator.backup.services import backup_is_due

    if any(one.poll() is None for one in _backups) or not backup_is_due():
        return
    parent = os.getpid()
    _backups[:] = [
        subprocess.Popen(
            [sys.executable, "-m", "annotator", "backup", "--daily", "--quiet"],
            stdin=subprocess.DEVNULL,
            preexec_fn=lambda: end_with_parent(parent),
        )
    ]


def aside(work: Callable[[], None]) -> None:
    """Do what may take long in a thread of its own, unless that is still at work from before."""
    name = work.__name__
    if (before := _threads.get(name)) is not None and before.is_alive():
        return

    def run() -> None:
        try:
            work()
        except Exception:
            logger.exception("%s failed; the worker tries again later", name)
        finally:
            connection.close()

    _threads[name] = threading.Thread(target=run, name=name, daemon=True)
    _threads[name].start()


def attend(worker: str, stop: threading.Event, interval: float = INTERVAL_SECONDS) -> None:
    """Beat, sweep and look for a due backup, at once and every `interval` seconds until `stop` is
    set; sweep uploads at once and every hour, and note what the machine has and reaches.

    Runs in a thread of the worker's main process, which runs no tasks itself: a task that hangs
    neither silences nor fakes the sign of life.
    """
    from core.jobs.services import jobs_sweep
    from retrieval.embedding import machines
    from retrieval.uploads.services import uploads_sweep

    uploads_swept = machine_noted = -math.inf
    while True:
        try:
            beat(worker)
            jobs_sweep()
            backup_start()
            if time.monotonic() - uploads_swept > UPLOADS_SECONDS:
                aside(uploads_sweep)
                uploads_swept = time.monotonic()
            if time.monotonic() - machine_noted > machines.EVERY_SECONDS:
                aside(machines.machine_note)
                machine_noted = time.monotonic()
        except Exception:
            # The database or broker is away for a while; the next turn tries again.
            logger.exception("The worker could not report or sweep; it tries again")
        finally:
            connection.close()
        if stop.wait(interval):
            break


@worker_ready.connect
def start(sender: Any = None, **_: Any) -> None:
    """Start attending when the worker takes messages of jobs; one that only ranks doesn't."""
    if sender is not None and "celery" not in sender.app.amqp.queues.consume_from:
        return
    close_old_connections()
    name = f"{getattr(sender, 'hostname', 'worker')}:{os.getpid()}"
    _stop.clear()
    threading.Thread(target=attend, args=(name, _stop), name="attend", daemon=True).start()


@worker_shutting_down.connect
def finish(**_: Any) -> None:
    """When the worker is asked to end, stop attending, and have its jobs stop at the next piece."""
    _stop.set()
    end_soon()


@worker_process_init.connect
def ignore_sigterm_in_pool(**_: Any) -> None:
    """Let no pool process outlive a worker that was killed, nor end before it by a SIGTERM to all:
    it may hold the lock of the pool's queue, without which the worker never ends.
    """
    watch_parent()
    # Celery puts its own handler in the place of any other than this one.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
