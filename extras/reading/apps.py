"""A machine that reads along, and is held to people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.apps import AppConfig
from django.urls import reverse

from core.access import Role, at_least
from core.jobs.kinds import job_handler
from core.registries import (
    IMAGE_USES,
    LINKS,
    QUERY_PANELS,
    SNAPSHOT_TABLES,
    ImageUse,
    Link,
    LinkPlace,
    SnapshotTable,
)

if TYPE_CHECKING:
    from core.jobs.models import Job
    from labeling.queries.models import Query


class ReadingConfig(AppConfig):
    """Registers the job, the pages and where readings help."""

    name = "extras.reading"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from evaluation.leaderboard.marks import OTHER_FINDS, RUN_MARKS
        from extras.reading.circularity import finds, mark_of_release
        from extras.reading.models import Reading
        from extras.reading.order import reading_feature
        from extras.reading.queues import MORE_IMAGES, after_submission
        from extras.reading.release_file import TABLE, ReadImage, read_images, write
        from extras.reading.views import panel
        from labeling.judging.blind import BLIND_KINDS
        from labeling.learning.features import FEATURES
        from labeling.lifecycle.signals import query_submitted
        from releases.formats.base import Format
        from releases.formats.registry import FORMATS
        from retrieval.removal.selectors import rows_name

        job_handler("read_images")(_read)
        LINKS.append((LinkPlace.QUERY, _link))
        IMAGE_USES.append(ImageUse("readings", rows_name(Reading)))
        FEATURES.append(reading_feature)
        BLIND_KINDS.append(MORE_IMAGES)
        query_submitted.connect(after_submission, dispatch_uid="reading")
        QUERY_PANELS.append(panel)
        SNAPSHOT_TABLES.append(SnapshotTable(TABLE, ReadImage, read_images))
        FORMATS.append(
            Format("readers", "Readers", "Which images came to people through a reader.", write)
        )
        RUN_MARKS.append(mark_of_release)
        OTHER_FINDS.append(finds)


def _read(job: Job, deadline: float) -> bool:
    """Have images read, part after part, and at the end people judge what is called relevant."""
    from extras.reading.queues import after_reading
    from extras.reading.reading_job import queries_of, reading_step

    done = reading_step(job, deadline)
    if done:
        after_reading(queries=queries_of(job))
    return done


def _link(user: Any, query: Query) -> Link | None:
    return Link("Readers", reverse("readers")) if at_least(user, Role.REVIEWER) else None
