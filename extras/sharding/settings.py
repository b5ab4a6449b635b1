"""The settings of shards, read from the environment."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from annotator.environment import BadSetting, Environment
from core.ids import LARGEST_ID

shard_settings: Any = settings
"""Django's settings: their static types lack what an extra adds."""


def settings_of(env: Environment) -> dict[str, Any]:
    """How many image ids a shard of a model's matrix spans, 0 for one matrix on each machine; how
    long a ranking waits for a shard before the database ranks its images; and Celery's results.
    """
    images = env.number("RANKING_SHARD_IMAGES", 0, minimum=0, maximum=LARGEST_ID)
    seconds = env.number("RANKING_SHARD_SECONDS", 20, minimum=1, maximum=600)
    own = {"RANKING_SHARD_IMAGES": images, "RANKING_SHARD_SECONDS": seconds}
    if not images:
        return own
    broker = env.text("CELERY_BROKER_URL")
    if not broker.startswith("redis"):
        raise BadSetting(
            "RANKING_SHARD_IMAGES needs a Redis: set CELERY_BROKER_URL, such as redis://host:6379/0."
        )
    return own | {
        # Rankings of shards are kept until who asked for them has read them.
        "CELERY_RESULT_BACKEND": broker,
        "CELERY_RESULT_EXPIRES": 60,
        "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS": {"retry_policy": {"max_retries": 1}},
    }
