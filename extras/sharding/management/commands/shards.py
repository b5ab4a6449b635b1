from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from core.commands.progress import Progress
from core.locks import lock_owners
from extras.sharding.models import RankingShard
from extras.sharding.ranking import shards_as_cut, span_of
from retrieval.ranking.building import verify_matrix
from retrieval.ranking.files import folder_of


class Command(BaseCommand):
    help = "List the shards of the models' matrices: their images, and the process that ranks them."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check",
            action="store_true",
            help="compare every file of the shards that lie here with its checksum and every "
            "vector with the database, and exit with 1 if any differs",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        owners = lock_owners("shard")
        wrong = 0
        for shard in shards_as_cut():
            if shard.pk not in owners:
                state = "held by nobody"
            elif not shard.worker:
                state = "being packed"
            else:
                state = (
                    f"{shard.rows:,} embeddings, {shard.worker} since {shard.since:%Y-%m-%d %H:%M}"
                )
            self.stdout.write(f"{shard.model}: {shard}: {state}")
            if options["check"] and folder_of(shard.model, span_of(shard)).exists():
                wrong += self._faults(shard, quiet=options["verbosity"] < 1)
        if wrong:
            raise CommandError(f"{wrong} faults.")

    def _faults(self, shard: RankingShard, *, quiet: bool) -> int:
        """Print what is wrong with a shard's files; returns how much."""
        with Progress("embeddings compared", quiet=quiet) as show:
            faults = verify_matrix(shard.model, show, span_of(shard))
        for fault in faults:
            self.stdout.write(f"  {fault}")
        return len(faults)
