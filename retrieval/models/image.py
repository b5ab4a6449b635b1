from __future__ import annotations

import hashlib
from typing import ClassVar

from django.contrib.postgres.indexes import BrinIndex
from django.db import models

from retrieval.models.root import ImageRoot
from retrieval.models.species import Species


class Image(models.Model):
    """One picture of the corpus.

    The primary key is the image id that releases and runs carry: the source data set's own id where
    that is a free integer, else the next free one.
    """

    ADDRESS_FIELDS: ClassVar = ("id", "sha256", "root_id", "file_name", "size_bytes")
    """What `url` and `thumbnail_url` are made of."""

    id = models.BigIntegerField(primary_key=True)
    dataset = models.CharField(max_length=100, help_text="the data set it was imported from")
    source_id = models.CharField(max_length=500, help_text="its id in that data set")
    file_name = models.CharField(
        max_length=500, help_text="its path in that data set; the image_path of a release"
    )
    root = models.ForeignKey(
        ImageRoot,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
        # Nothing looks for the images of a root, and no root is deleted.
        db_index=False,
        help_text="where its file stays, at file_name; none: in the store, by its SHA-256",
    )
    sha256 = models.CharField(
        max_length=64,
        blank=True,
        help_text="of the source file's bytes; empty while nobody has read a file at a root",
    )
    format = models.CharField(max_length=20, help_text="of the source file, as Pillow names it")
    width = models.PositiveIntegerField(help_text="pixels, upright")
    height = models.PositiveIntegerField(help_text="pixels, upright")
    size_bytes = models.PositiveBigIntegerField(help_text="0 while unknown")
    # No index of its own: image_species begins with it.
    species = models.ForeignKey(
        Species,
        on_delete=models.PROTECT,
        related_name="images",
        null=True,
        blank=True,
        db_index=False,
    )
    license = models.CharField(max_length=200, blank=True)
    license_url = models.CharField(max_length=500, blank=True)
    rights_holder = models.CharField(max_length=500, blank=True)
    observed_at = models.DateTimeField(null=True, blank=True)
    latitude = models.FloatField(null=True, blank=True)
    longitude = models.FloatField(null=True, blank=True)
    location_uncertainty = models.FloatField(null=True, blank=True, help_text="metres")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "source_id"], name="image_source_unique"),
            models.CheckConstraint(
                condition=models.Q(latitude__isnull=True) | models.Q(latitude__range=(-90, 90)),
                name="image_latitude_range",
            ),
            models.CheckConstraint(
                condition=models.Q(longitude__isnull=True) | models.Q(longitude__range=(-180, 180)),
                name="image_longitude_range",
            ),
            models.CheckConstraint(
                condition=models.Q(width__gt=0, height__gt=0), name="image_size_positive"
            ),
            models.CheckConstraint(
                condition=models.Q(root__isnull=False) | ~models.Q(sha256=""),
                name="image_somewhere",
            ),
        ]
        indexes = [
            # The same picture under several records shares one stored file.
            models.Index(fields=["sha256"], condition=~models.Q(sha256=""), name="image_sha256"),
            # The images of a species, and the first few of them.
            models.Index(fields=["species", "id"], name="image_species"),
            # What came after a moment; images come in its order, so that blocks will do.
            BrinIndex(fields=["created_at"], autosummarize=True, name="image_created"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.file_name}"

    @property
    def version(self) -> str:
        """8 letters, 0-9 and a-f, that change when the content is known to have changed."""
        if self.sha256:
            return self.sha256[:8]
        place = f"{self.root_id}\0{self.file_name}\0{self.size_bytes}"
        return hashlib.sha256(place.encode()).hexdigest()[:8]

    @property
    def url(self) -> str:
        """Address of the picture as it is displayed: upright RGB. Changes with the version."""
        return f"/images/{self.id}/{self.version}.jpg"

    @property
    def thumbnail_url(self) -> str:
        return f"/images/{self.id}/{self.version}-thumb.jpg"
