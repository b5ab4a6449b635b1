"""API of images."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import mixins, serializers

from core.access import names_hidden_from
from retrieval.corpus.models import Image
from retrieval.corpus.places import hide_places
from retrieval.corpus.serializers import SpeciesOfImage
from retrieval.flags.api import FlagActions
from retrieval.flags.selectors import images_visible_to


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


class ImageViewSet(mixins.RetrieveModelMixin, FlagActions):
    """The images of the corpus; reviewers see the withdrawn ones too."""

    queryset = Image.objects.none()
    serializer_class = ImageSerializer
    lookup_value_converter = "id"

    def get_object(self) -> Image:
        """The image, without a place that the user may not see."""
        image = super().get_object()
        hide_places([image], self.request.user)
        return image

    def get_queryset(self) -> QuerySet[Image]:
        visible = images_visible_to(self.request.user)
        return visible.select_related("species").prefetch_related("species__names")
