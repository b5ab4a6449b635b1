from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.db import models


class Species(models.Model):
    """A taxon at species rank with its lineage."""

    scientific_name = models.CharField(max_length=200, unique=True)
    kingdom = models.CharField(max_length=100, blank=True)
    phylum = models.CharField(max_length=100, blank=True)
    class_name = models.CharField("class", max_length=100, blank=True)
    order = models.CharField(max_length=100, blank=True)
    family = models.CharField(max_length=100, blank=True)
    genus = models.CharField(max_length=100, blank=True)
    specific_epithet = models.CharField(max_length=100, blank=True)
    iconic_group = models.CharField(max_length=40, blank=True)
    lookalike_group = models.CharField(max_length=100, blank=True)

    class Meta:
        verbose_name_plural = "species"
        ordering = ["scientific_name"]
        indexes = [
            # A genus, family or look-alike group in a species filter expands to its species.
            models.Index(fields=["genus"], name="species_genus"),
            models.Index(fields=["family"], name="species_family"),
            models.Index(fields=["lookalike_group"], name="species_lookalike"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=~models.Q(scientific_name=""), name="species_scientific_name_not_blank"
            ),
        ]

    def __str__(self) -> str:
        return self.scientific_name

    @property
    def lineage(self) -> list[str]:
        """The known ranks from kingdom to genus, highest first."""
        ranks = (
            self.kingdom, self.phylum, self.class_name, self.order, self.family, self.genus,
        )  # fmt: skip
        return [name for name in ranks if name]

    @property
    def common_name(self) -> str:
        """The first vernacular name, English before others, or an empty string."""
        names = [n for n in self.names.all() if n.language]
        names.sort(key=lambda n: (n.language != "en", n.language, n.pk))
        return names[0].name if names else ""


class SpeciesName(models.Model):
    """A name by which a species is found: the scientific (language "") or a vernacular one."""

    species = models.ForeignKey(Species, on_delete=models.CASCADE, related_name="names")
    language = models.CharField(
        max_length=20, blank=True, help_text="BCP 47 code; empty for the scientific name"
    )
    name = models.CharField(max_length=200)
    search_text = models.TextField(
        help_text="the name in lower case without accents, for typo-tolerant search"
    )

    class Meta:
        ordering = ["language", "pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["species", "language", "name"], name="species_name_unique"
            ),
        ]
        indexes = [
            # Autocomplete by trigram similarity.
            GinIndex(
                fields=["search_text"], opclasses=["gin_trgm_ops"], name="species_name_trigram"
            ),
        ]

    def __str__(self) -> str:
        return self.name
