"""Matrices cut into shards, which processes on several machines hold and rank."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import Any

from django.apps import AppConfig
from django.db.models import F, Q

from extras.sharding.settings import shard_settings


class ShardingConfig(AppConfig):
    """Registers what ranks, where RANKING_SHARD_IMAGES is set, and what a takedown does."""

    name = "extras.sharding"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registry."""
        from extras.sharding.ranking import SHARDS
        from retrieval.ranking.rankers import RANKERS
        from retrieval.takedown.services import images_taken_down

        images_taken_down.connect(_request_rebuilds, dispatch_uid="sharding")
        if shard_settings.RANKING_SHARD_IMAGES:
            RANKERS.append(SHARDS)


def _request_rebuilds(*, image_ids: Sequence[int], **_: Any) -> None:
    """Have the shards that had these images packed anew, by the processes that hold them."""
    from extras.sharding.models import RankingShard

    of_images = [Q(first_image__lte=image_id, last_image__gte=image_id) for image_id in image_ids]
    RankingShard.objects.filter(reduce(or_, of_images, Q(pk=None))).update(
        rebuild_requests=F("rebuild_requests") + 1
    )
