from __future__ import annotations

import os
import sys
import threading
from argparse import ArgumentParser
from typing import Any

from celery import current_app
from celery.signals import worker_ready
from django.core.management.base import BaseCommand, CommandError
from django.db import connection

from extras.sharding.holding import MOST, Holder
from extras.sharding.settings import shard_settings


class Command(BaseCommand):
    help = (
        "Hold shards of the models' matrices (RANKING_SHARD_IMAGES) and rank their images, until "
        "asked to end. Start one on each machine: they divide the shards among them, and take over "
        "from one that dies."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--most", type=int, default=MOST, help="hold no more shards than these")

    def handle(self, *args: Any, **options: Any) -> None:
        if not shard_settings.RANKING_SHARD_IMAGES:
            raise CommandError("Set RANKING_SHARD_IMAGES, so that matrices are cut into shards.")
        if not 0 < options["most"] <= MOST:
            raise CommandError(f"--most is a number from 1 to {MOST}.")
        connection.close()
        name = f"{os.uname().nodename}:{os.getpid()}"
        stop, threads = threading.Event(), list[threading.Thread]()

        # Celery keeps no strong reference.
        def start(sender: Any, **_: Any) -> None:
            """Hold shards as soon as the worker takes messages; once, though it may reconnect."""
            if threads:
                return

            # The consumer's own thread alone may use its connection.
            def consume(queue: str) -> None:
                sender.call_soon(sender.add_task_queue, queue)

            def leave(queue: str) -> None:
                sender.call_soon(sender.cancel_task_queue, queue)

            holder = Holder(name, options["most"], consume=consume, leave=leave)
            threads.append(threading.Thread(target=holder.run, args=(stop,), name="hold-shards"))
            threads[0].start()

        worker_ready.connect(start, weak=False)
        worker = current_app.Worker(
            hostname=f"shards-{os.getpid()}@{os.uname().nodename}",
            # One ranking at a time: each uses all cores and the memory's whole speed.
            pool="threads",
            concurrency=1,
            # Of its own until it has a shard: without a queue it would take the messages of jobs.
            queues=[f"rank.{name}"],
            loglevel="WARNING" if options["verbosity"] < 2 else "INFO",
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        worker.start()
        stop.set()
        for thread in threads:
            thread.join()
        sys.exit(worker.exitcode)
