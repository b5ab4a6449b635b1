"""A machine that reads along, and is held to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.access import Role, at_least
from core.jobs.kinds import job_handler
from core.registries import IMAGE_USES, LINKS, ImageUse, Link, LinkPlace

if TYPE_CHECKING:
    from core.jobs.models import Job
    from labeling.queries.models import Query


class ReadingConfig(AppConfig):
    """Registers the job, the pages and where readings help."""

    name = "extras.reading"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.reading.models import Reading
        from retrieval.removal.selectors import rows_name

        job_handler("read_images")(_read)
        LINKS.append((LinkPlace.QUERY, _link))
        IMAGE_USES.append(ImageUse("readings", rows_name(Reading)))


def _read(job: Job, deadline: float) -> bool:
    """Have images read, part after part."""
    from extras.reading.reading_job import reading_step

    return reading_step(job, deadline)


def _link(user: Any, query: Query) -> Link | None:
    return Link("Readers", reverse("readers")) if at_least(user, Role.REVIEWER) else None
