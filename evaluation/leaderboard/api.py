"""The leaderboard through the API."""

from __future__ import annotations

from django.http import HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request

from evaluation.leaderboard.export import CONTENT_TYPES
from evaluation.leaderboard.views import export_response
from evaluation.runs.api import RunView
from releases.api import FileRenderer


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
        """The published runs, as CSV, JSON, LaTeX tables (tex) or one web page (html)."""
        return export_response(pk, extension)
