"""Boxes that people draw on the relevant images of complete queries."""

from __future__ import annotations

from django.apps import AppConfig

from core.jobs.kinds import job_handler
from core.registries import (
    IMAGE_PANELS,
    IMAGE_USES,
    LINKS,
    QUERY_PANELS,
    QUERY_TASKS,
    SNAPSHOT_TABLES,
    ImageUse,
    LinkPlace,
    QueryTask,
    SnapshotTable,
)


class BoxesConfig(AppConfig):
    """Registers the panels on a query's and an image's page, who sees which queries, the table and
    the file of a release, the leaderboard's tab and its job, and what a benchmark may override."""

    name = "extras.boxes"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Append to the registries."""
        from extras.boxes.detection_runs import KIND, score_step
        from extras.boxes.models import BoxSet
        from extras.boxes.release_file import ReleasedBox, released_boxes, write
        from extras.boxes.selectors import complete_and_boxed
        from extras.boxes.views import image_panel, panel, tab
        from labeling.lifecycle.benchmarks import SETTING_FIELDS, share_field
        from releases.formats.base import Format
        from releases.formats.registry import FORMATS
        from retrieval.removal.selectors import rows_name

        job_handler(KIND)(score_step)
        LINKS.append((LinkPlace.LEADERBOARD, tab))
        QUERY_PANELS.append(panel)
        IMAGE_PANELS.append(image_panel)
        IMAGE_USES.append(ImageUse("boxes", rows_name(BoxSet)))
        QUERY_TASKS.append(QueryTask("Boxes", "query-boxes", complete_and_boxed))
        SNAPSHOT_TABLES.append(SnapshotTable("boxes", ReleasedBox, released_boxes))
        FORMATS.append(
            Format("boxes", "Boxes", "Boxes as COCO’s detections, a category a query.", write)
        )
        SETTING_FIELDS["BOX_SECOND_OPINION"] = lambda: share_field(
            label="Second boxes, share of images with boxes"
        )
