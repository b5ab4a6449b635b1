"""Machines that read along, what they said of images, how far that is to be believed, and the
queries that use it. Nothing here is a judgment.
"""

from __future__ import annotations

import numpy as np
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from extras.reading.calibration import Curve
from labeling.judging.models import BlindItem
from labeling.queries.models import Query
from retrieval.corpus.models import Image


class Reader(models.Model):
    """A model that reads a query's text, its guidelines and an image, and says how likely the image
    is relevant: behind an OpenAI-compatible address, or by a Python entry point.

    What it is asked never changes: another prompt is another reader.
    """

    name = models.CharField(max_length=100, unique=True)
    family = models.CharField(
        max_length=100,
        blank=True,
        help_text="such as Qwen: runs whose model is of the same family are marked",
    )
    base_url = models.CharField(max_length=300, blank=True)
    model = models.CharField(max_length=200, blank=True, help_text="as the server names it")
    entry_point = models.CharField(max_length=100, blank=True)
    prompt = models.TextField(blank=True)
    max_side = models.PositiveIntegerField(help_text="longest side of what is sent, in pixels")
    requests_per_minute = models.PositiveIntegerField(default=0, help_text="0 for no limit")
    price_in = models.FloatField(null=True, help_text="US dollars for a million tokens")
    price_out = models.FloatField(null=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(base_url="", model="", entry_point__gt="")
                | models.Q(base_url__gt="", model__gt="", entry_point=""),
                name="reader_address_or_entry_point",
            )
        ]

    def __str__(self) -> str:
        return self.name


class Reading(models.Model):
    """What a reader said of an image for a query. Rows are added, never changed: where the query's
    guidelines or examples change, the prompt is another one, and the last reading counts.
    """

    # No indexes of their own: the unique constraint begins with them.
    reader = models.ForeignKey(
        Reader, on_delete=models.CASCADE, related_name="readings", db_index=False
    )
    query = models.ForeignKey(Query, on_delete=models.CASCADE, related_name="readings")
    image = models.ForeignKey(Image, on_delete=models.CASCADE, related_name="+")
    probability = models.FloatField(help_text="that the image is relevant, as the reader says")
    prompt_sha256 = models.CharField(max_length=64)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    read_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["reader", "query", "image", "prompt_sha256"], name="reading_once"
            ),
            models.CheckConstraint(
                condition=models.Q(probability__range=(0, 1)), name="reading_probability"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.query_id}/{self.image_id}: {self.probability:.3f}"


class Calibration(models.Model):
    """From what a reader says to how often it is right, by all judged images that it had read (see
    `calibration.Curve`). Rows never change: orders name theirs.
    """

    reader = models.ForeignKey(Reader, on_delete=models.CASCADE, related_name="calibrations")
    said = ArrayField(models.FloatField(), help_text="ascending")
    found = ArrayField(models.FloatField(), help_text="the share of relevant images there")
    relevant = models.PositiveIntegerField(help_text="judged images that it was made from")
    not_relevant = models.PositiveIntegerField()
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return f"calibration {self.pk} of {self.reader_id}"

    @property
    def curve(self) -> Curve:
        """As a function."""
        return Curve(np.array(self.said), np.array(self.found))


class ReaderUse(models.Model):
    """What a query uses a reader for; others have no row."""

    query = models.OneToOneField(
        Query, on_delete=models.CASCADE, primary_key=True, related_name="reader_use"
    )
    reader = models.ForeignKey(Reader, on_delete=models.PROTECT, related_name="+")
    order = models.BooleanField(default=False, help_text="the order that learns knows its readings")
    queue = models.BooleanField(
        default=False, help_text="after the stop, people judge blindly what it calls relevant"
    )
    opinions = models.BooleanField(
        default=False, help_text="labels that it doubts get a second opinion"
    )
    screening = models.FloatField(
        null=True,
        help_text="the calibrated probability below which images don't come up in the order that "
        "learns; empty for no screening",
    )
    recall = models.FloatField(
        null=True,
        help_text="of judged relevant images, the share that `screening` was chosen to keep",
    )
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    def __str__(self) -> str:
        return f"{self.query_id} uses {self.reader_id}"


class ReaderPick(models.Model):
    """That people judge an image blindly because of what a reader said of it."""

    class How(models.TextChoices):
        """What it was picked for."""

        QUEUE = "queue", "called relevant after the stop"
        SPENT = "spent", "least sure, when judgments were offered"
        OPINIONS = "opinions", "differs from a label"

    item = models.OneToOneField(
        BlindItem, on_delete=models.CASCADE, primary_key=True, related_name="reader_pick"
    )
    reader = models.ForeignKey(Reader, on_delete=models.PROTECT, related_name="picks")
    how = models.CharField(max_length=10, choices=How)

    def __str__(self) -> str:
        return f"{self.item_id}: {self.how} of {self.reader_id}"
