"""Matrices cut into shards, which Celery workers on several machines rank."""

from __future__ import annotations

from django.apps import AppConfig

from extras.sharding.settings import shard_settings


class ShardingConfig(AppConfig):
    """Registers what ranks, and what has shards packed, where RANKING_SHARDS is set."""

    name = "extras.sharding"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registry."""
        if shard_settings.RANKING_SHARDS:
            from extras.sharding.ranking import SHARDS, packing_request
            from retrieval.embedding.store import embeddings_stored
            from retrieval.ranking.rankers import RANKERS
            from retrieval.takedown.services import images_taken_down

            RANKERS.append(SHARDS)
            embeddings_stored.connect(packing_request, dispatch_uid="sharding")
            images_taken_down.connect(packing_request, dispatch_uid="sharding")
