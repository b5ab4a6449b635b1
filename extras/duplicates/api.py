"""The API of near-duplicates."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.jobs.serializers import JobDetailSerializer
from extras.duplicates.services import duplicates_job_create


class DuplicatesView(APIView):
    """The search for near-duplicates."""

    @extend_schema(
        operation_id="duplicates_find",
        request=None,
        responses={
            201: JobDetailSerializer,
            409: OpenApiResponse(description="the model in use has embedded no image"),
        },
    )
    def post(self, request: Request) -> Response:
        """Begin the job that looks for near-duplicates, unless one is unfinished (admins)."""
        require_role(request.user, Role.ADMIN)
        job = duplicates_job_create(by=request.user)
        return Response(JobDetailSerializer(job).data, status=status.HTTP_201_CREATED)
