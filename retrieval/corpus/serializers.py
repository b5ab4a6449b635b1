"""Species and custom fields in answers of the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.access import names_hidden_from
from retrieval.corpus.models import Species


class SpeciesBriefSerializer(serializers.ModelSerializer[Species]):
    """The names of a species."""

    common_name = serializers.CharField(read_only=True)

    class Meta:
        model = Species
        fields = ("id", "scientific_name", "common_name")
        read_only_fields = fields


class SpeciesOfImage(serializers.Serializer[Any]):
    """Adds `species`, null where it is unknown or hidden from the user."""

    species = serializers.SerializerMethodField()

    @extend_schema_field(SpeciesBriefSerializer(allow_null=True))
    def get_species(self, item: Any) -> Any:
        image = getattr(item, "image", item)
        if image.species is None or names_hidden_from(self.context["request"].user):
            return None
        return SpeciesBriefSerializer(image.species).data


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {
            "oneOf": [{"type": "number"}, {"type": "string"}, {"type": "boolean"}]
        },
        "description": "numbers, texts, true or false, ISO dates by the names of custom fields",
    }
)
class CustomValuesField(serializers.Field[Any, Any, Any, Any]):
    """Values of an image in custom fields that the user may see."""

    def __init__(self, **options: Any) -> None:
        super().__init__(read_only=True, **options)

    def to_representation(self, value: Any) -> Any:
        """The values as they are."""
        return value
