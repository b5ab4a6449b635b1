from __future__ import annotations

from django.db import models


class ImageRoot(models.Model):
    """A place whose pictures stay where they are: a folder, or a bucket with what its keys begin
    with.

    A row never changes, so that every process may remember it.
    """

    location = models.CharField(
        max_length=1000, unique=True, help_text="/data/inat24, or s3://bucket/prefix"
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["pk"]

    def __str__(self) -> str:
        return self.location
