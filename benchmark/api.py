"""Releases through the API: researchers and reviewers read them, admins make them."""

from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.permissions import SAFE_METHODS, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from benchmark import selectors, services
from benchmark.models import Release
from retrieval.access import Role, require_evaluator, require_role


class ReleaseFileSerializer(serializers.Serializer[dict[str, Any]]):
    """One file of a release."""

    name = serializers.CharField()
    size = serializers.IntegerField(help_text="bytes")
    sha256 = serializers.CharField()


class ReleaseSerializer(serializers.ModelSerializer[Release]):
    """A release and its files; there are none until its state is done."""

    state = serializers.CharField(
        read_only=True, help_text="queued, running, done, failed or cancelled"
    )
    created_by = serializers.CharField(source="created_by.username", default=None, read_only=True)
    files = ReleaseFileSerializer(source="file_list", many=True, read_only=True)

    class Meta:
        model = Release
        fields = (
            "id",
            "name",
            "state",
            "job",
            "created_by",
            "created_at",
            "made_at",
            "val_queries",
            "test_queries",
            "positives",
            "judgments",
            "files",
        )
        read_only_fields = fields


class ReleaseCreateSerializer(serializers.Serializer[dict[str, Any]]):
    """What a new release needs."""

    name = serializers.CharField(max_length=100)


class ReleaseRole(IsAuthenticated):
    """Researchers, reviewers and admins; for a file reviewers and admins, for a new release admins
    alone. 403 for others.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if not super().has_permission(request, view):
            return False
        require_evaluator(request.user)
        if request.method not in SAFE_METHODS:
            require_role(request.user, Role.ADMIN)
        elif view.action == "file":
            require_role(request.user, Role.REVIEWER)
        return True


class ReleaseViewSet(
    mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Release]
):
    """Snapshots of the completed queries and their consensus, in INQUIRE's files."""

    serializer_class = ReleaseSerializer
    permission_classes: ClassVar = [ReleaseRole]
    queryset = Release.objects.none()
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[Release]:
        return selectors.releases()

    @extend_schema(request=ReleaseCreateSerializer, responses={201: ReleaseSerializer})
    def create(self, request: Request) -> Response:
        """Begin a release of the queries that are complete now; a job makes it."""
        data = ReleaseCreateSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        release = services.release_create(name=data.validated_data["name"], created_by=request.user)
        return Response(
            self.get_serializer(release).data,
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("api-release-detail", args=[release.pk], request=request)},
        )

    @extend_schema(
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH)],
        responses={(200, "text/csv"): OpenApiResponse(OpenApiTypes.BINARY)},
    )
    def file(self, request: Request, pk: int, name: str) -> FileResponse:
        """One file of a release, as it was made."""
        path = selectors.release_file_path(release=self.get_object(), name=name)
        if path is None:
            raise Http404
        return FileResponse(
            path.open("rb"),
            as_attachment=True,
            filename=name,
            content_type="text/csv; charset=utf-8",
        )
