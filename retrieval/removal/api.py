"""API of data sets and their removal."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.parameters import parameters, validated
from core.jobs.serializers import JobDetailSerializer
from retrieval.corpus.selectors import datasets
from retrieval.removal.selectors import removal_preview
from retrieval.removal.services import dataset_removal_begin

_UNKNOWN = OpenApiResponse(description="the corpus has no data set of that name")


class DatasetsSerializer(serializers.Serializer[Any]):
    """The names of the data sets that images were imported from."""

    results = serializers.ListField(child=serializers.CharField())


class DatasetSerializer(serializers.Serializer[Any]):
    """A data set."""

    dataset = serializers.CharField(max_length=100, help_text="its name")


class RemovalPreviewSerializer(serializers.Serializer[Any]):
    """What goes with a data set, counted over its first 5,000 images."""

    dataset = serializers.CharField()
    images = serializers.IntegerField()
    more = serializers.BooleanField(help_text="whether there are more than were counted")
    files = serializers.IntegerField(help_text="copied files that no other data set has")
    embeddings = serializers.IntegerField()
    problem = serializers.CharField(
        allow_blank=True, help_text="why it can't be removed; else empty"
    )


class DatasetsView(APIView):
    """The data sets."""

    @extend_schema(operation_id="datasets", responses=DatasetsSerializer)
    def get(self, request: Request) -> Response:
        """List the names of the data sets that images were imported from."""
        return Response(DatasetsSerializer({"results": datasets()}).data)


class DatasetRemovalView(APIView):
    """The removal of a data set."""

    @extend_schema(
        operation_id="datasets_removal_preview",
        parameters=[DatasetSerializer],
        responses={200: RemovalPreviewSerializer, 404: _UNKNOWN},
    )
    def get(self, request: Request) -> Response:
        """Show what goes with a data set, and whether something stands against that (admins)."""
        require_role(request.user, Role.ADMIN)
        preview = removal_preview(parameters(request, DatasetSerializer)["dataset"])
        return Response(RemovalPreviewSerializer(preview).data)

    @extend_schema(
        operation_id="datasets_removal_begin",
        request=DatasetSerializer,
        responses={
            201: JobDetailSerializer,
            404: _UNKNOWN,
            409: OpenApiResponse(description="its images are named, or images are imported"),
        },
    )
    def post(self, request: Request) -> Response:
        """Begin the job that removes a data set that nothing was labeled in (admins)."""
        require_role(request.user, Role.ADMIN)
        dataset = validated(request, DatasetSerializer)["dataset"]
        job = dataset_removal_begin(dataset=dataset, by=request.user)
        return Response(JobDetailSerializer(job).data, status=status.HTTP_201_CREATED)
