"""API of images."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework import mixins

from retrieval.corpus.models import Image
from retrieval.corpus.places import hide_places
from retrieval.corpus.serializers import ImageSerializer
from retrieval.flags.api import FlagActions
from retrieval.flags.selectors import images_visible_to


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
