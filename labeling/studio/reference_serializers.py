"""The reference panel of the labeling page, as JSON."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import IdField, TextField, TruthField
from labeling.studio.reference import MOST_EXAMPLES, MOST_LOOKALIKES, MOST_SPECIES, Lookalike
from retrieval.corpus.models import Species


class PictureSerializer(serializers.Serializer):
    image = serializers.IntegerField(source="pk", help_text="its id")
    url = serializers.CharField()
    thumbnail_url = serializers.CharField()


class LookalikeSerializer(serializers.Serializer):
    id = serializers.IntegerField(source="species.pk")
    scientific_name = serializers.CharField(source="species.scientific_name")
    common_name = serializers.CharField(source="species.common_name")
    thumbnail_url = serializers.SerializerMethodField()

    def get_thumbnail_url(self, one: Lookalike) -> str | None:
        return one.image.thumbnail_url if one.image else None


class VernacularSerializer(serializers.Serializer):
    language = serializers.CharField(help_text="BCP 47 code")
    name = serializers.CharField()


class SpeciesReferenceSerializer(serializers.Serializer):
    """A species of the filter with what shows it."""

    id = serializers.IntegerField(source="species.pk")
    scientific_name = serializers.CharField(source="species.scientific_name")
    common_name = serializers.CharField(source="species.common_name")
    names = serializers.SerializerMethodField(help_text="vernacular names")
    lineage = serializers.ListField(
        child=serializers.CharField(), source="species.lineage", help_text="kingdom to genus"
    )
    lookalikes = LookalikeSerializer(
        many=True, help_text=f"of its group, or without one its genus; at most {MOST_LOOKALIKES}"
    )
    image_count = serializers.IntegerField()
    examples = PictureSerializer(many=True, help_text=f"at most {MOST_EXAMPLES}")

    @extend_schema_field(VernacularSerializer(many=True))
    def get_names(self, one: Any) -> list[dict[str, str]]:
        species: Species = one.species
        names = [name for name in species.names.all() if name.language]
        return [{"language": name.language, "name": name.name} for name in names]


class ExampleSerializer(serializers.Serializer):
    """An image that an admin pinned."""

    image = serializers.IntegerField(source="image.pk", help_text="its id")
    url = serializers.CharField(source="image.url")
    thumbnail_url = serializers.CharField(source="image.thumbnail_url")
    relevant = serializers.BooleanField()
    note = serializers.CharField(allow_blank=True)


class ExampleWriteSerializer(serializers.Serializer):
    """An image to pin, or to say something else of."""

    image = IdField()
    relevant = TruthField()
    note = TextField(allow_blank=True, default="", max_length=500, help_text="why, for annotators")


class ReferenceSerializer(serializers.Serializer):
    """What candidates are compared with."""

    guidelines = serializers.CharField(allow_blank=True)
    names_hidden = serializers.BooleanField()
    species = SpeciesReferenceSerializer(
        many=True,
        help_text=f"the filter by name, at most {MOST_SPECIES}; empty where names are hidden",
    )
    species_total = serializers.IntegerField(help_text="how many the filter has; 0 where hidden")
    pinned = ExampleSerializer(many=True, help_text="relevant ones first")
