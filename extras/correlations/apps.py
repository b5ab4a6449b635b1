"""Whether measures, or versions of a release, rank the runs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

from django.apps import AppConfig
from django.urls import reverse

from core.registries import LINKS, Link, LinkPlace

if TYPE_CHECKING:
    from releases.models import Release


class CorrelationsConfig(AppConfig):
    """Registers the link on the leaderboard."""

    name = "extras.correlations"

    def ready(self) -> None:
        """Append to the registries."""
        LINKS.append((LinkPlace.LEADERBOARD, _link))


def _link(release: Release, choice: dict[str, str]) -> Link:
    address = f"{reverse('correlations', args=[release.pk])}?{urlencode(choice)}"
    return Link("Do the measures rank the runs alike?", address)
