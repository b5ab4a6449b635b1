"""Queries that ask for boxes, the boxes that people drew on their images, and runs of detectors."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from core.jobs.models import Job
from labeling.queries.models import Query
from releases.models import Release
from retrieval.corpus.models import Image


class BoxedQuery(models.Model):
    """A query that asks for boxes; others have no row."""

    class Images(models.TextChoices):
        """On which images people draw boxes."""

        ANIMALS = "animals", "On relevant images of animals"
        ALL = "all", "On relevant images, of plants and fungi too"
        SPECIES = "species", "On every image of its species filter, relevant or not"

    query = models.OneToOneField(
        Query, on_delete=models.CASCADE, primary_key=True, related_name="boxed"
    )
    images = models.CharField(max_length=7, choices=Images)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(images__in=["animals", "all", "species"]),
                name="boxed_query_images_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.query_id}: {self.images}"


class BoxSet(models.Model):
    """All boxes that a person drew on an image for a query.

    A later save is a row of its own, and the earlier one is no longer current; nothing else of a
    row ever changes.
    """

    # No index of its own: the unique constraint begins with it.
    query = models.ForeignKey(
        Query, on_delete=models.PROTECT, related_name="box_sets", db_index=False
    )
    image = models.ForeignKey(Image, on_delete=models.PROTECT, related_name="+")
    annotator = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", db_index=False
    )
    client_id = models.UUIDField(help_text="made by the client, so that a repeat counts once")
    boxes = models.JSONField(help_text="as `matching.Box` has them; empty where no box is possible")
    imported = models.BooleanField(default=False, help_text="from a file")
    current = models.BooleanField(default=True)
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["query", "image", "annotator"],
                condition=models.Q(current=True),
                name="box_set_current_once",
            ),
            models.UniqueConstraint(fields=["annotator", "client_id"], name="box_set_client_once"),
        ]
        indexes = [models.Index(fields=["query", "annotator", "-id"], name="box_set_own")]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: {len(self.boxes)} boxes"


class DetectionRun(models.Model):
    """A detector's boxes on the images of a release: their figures, once a job has scored them."""

    release = models.ForeignKey(Release, on_delete=models.PROTECT, related_name="detection_runs")
    name = models.CharField(max_length=150, help_text="the method's name")
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    results = models.JSONField(null=True, help_text="COCO results; empty once they are scored")
    figures = models.JSONField(null=True, help_text="`detection.FIGURES`; empty until then")
    sha256 = models.CharField(max_length=64, help_text="of the results file")
    created_at = models.DateTimeField(auto_now_add=True)
    job = models.OneToOneField(Job, on_delete=models.SET_NULL, null=True, related_name="+")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(name=""), name="detection_run_name")
        ]

    def __str__(self) -> str:
        return self.name
