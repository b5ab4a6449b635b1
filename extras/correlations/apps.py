"""Whether measures, or versions of a release, rank the runs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django.apps import AppConfig
from django.urls import reverse

from core.registries import LINKS, Link, LinkPlace

if TYPE_CHECKING:
    from releases.models import Release


class CorrelationsConfig(AppConfig):
    """Registers the link among the leaderboard's analyses."""

    name = "extras.correlations"

    def ready(self) -> None:
        """Append to the registries."""
        LINKS.append((LinkPlace.ANALYSIS, _link))


def _link(user: Any, release: Release, choice: dict[str, str]) -> Link | None:
    from evaluation.runs.models import Run
    from evaluation.runs.selectors import runs_visible_to
    from extras.correlations.matrix import FEWEST

    runs = runs_visible_to(user).filter(release=release, task=choice["task"])
    scored = runs.filter(ready_at__isnull=False).exclude(kind=Run.Kind.BEST)
    if scored.count() < FEWEST:
        return None
    address = f"{reverse('correlations', args=[release.pk])}?{urlencode(choice)}"
    return Link("Do the measures rank the runs alike?", address)
