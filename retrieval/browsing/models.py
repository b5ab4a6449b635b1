"""Filters of the images' page that people saved by a name."""

from __future__ import annotations

from django.conf import settings
from django.db import models


class SavedFilter(models.Model):
    """What stands in the address of the images' page, by a name of its owner's."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=100)
    address = models.CharField(max_length=4000, help_text="the parameters of the page's address")
    shared = models.BooleanField(default=False, help_text="shown to everybody; by admins alone")
    saved_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name", "pk"]
        constraints = [
            models.UniqueConstraint(fields=["owner", "name"], name="saved_filter_unique"),
        ]

    def __str__(self) -> str:
        return self.name
