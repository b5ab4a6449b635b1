"""The settings of shards, read from the environment."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from annotator.environment import BadSetting, Environment

shard_settings: Any = settings
"""Django's settings: their static types lack what an extra adds."""


def settings_of(env: Environment) -> dict[str, Any]:
    """How many shards there are, how many image ids each spans, how long a ranking waits for them,
    and Celery's results.
    """
    own: dict[str, Any] = {
        "RANKING_SHARDS": env.number("RANKING_SHARDS", 0, minimum=0, maximum=10_000),
        "RANKING_SHARD_IMAGES": env.number("RANKING_SHARD_IMAGES", 5_000_000, minimum=1),
        "RANKING_SHARD_SECONDS": env.number("RANKING_SHARD_SECONDS", 20, minimum=1, maximum=600),
    }
    if own["RANKING_SHARDS"]:
        broker = env.text("CELERY_BROKER_URL")
        if not broker.startswith("redis"):
            raise BadSetting("RANKING_SHARDS needs a Redis: CELERY_BROKER_URL=redis://host:6379/0.")
        own |= {
            "CELERY_RESULT_BACKEND": broker,
            "CELERY_RESULT_EXPIRES": 60,
            "CELERY_REDIS_SOCKET_CONNECT_TIMEOUT": 3,
            "CELERY_REDIS_SOCKET_TIMEOUT": 3,
            "CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS": {"retry_policy": {"max_retries": 1}},
        }
    return own
