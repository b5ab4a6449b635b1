"""Near-duplicates and bursts: found by a job or a command, decided on by reviewers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.jobs.kinds import job_handler
from core.registries import LINKS, SNAPSHOT_FACTS, Link, LinkPlace

if TYPE_CHECKING:
    from core.jobs.models import Job


class DuplicatesConfig(AppConfig):
    """Registers the job, the link on the flags' page, what a release tells, and the decisions in
    the log.
    """

    name = "extras.duplicates"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from annotator.log.sources import SOURCES, Source
        from extras.duplicates.models import DuplicateGroup
        from retrieval.removal.services import images_removed

        job_handler("find_duplicates")(_find)
        images_removed.connect(_forget, dispatch_uid="duplicates")
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


def _find(job: Job, deadline: float) -> bool:
    """Look for near-duplicates, species after species."""
    from extras.duplicates.services import duplicates_step

    return duplicates_step(job, deadline)


def _link() -> Link:
    return Link("Near-duplicates", reverse("duplicates"))


def _facts() -> dict[str, Any]:
    from extras.duplicates.services import duplicate_counts

    counts = duplicate_counts()
    return {"duplicates": counts} if counts["found"] else {}


def _forget(*, image_ids: Sequence[int], **_: Any) -> None:
    from extras.duplicates.services import duplicates_forget

    duplicates_forget(image_ids=image_ids)
