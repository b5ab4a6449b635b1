"""The page "How to label", the queries to practice with, and how far people are introduced."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from labeling.queries.models import Query


class HowToLabel(models.Model):
    """The text of the page "How to label": one row, or none while it is the default."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    text = models.TextField(blank=True, help_text="in Markdown; empty for the default")
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="how_to_label_one")]

    def __str__(self) -> str:
        return "how to label"


class PracticeQuery(models.Model):
    """A query whose labels people may practice with; see `selectors.practice_queries`."""

    query = models.OneToOneField(
        Query, on_delete=models.CASCADE, primary_key=True, related_name="for_practice"
    )
    chosen_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    chosen_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"practice with query {self.query_id}"


class Introduction(models.Model):
    """How far a person has been introduced to labeling."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="introduction",
    )
    closed_at = models.DateTimeField(
        null=True, help_text="when the person closed “How to label” on the dashboard, or practiced"
    )
    query = models.ForeignKey(
        Query,
        on_delete=models.SET_NULL,
        null=True,
        related_name="+",
        help_text="of the last practice",
    )
    practiced_at = models.DateTimeField(null=True)
    images = models.PositiveSmallIntegerField(default=0, help_text="of the last practice")
    right = models.PositiveSmallIntegerField(
        default=0, help_text="answers of the last practice that agree with the label"
    )

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(right__lte=models.F("images")),
                name="introduction_right_of_images",
            )
        ]

    def __str__(self) -> str:
        return f"introduction of {self.user_id}"
