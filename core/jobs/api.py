"""API of jobs."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import mixins, viewsets
from rest_framework.decorators import action
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.selectors import jobs_visible_to
from core.jobs.serializers import JobDetailSerializer, JobSerializer
from core.jobs.services import job_cancel, job_retry


class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Job]):
    """Jobs: admins see all of them, others the ones that they started."""

    permission_classes = [IsAuthenticated]
    queryset = Job.objects.none()
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[Job]:
        return jobs_visible_to(self.request.user)

    def get_serializer_class(self) -> Any:
        return JobSerializer if self.action == "list" else JobDetailSerializer

    @extend_schema(request=None, responses=JobDetailSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: int) -> Response:
        """Stop an unfinished job before its next piece of work."""
        return self._changed(request, job_cancel, "This job has ended already.")

    @extend_schema(request=None, responses=JobDetailSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Queue a failed or canceled job again; it continues where it stopped."""
        return self._changed(request, job_retry, "Only a failed or canceled job can be retried.")

    def _changed(self, request: Request, change: Any, refusal: str) -> Response:
        require_role(request.user, Role.ADMIN)
        job = self.get_object()
        if not change(job=job):
            raise Conflict(refusal)
        job.refresh_from_db()
        return Response(self.get_serializer(job).data)
