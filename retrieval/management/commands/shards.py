from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from core.locks import lock_owners
from retrieval.ranking.sharded import shards_as_cut


class Command(BaseCommand):
    help = "List the shards of the models' matrices: their images, and the process that ranks them."

    def handle(self, *args: Any, **options: Any) -> None:
        owners = lock_owners("shard")
        for shard in shards_as_cut():
            if shard.pk not in owners:
                state = "held by nobody"
            elif not shard.worker:
                state = "being packed"
            else:
                state = (
                    f"{shard.rows:,} embeddings, {shard.worker} since {shard.since:%Y-%m-%d %H:%M}"
                )
            self.stdout.write(
                f"{shard.model}: images {shard.first_image}-{shard.last_image}: {state}"
            )
