"""What a person sets on the labeling page."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class LabelingPreferences(models.Model):
    """How one person works on the labeling page, kept here so that every browser has it."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="labeling_preferences",
    )
    keys = models.JSONField(
        default=dict, help_text="action -> list of keys, for the actions that differ from default"
    )
    view = models.JSONField(default=dict, help_text="view, grid size, brightness, open panels …")
    mails = models.BooleanField(
        default=True, help_text="whether they get an e-mail when a query is assigned or sent back"
    )
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "labeling preferences"

    def __str__(self) -> str:
        return f"preferences of {self.user_id}"
