"""Images and species in answers of the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.access import names_hidden_from
from retrieval.corpus.models import Image, Species


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


class ImageSerializer(SpeciesOfImage, serializers.ModelSerializer[Image]):
    """An image; sizes in pixels, upright. `file_name` is empty where names are hidden."""

    url = serializers.CharField(read_only=True)
    thumbnail_url = serializers.CharField(read_only=True)
    file_name = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = (
            "id",
            "url",
            "thumbnail_url",
            "dataset",
            "file_name",
            "width",
            "height",
            "species",
            "observed_at",
            "latitude",
            "longitude",
            "location_uncertainty",
            "license",
            "license_url",
            "rights_holder",
        )
        read_only_fields = fields

    def get_file_name(self, image: Image) -> str:
        # In iNaturalist's data sets the path names the species.
        return "" if names_hidden_from(self.context["request"].user) else image.file_name
