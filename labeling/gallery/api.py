"""The API of a query's gallery. A correction is a judgment of the source "correction"."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.parameters import parameters
from labeling.gallery.selectors import GalleryFilter, gallery, gallery_images
from labeling.gallery.serializers import GalleryImageSerializer, GalleryParameters
from labeling.judging.access import get_query_for


class GalleryActions:
    """Looking at what was labeled; part of the queries' view set."""

    paginator: BasePagination

    @extend_schema(parameters=[GalleryParameters], responses=GalleryImageSerializer(many=True))
    @action(detail=True, methods=["get"])
    def images(self, request: Request, pk: int) -> Response:
        """The images that were judged for the query, in the order of its list.

        Reviewers see the consensus and everybody's judgments, but for images that wait for their
        own blind judgment; annotators see their own.
        """
        query = get_query_for(request.user, pk)
        wanted = GalleryFilter(**parameters(request, GalleryParameters))
        ids: Any = gallery(query=query, user=request.user, wanted=wanted).image_ids
        page: Any = self.paginator.paginate_queryset(ids, request, view=self)  # type: ignore[arg-type]
        images = gallery_images(query=query, user=request.user, image_ids=page)
        return self.paginator.get_paginated_response(GalleryImageSerializer(images, many=True).data)
