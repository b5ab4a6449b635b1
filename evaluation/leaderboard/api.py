"""The leaderboard through the API."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from evaluation.leaderboard.export import CONTENT_TYPES
from evaluation.leaderboard.views import export_response
from evaluation.runs.api import RunView
from releases.api import FileRenderer, ReleaseSerializer
from releases.making.services import board_close
from releases.models import Release


class LeaderboardView(RunView):
    """A release's leaderboard as a file."""

    renderer_classes = [FileRenderer]

    @extend_schema(
        parameters=[
            OpenApiParameter("extension", str, OpenApiParameter.PATH, enum=[*CONTENT_TYPES])
        ],
        responses={
            (200, "*/*"): OpenApiResponse(OpenApiTypes.ANY, "of the kind that its name says")
        },
    )
    def get(self, request: Request, pk: int, extension: str) -> HttpResponse:
        """The published runs, as CSV, JSON, LaTeX tables (tex), one web page (html) or the
        archive of a website for any server (zip)."""
        return export_response(pk, extension)


class CloseBoardView(RunView):
    """The end of submissions with test queries."""

    @extend_schema(request=None, responses=ReleaseSerializer)
    def post(self, request: Request, pk: int) -> Response:
        """Take no more runs with test queries on a release whose test split has halves, and show
        the private half to everybody (admins); a repeat changes nothing."""
        require_role(request.user, Role.ADMIN)
        release = board_close(release=get_object_or_404(Release.objects.made(), pk=pk))
        return Response(ReleaseSerializer(release, context={"request": request}).data)
