"""Releases through the API: researchers and reviewers read them, admins make them."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiParameter,
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
)
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from core.access import Role, at_least, require_evaluator, require_role
from core.api.fields import IdField, TextField, TruthField
from core.api.parameters import parameters
from labeling.lifecycle.serializers import BenchmarkField, BenchmarkSerializer
from releases import selectors
from releases.access import labels_visible_to
from releases.downloads import archive_response, file_response
from releases.making import services
from releases.making.labels import images_to_audit
from releases.models import Release
from retrieval.corpus.models import Image


class ReleaseFileSerializer(serializers.Serializer[Any]):
    """One file of a release."""

    name = serializers.CharField(help_text="its path within the release")
    size = serializers.IntegerField(help_text="bytes")
    sha256 = serializers.CharField()
    access = serializers.CharField(help_text="open, or labels: it holds labels of the test split")
    format = serializers.CharField(help_text="which format it belongs to")


class ReleaseArchiveSerializer(serializers.Serializer[dict[str, Any]]):
    """The archive of a release's files."""

    name = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes")
    sha256 = serializers.CharField()


class ReleaseStepSerializer(serializers.Serializer[dict[str, Any]]):
    """A step of making a release."""

    title = serializers.CharField()
    state = serializers.CharField(help_text="waiting, running or done")
    done = serializers.IntegerField()
    total = serializers.IntegerField(allow_null=True, help_text="null while it isn't known")


class ReleaseSerializer(serializers.ModelSerializer[Release]):
    """A release and the files of it that you may have; there are none until its state is done."""

    state = serializers.CharField(
        read_only=True, help_text="queued, running, done, failed or canceled"
    )
    created_by = serializers.CharField(source="created_by.username", default=None, read_only=True)
    error = serializers.SerializerMethodField(help_text="why making it failed; else empty")
    benchmark = BenchmarkSerializer(read_only=True)
    test_labels = serializers.ChoiceField(
        Release.TestLabels.choices, read_only=True, help_text="who sees those of the test split"
    )
    test_halves = serializers.BooleanField(
        source="has_halves",
        read_only=True,
        help_text="whether scores are of the public half of the test split until the board closes",
    )
    positives = serializers.SerializerMethodField(
        help_text="relevant pairs; null where the labels of the test split are hidden from you"
    )
    images_to_audit = serializers.SerializerMethodField(
        help_text="drawn images of its completed queries that wait for a judgment before it is "
        "made: with any, its certificate states no recall; null once it is made, and for others "
        "than admins"
    )
    judgments = serializers.SerializerMethodField(
        help_text="single judgments; null where an imported benchmark has none, and where the "
        "labels of the test split are hidden from you"
    )
    files = serializers.SerializerMethodField()
    archive = serializers.SerializerMethodField(
        help_text="of the files that you may have; null where there is none"
    )

    class Meta:
        model = Release
        fields: tuple[str, ...] = (
            "id",
            "name",
            "version",
            "benchmark",
            "origin",
            "state",
            "error",
            "job",
            "created_by",
            "created_at",
            "made_at",
            "previous",
            "options",
            "test_labels",
            "test_halves",
            "board_closed_at",
            "val_queries",
            "test_queries",
            "images_to_audit",
            "positives",
            "judgments",
            "files",
            "archive",
        )
        read_only_fields: tuple[str, ...] = fields

    def get_error(self, release: Release) -> str:
        """Why it could not be made; else empty."""
        return selectors.release_error(release)

    def get_images_to_audit(self, release: Release) -> int | None:
        """How many images wait for a judgment while it is made, for admins."""
        made = release.files_ready or release.origin != Release.Origin.MADE
        if made or not at_least(self.context["request"].user, Role.ADMIN):
            return None
        return images_to_audit(release.benchmark)

    def get_positives(self, release: Release) -> int | None:
        """How many relevant pairs, as far as the user may know."""
        return release.positives if self._labels_visible(release) else None

    def get_judgments(self, release: Release) -> int | None:
        """How many judgments, as far as the user may know."""
        return release.known_judgments if self._labels_visible(release) else None

    def _labels_visible(self, release: Release) -> bool:
        return labels_visible_to(self.context["request"].user, release, "test")

    @extend_schema_field(ReleaseFileSerializer(many=True))
    def get_files(self, release: Release) -> Any:
        """The files that the user may have."""
        files = selectors.files_for(self.context["request"].user, release)
        return ReleaseFileSerializer(files, many=True).data

    @extend_schema_field(ReleaseArchiveSerializer(allow_null=True))
    def get_archive(self, release: Release) -> Any:
        """The archive that the user may have."""
        return selectors.archive_for(self.context["request"].user, release)


class ReleaseDetailSerializer(ReleaseSerializer):
    """A release with everything about it."""

    difference = serializers.SerializerMethodField(
        help_text="from the version before, as far as you may know it; empty for a first version"
    )
    progress = serializers.SerializerMethodField(help_text="the steps of making it, in order")

    class Meta(ReleaseSerializer.Meta):
        fields = (*ReleaseSerializer.Meta.fields, "header", "difference", "progress")
        read_only_fields = fields

    @extend_schema_field(OpenApiTypes.OBJECT)
    def get_difference(self, release: Release) -> Any:
        """What changed, as far as the user may know."""
        return selectors.difference_for(self.context["request"].user, release)

    @extend_schema_field(ReleaseStepSerializer(many=True))
    def get_progress(self, release: Release) -> Any:
        """The steps of its making."""
        return selectors.release_steps(release)


class ReleaseCreateSerializer(serializers.Serializer[dict[str, Any]]):
    """What a new release needs."""

    name = TextField(max_length=100, help_text="a known name makes its next version")
    benchmark = BenchmarkField(
        required=False,
        help_text="the id of that whose queries go in; needed for a new name where there are two",
    )
    rerank_model = TextField(
        max_length=300,
        required=False,
        allow_blank=True,
        help_text="whose top 100 are the fixed lists for re-ranking; empty for none; without it "
        "the model in use",
    )
    include_images = TruthField(
        default=False, help_text="whether the Hugging Face and MTEB folders hold the images' bytes"
    )
    test_labels = serializers.ChoiceField(
        Release.TestLabels.choices,
        default=Release.TestLabels.HIDDEN,
        help_text="hidden: reviewers and admins alone see the labels of the test split, and "
        "researchers two rounded means of a run; public: researchers see all",
    )
    pay_per_hour = TextField(
        max_length=30,
        required=False,
        allow_blank=True,
        help_text="what people were paid, such as “15.50 USD”, for the datasheet",
    )
    test_halves = TruthField(
        default=False,
        help_text="whether hidden labels have a public half, which researchers see means of, and a "
        "private one, shown once the board closes; a later release of the benchmark has the halves "
        "of an open board in any case",
    )


class ReleaseParameters(serializers.Serializer[dict[str, Any]]):
    """Which releases."""

    benchmark = IdField(required=False, help_text="the id of that whose queries they hold")


class ReleaseRole(IsAuthenticated):
    """Researchers, reviewers and admins; for a new release admins alone. 403 for others."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        require_evaluator(request.user)
        if request.method not in SAFE_METHODS:
            require_role(request.user, Role.ADMIN)
        return True


class FileRenderer(BaseRenderer):
    """Fits any Accept header: a file is of the kind that it is."""

    media_type = "*/*"
    format = ""


class ReleaseViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Release]
):
    """Snapshots of the completed queries and their consensus, in every common format."""

    serializer_class = ReleaseSerializer
    permission_classes = [ReleaseRole]
    queryset = Release.objects.none()
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[Release]:
        return selectors.releases()

    @extend_schema(parameters=[ReleaseParameters])
    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        """The newest first."""
        releases = self.get_queryset()
        if (benchmark := parameters(request, ReleaseParameters).get("benchmark")) is not None:
            releases = releases.filter(benchmark=benchmark)
        page = self.paginate_queryset(releases) or []
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def get_serializer_class(self) -> type[ReleaseSerializer]:
        """With details but in lists."""
        return ReleaseSerializer if self.action == "list" else ReleaseDetailSerializer

    @extend_schema(request=ReleaseCreateSerializer, responses={201: ReleaseDetailSerializer})
    def create(self, request: Request) -> Response:
        """Begin a release of the queries that are complete now; a job makes it."""
        data = ReleaseCreateSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        options = dict(data.validated_data)
        name, benchmark = options.pop("name"), options.pop("benchmark", None)
        release = services.release_create(
            name=name, created_by=request.user, options=options, benchmark=benchmark
        )
        return Response(
            self.get_serializer(release).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("api-release-detail", args=[release.pk], request=request)},
        )

    @extend_schema(request=None, responses={200: ReleaseDetailSerializer})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Continue a release whose making failed."""
        release = services.release_retry(release=self.get_object(), by=request.user)
        return Response(self.get_serializer(release).data)

    @extend_schema(
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH)],
        responses={
            (200, "*/*"): OpenApiResponse(OpenApiTypes.ANY, "of the kind that its name says")
        },
    )
    def file(self, request: Request, pk: int, name: str) -> HttpResponseBase:
        """One file of a release, as it was made, or a redirect to it; 403 for one that you may not
        have."""
        return file_response(request, self.get_object(), name)

    @extend_schema(
        responses={(200, "application/zip"): OpenApiResponse(OpenApiTypes.BINARY)},
    )
    def archive(self, request: Request, pk: int) -> HttpResponseBase:
        """All files of a release that you may have, in one ZIP archive, or a redirect to it."""
        return archive_response(request, self.get_object())


class ReleaseOfImageSerializer(serializers.ModelSerializer[Release]):
    """A release that has an image."""

    class Meta:
        model = Release
        fields = ("id", "name", "version", "made_at")
        read_only_fields = fields


class ReleasesOfImageSerializer(serializers.Serializer[Any]):
    """The made releases that have an image, the newest first."""

    results = ReleaseOfImageSerializer(many=True)


class ReleasesOfImageView(APIView):
    """The releases of an image."""

    @extend_schema(operation_id="images_releases", responses=ReleasesOfImageSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """List the made releases that have an image in a pair or a fixed list (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        releases = selectors.releases_of_image(get_object_or_404(Image, pk=pk))
        return Response(ReleasesOfImageSerializer({"results": releases}).data)


class ReleaseOfDatasetSerializer(serializers.Serializer[Any]):
    """A release with images of a data set."""

    release = ReleaseOfImageSerializer()
    images = serializers.IntegerField(help_text="of the data set")
    license_read = serializers.IntegerField(
        help_text="of these those whose license was read before the source's words were kept"
    )
    exact_locations = serializers.IntegerField(
        help_text="of these those with a table's location that may be obscured"
    )


class ReleasesOfDatasetSerializer(serializers.Serializer[Any]):
    """The made releases that have images of a data set, the newest first."""

    results = ReleaseOfDatasetSerializer(many=True)


class DatasetNameSerializer(serializers.Serializer[Any]):
    """A data set."""

    dataset = serializers.CharField(max_length=100, help_text="its name")


class ReleasesOfDatasetView(APIView):
    """The releases of a data set."""

    @extend_schema(
        operation_id="datasets_releases",
        parameters=[DatasetNameSerializer],
        responses=ReleasesOfDatasetSerializer,
    )
    def get(self, request: Request) -> Response:
        """List the made releases that have images of a data set, with the numbers of those that an
        earlier version may have read wrongly (admins).
        """
        require_role(request.user, Role.ADMIN)
        dataset = parameters(request, DatasetNameSerializer)["dataset"]
        found = selectors.releases_of_dataset(dataset)
        return Response(ReleasesOfDatasetSerializer({"results": found}).data)
