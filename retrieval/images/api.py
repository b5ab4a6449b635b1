"""API of images."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from drf_spectacular.utils import (
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import mixins, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import names_hidden_from
from core.api.fields import IdField
from core.api.parameters import parameters
from retrieval.corpus.models import Image
from retrieval.corpus.places import hide_places
from retrieval.corpus.selectors import corpus_images
from retrieval.corpus.serializers import CustomValuesField, SpeciesOfImage
from retrieval.custom_fields.selectors import CustomValue, fields_visible_to, values_of
from retrieval.flags.api import FlagActions
from retrieval.flags.selectors import images_visible_to


class ImageSerializer(SpeciesOfImage, serializers.ModelSerializer[Image]):
    """An image; sizes in pixels, upright. `folder` has the names of folders that are no species,
    `taxon_text` the source's name of a taxon that is no species. They, `source_id`, its id in its
    data set, and `file_name` are empty where names are hidden. `custom_fields` are those that one
    may see.
    """

    url = serializers.CharField(read_only=True)
    thumbnail_url = serializers.CharField(read_only=True)
    source_id = serializers.SerializerMethodField()
    file_name = serializers.SerializerMethodField()
    license_text = serializers.CharField(
        source="license_words",
        read_only=True,
        help_text="in the source's words, where they differ from `license` and `license_url`",
    )
    folder = serializers.SerializerMethodField()
    taxon_text = serializers.SerializerMethodField()
    custom_fields = serializers.SerializerMethodField()

    class Meta:
        model = Image
        fields = (
            "id",
            "url",
            "thumbnail_url",
            "dataset",
            "source_id",
            "file_name",
            "folder",
            "format",
            "width",
            "height",
            "size_bytes",
            "species",
            "taxon_text",
            "observed_at",
            "latitude",
            "longitude",
            "location_uncertainty",
            "coordinates_obscured",
            "elevation",
            "license",
            "license_url",
            "license_text",
            "rights_holder",
            "observer",
            "custom_fields",
        )
        read_only_fields = fields

    def get_source_id(self, image: Image) -> str:
        # Of an imported folder it is the path.
        return self._unless_names_are_hidden(image.source_id)

    def get_file_name(self, image: Image) -> str:
        # In iNaturalist's data sets the path names the species.
        return self._unless_names_are_hidden(image.file_name)

    def get_folder(self, image: Image) -> str:
        return self._unless_names_are_hidden(image.folder)

    def get_taxon_text(self, image: Image) -> str:
        return self._unless_names_are_hidden(image.taxon_text)

    @extend_schema_field(CustomValuesField)
    def get_custom_fields(self, image: Image) -> dict[str, CustomValue]:
        return values_of(image, self._fields_visible)

    @cached_property
    def _fields_visible(self) -> list[str]:
        fields = fields_visible_to(self.context["request"].user)
        return list(fields.values_list("name", flat=True))

    def _unless_names_are_hidden(self, name: str) -> str:
        return "" if names_hidden_from(self.context["request"].user) else name


class ImageListParameters(serializers.Serializer[Any]):
    """Which images to list, and from where on."""

    species = serializers.ListField(
        child=IdField(), default=list, max_length=500, help_text="ids of species, repeated"
    )
    dataset = serializers.CharField(default="", max_length=100, help_text="in place of species")
    after = IdField(default=None, allow_null=True, help_text="the `after` of the page before")
    limit = serializers.IntegerField(min_value=1, max_value=500, default=60)

    def validate(self, given: dict[str, Any]) -> dict[str, Any]:
        if given["species"] and given["dataset"]:
            raise serializers.ValidationError({"dataset": "Give species or a data set, not both."})
        return given


@extend_schema_serializer(many=False)
class ImagePageSerializer(serializers.Serializer[Any]):
    """Images in order; `after` is where the next page begins, null on the last."""

    after = serializers.IntegerField(allow_null=True)
    results = ImageSerializer(source="images", many=True)


class ImageViewSet(mixins.RetrieveModelMixin, FlagActions):
    """The images of the corpus; reviewers see the withdrawn ones too."""

    queryset = Image.objects.none()
    serializer_class = ImageSerializer
    lookup_value_converter = "id"

    @extend_schema(
        operation_id="images_list", parameters=[ImageListParameters], responses=ImagePageSerializer
    )
    def list(self, request: Request) -> Response:
        """List the images of the corpus, of species or of a data set; by id, those of a data set by
        their ids there.
        """
        given = parameters(request, ImageListParameters)
        if given["species"] and names_hidden_from(request.user):
            raise PermissionDenied("Species are hidden while you label.")
        page = corpus_images(
            species_ids=given["species"],
            dataset=given["dataset"],
            after=given["after"],
            limit=given["limit"],
        )
        hide_places(page.images, request.user)
        return Response(ImagePageSerializer(page, context={"request": request}).data)

    def get_object(self) -> Image:
        """The image, without a place that the user may not see."""
        image = super().get_object()
        hide_places([image], self.request.user)
        return image

    def get_queryset(self) -> QuerySet[Image]:
        visible = images_visible_to(self.request.user)
        return visible.select_related("species").prefetch_related("species__names")
