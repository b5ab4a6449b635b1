"""Near-duplicates and bursts: found by a command, decided on by reviewers."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.urls import reverse

from core.registries import LINKS, SNAPSHOT_FACTS, Link, LinkPlace


class DuplicatesConfig(AppConfig):
    """Registers the link on the flags' page, what a release tells, and the decisions in the log."""

    name = "extras.duplicates"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from annotator.log.sources import SOURCES, Source
        from extras.duplicates.models import DuplicateGroup

        LINKS.append((LinkPlace.FLAGS, _link))
        SNAPSHOT_FACTS.append(_facts)
        SOURCES.append(
            Source(
                "duplicates",
                "Near-duplicates decided",
                DuplicateGroup,
                "decided_at",
                "decided_by",
                lambda v: DuplicateGroup.Decision(v["decision"]).label,
                lambda v: f"{DuplicateGroup.Kind(v['kind']).label} {v['pk']}",
                ("kind", "decision"),
            )
        )


def _link() -> Link:
    return Link("Near-duplicates", reverse("duplicates"))


def _facts() -> dict[str, Any]:
    from extras.duplicates.services import duplicate_counts

    counts = duplicate_counts()
    return {"duplicates": counts} if counts["found"] else {}
