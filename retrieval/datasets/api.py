"""API of what data sets hold, what to look at in them, and what admins say of them."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.fields import IdField, TruthField
from core.api.parameters import parameters, validated
from retrieval.corpus.models import DatasetMark
from retrieval.datasets.selectors import (
    Finding,
    dataset_figures,
    dataset_mark_of,
    found_images,
    texts_kept_since,
)
from retrieval.datasets.services import dataset_mark
from retrieval.images.api import ImagePageSerializer

_UNKNOWN = OpenApiResponse(description="the corpus has no data set of that name")


class DatasetMarkSerializer(serializers.ModelSerializer[DatasetMark]):
    """What an admin has said of a data set."""

    class Meta:
        model = DatasetMark
        fields = ("license_unknown", "locations_obscured")
        read_only_fields = fields


class DatasetLicenseSerializer(serializers.Serializer[Any]):
    """A license and the number of its images."""

    license = serializers.CharField(help_text="empty where the images have none")
    images = serializers.IntegerField()


class DatasetFiguresSerializer(serializers.Serializer[Any]):
    """A data set in numbers of images, withdrawn ones among them."""

    dataset = serializers.CharField()
    images = serializers.IntegerField()
    licenses = DatasetLicenseSerializer(many=True, help_text="the most frequent")
    more_licenses = serializers.IntegerField(help_text="how many others there are")
    license_read = serializers.IntegerField(
        help_text="images whose license was read by `curate` before the source's words were kept"
    )
    exact_locations = serializers.IntegerField(
        help_text="images with a location that is not obscured, imported from a table before then"
    )
    mark = DatasetMarkSerializer()


class DatasetsFiguresSerializer(serializers.Serializer[Any]):
    """All data sets in numbers."""

    texts_kept_since = serializers.DateTimeField(
        allow_null=True, help_text="when this installation began to keep licenses' own words"
    )
    results = DatasetFiguresSerializer(many=True)


class FiguresParameters(serializers.Serializer[Any]):
    """Which data sets."""

    dataset = serializers.CharField(default=None, max_length=100, help_text="only this one")


class FoundParameters(serializers.Serializer[Any]):
    """Which images."""

    dataset = serializers.CharField(max_length=100)
    finding = serializers.ChoiceField(Finding.choices)
    after = IdField(default=None, allow_null=True, help_text="the `after` of the page before")
    limit = serializers.IntegerField(min_value=1, max_value=500, default=60)


class DatasetMarkRequestSerializer(serializers.Serializer[Any]):
    """What to say of a data set; what is left out stays as it is."""

    dataset = serializers.CharField(max_length=100)
    license_unknown = TruthField(
        required=False, help_text="take the license of its images away; their text keeps the words"
    )
    locations_obscured = TruthField(
        required=False, help_text="take the locations of its images for obscured"
    )


class DatasetMarkedSerializer(serializers.Serializer[Any]):
    """What is said of a data set now."""

    dataset = serializers.CharField()
    mark = DatasetMarkSerializer()
    job = serializers.IntegerField(
        allow_null=True, help_text="the job that changes the images; null where none has to change"
    )


class DatasetFiguresView(APIView):
    """What data sets hold."""

    @extend_schema(
        operation_id="datasets_figures",
        parameters=[FiguresParameters],
        responses={200: DatasetsFiguresSerializer, 404: _UNKNOWN},
    )
    def get(self, request: Request) -> Response:
        """Count the images of data sets, by license and by what an earlier version may have read
        wrongly (admins). It reads the images: a second or two for a million.
        """
        require_role(request.user, Role.ADMIN)
        figures = dataset_figures(parameters(request, FiguresParameters)["dataset"])
        answer = {"texts_kept_since": texts_kept_since(), "results": figures}
        return Response(DatasetsFiguresSerializer(answer).data)


class DatasetFoundView(APIView):
    """Images that an earlier version may have read wrongly."""

    @extend_schema(
        operation_id="datasets_found",
        parameters=[FoundParameters],
        responses={200: ImagePageSerializer, 404: _UNKNOWN},
    )
    def get(self, request: Request) -> Response:
        """List the images of a data set with a finding, by their ids there (admins)."""
        require_role(request.user, Role.ADMIN)
        given = parameters(request, FoundParameters)
        dataset_mark_of(given["dataset"])
        page = found_images(
            given["dataset"],
            Finding(given["finding"]),
            after=given["after"],
            limit=given["limit"],
        )
        return Response(ImagePageSerializer(page, context={"request": request}).data)


class DatasetMarkView(APIView):
    """What admins say of a data set as a whole."""

    @extend_schema(
        operation_id="datasets_mark",
        request=DatasetMarkRequestSerializer,
        responses={
            200: DatasetMarkedSerializer,
            404: _UNKNOWN,
            409: OpenApiResponse(description="images are imported, or a data set is removed"),
        },
    )
    def post(self, request: Request) -> Response:
        """Say that a data set's license is unknown or that its locations are obscured, also for
        later imports of it, or take that back (admins). What is taken back stays with the images
        until they are imported again.
        """
        require_role(request.user, Role.ADMIN)
        given = validated(request, DatasetMarkRequestSerializer)
        mark, job = dataset_mark(by=request.user, **given)
        answer = {"dataset": mark.dataset, "mark": mark, "job": job and job.pk}
        return Response(DatasetMarkedSerializer(answer).data)
