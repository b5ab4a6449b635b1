"""Whether measures, or versions of a release, rank the runs alike."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.apps import AppConfig
from django.urls import reverse


class CorrelationsConfig(AppConfig):
    """Registers the link on the leaderboard."""

    name = "extras.correlations"

    def ready(self) -> None:
        """Append to the registries."""
        from core.registries import LEADERBOARD_LINKS

        LEADERBOARD_LINKS.append(_link)


def _link(release: Any, choice: dict[str, str]) -> Any:
    from core.registries import Link

    address = f"{reverse('correlations', args=[release.pk])}?{urlencode(choice)}"
    return Link("Do the measures rank the runs alike?", address)
