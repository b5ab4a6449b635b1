"""Which species are taken for which, and how to tell them apart."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from retrieval.corpus.models import Species


class Confusion(models.Model):
    """How often one species is taken for another; the reverse is a row of its own."""

    class Source(models.TextChoices):
        """Who confuses them."""

        TABLE = "table", "People, by a table"
        EMBEDDINGS = "embeddings", "A model, by its embeddings"

    # No index of its own: the unique constraint begins with it.
    species = models.ForeignKey(Species, on_delete=models.CASCADE, related_name="+", db_index=False)
    taken_for = models.ForeignKey(Species, on_delete=models.CASCADE, related_name="+")
    source = models.CharField(max_length=10, choices=Source)
    count = models.PositiveIntegerField(help_text="identifications, or images")

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["species", "taken_for", "source"], name="confusion_unique"
            ),
            models.CheckConstraint(
                condition=~models.Q(species=models.F("taken_for")), name="confusion_of_two"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.species_id} for {self.taken_for_id}: {self.count}"


class DifferenceNote(models.Model):
    """How to tell two species apart, for people who label."""

    # No index of its own: the unique constraint begins with it.
    first = models.ForeignKey(
        Species,
        on_delete=models.CASCADE,
        related_name="+",
        db_index=False,
        help_text="the one with the lower id",
    )
    second = models.ForeignKey(Species, on_delete=models.CASCADE, related_name="+")
    text = models.TextField(max_length=4000, help_text="in Markdown")
    written_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    written_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["pk"]
        constraints = [
            models.UniqueConstraint(fields=["first", "second"], name="difference_note_unique"),
            models.CheckConstraint(
                condition=models.Q(first__lt=models.F("second")), name="difference_note_in_order"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.first_id} and {self.second_id}"
