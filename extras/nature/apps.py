"""When, where and of which species relevant images are: a page of a query, a file of a release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.access import Role, at_least
from core.registries import LINKS, Link, LinkPlace

if TYPE_CHECKING:
    from labeling.queries.models import Query


class NatureConfig(AppConfig):
    """Registers the link on a query's page and the files of a release."""

    name = "extras.nature"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.nature.release_file import write
        from releases.formats.base import Format
        from releases.formats.registry import FORMATS

        LINKS.append((LinkPlace.QUERY, _link))
        about = (
            "Months, years, elevations, places and species of each query's relevant images, beside "
            "all that were judged."
        )
        FORMATS.append(Format("nature", "Where and when", about, write))


def _link(user: Any, query: Query) -> Link | None:
    if query.state != "complete" or not at_least(user, Role.REVIEWER):
        return None
    return Link("Where and when", reverse("query-nature", args=[query.pk]))
