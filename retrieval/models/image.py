from __future__ import annotations

from django.db import models

from retrieval.models.species import Species


class Image(models.Model):
    """One picture of the corpus.

    The primary key is the image id that releases and runs carry: the source data set's own id where
    that is a free integer, else the next free one.
    """

    id = models.BigIntegerField(primary_key=True)
    dataset = models.CharField(max_length=100, help_text="the data set it was imported from")
    source_id = models.CharField(max_length=500, help_text="its id in that data set")
    file_name = models.CharField(
        max_length=500, help_text="its path in that data set; the image_path of a release"
    )
    sha256 = models.CharField(max_length=64, help_text="of the source file's bytes")
    format = models.CharField(max_length=20, help_text="of the source file, as Pillow names it")
    width = models.PositiveIntegerField(help_text="pixels, upright")
    height = models.PositiveIntegerField(help_text="pixels, upright")
    size_bytes = models.PositiveBigIntegerField()
    species = models.ForeignKey(
        Species, on_delete=models.PROTECT, related_name="images", null=True, blank=True
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
        ]
        indexes = [
            # The same picture under several records shares one stored file.
            models.Index(fields=["sha256"], name="image_sha256"),
        ]

    def __str__(self) -> str:
        return f"{self.id} {self.file_name}"

    @property
    def url(self) -> str:
        """Address of the picture as it is displayed: upright RGB. Changes when the content does."""
        return f"/images/{self.id}/{self.sha256[:8]}.jpg"

    @property
    def thumbnail_url(self) -> str:
        return f"/images/{self.id}/{self.sha256[:8]}-thumb.jpg"
