from __future__ import annotations

from django.db import models

from retrieval.models.species import Species


class CorpusCount(models.Model):
    """How many images there are, withdrawn ones too: one row, and none while there is no image.

    Triggers on the images' table keep it, once a statement (migration 0005); nothing else writes
    it.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    images = models.PositiveBigIntegerField()

    class Meta:
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="corpus_count_one")]

    def __str__(self) -> str:
        return f"{self.images} images"


class SpeciesCount(models.Model):
    """How many images a species has, withdrawn ones too; no row stands for none.

    Kept as `CorpusCount`. Images of no known species are what `CorpusCount` has more than all.
    """

    species = models.OneToOneField(
        Species, on_delete=models.CASCADE, primary_key=True, related_name="counted"
    )
    images = models.PositiveBigIntegerField()

    def __str__(self) -> str:
        return f"{self.species_id}: {self.images} images"
