"""Runs of the species task."""

from __future__ import annotations

from pathlib import Path

from django.conf import settings
from django.db import models

from core.jobs.models import Job
from retrieval.embedding.models import EmbeddingModel


class SpeciesRun(models.Model):
    """How often an embedding model names an image's species, without having been trained to.

    VAR_DIR/species_runs/<id>.npz has which images it named right (`image_ids`, `correct`), and of
    each species the images, those right, and those right among the five nearest (`species_ids`,
    `counts`); runs of version 0.2.0 lack the latter two and `correct_5`.
    """

    class Scope(models.TextChoices):
        """Among which species it chooses."""

        ALL = "all", "All species"
        GROUP = "group", "The look-alike group"

    class Naming(models.TextChoices):
        """What stands in the prompt, as BioCLIP's kinds of text."""

        SCIENTIFIC = "sci", "Scientific name"
        COMMON = "com", "Vernacular name"
        TAXONOMIC = "taxon", "Lineage"
        BOTH = "sci_com", "Scientific and vernacular name"

    embedding_model = models.ForeignKey(EmbeddingModel, on_delete=models.PROTECT, related_name="+")
    scope = models.CharField(max_length=10, choices=Scope)
    naming = models.CharField(max_length=10, choices=Naming)
    language = models.CharField(max_length=20, default="en", help_text="of vernacular names")
    prompt = models.CharField(max_length=200, default="a photo of {}.")
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    job = models.OneToOneField(
        Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    species = models.PositiveIntegerField(default=0, help_text="that it chose among")
    images = models.PositiveIntegerField(default=0)
    correct = models.PositiveIntegerField(default=0)
    correct_5 = models.PositiveIntegerField(
        null=True, blank=True, help_text="images whose species is among the five nearest"
    )
    left_out = models.PositiveIntegerField(
        default=0, help_text="images of a species without such a name, or alone in its group"
    )
    sets = models.JSONField(
        default=list, help_text="[data set, species, images, correct, correct_5], by name"
    )
    training_images = models.JSONField(
        default=dict,
        db_default={},
        help_text="how many the model was trained on, by scientific name",
    )

    class Meta:
        ordering = ["-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["embedding_model", "scope", "naming", "language", "prompt"],
                name="species_run_once",
            )
        ]

    def __str__(self) -> str:
        parts = (self.get_naming_display(), self.get_scope_display())
        return ", ".join([self.embedding_model.name, *(part.lower() for part in parts)])

    @property
    def path(self) -> Path:
        """Where its answers lie."""
        return Path(settings.VAR_DIR) / "species_runs" / f"{self.pk}.npz"

    @property
    def done(self) -> bool:
        """Whether it has figures."""
        return self.images > 0
