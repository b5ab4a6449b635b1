"""API of jobs, with the kind that embeds the corpus."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.fields import TextField
from core.api.parameters import validated
from core.jobs.api import JobViewSet
from core.jobs.serializers import JobDetailSerializer
from retrieval.embedding.services import embedding_job_create
from retrieval.encoding.model_specs import ModelSpecError


class JobCreateSerializer(serializers.Serializer[Any]):
    """A job to start: embedding of the corpus, by default with EMBEDDING_MODEL."""

    kind = serializers.ChoiceField(choices=["embed"])
    model = TextField(max_length=300, default="", allow_blank=True)


class EmbeddingJobViewSet(JobViewSet):
    """Jobs; admins can start one that embeds the corpus."""

    @extend_schema(request=JobCreateSerializer, responses={201: JobDetailSerializer})
    def create(self, request: Request) -> Response:
        """Start a job that embeds the corpus, unless one of the same model is unfinished."""
        require_role(request.user, Role.ADMIN)
        model = validated(request, JobCreateSerializer)["model"]
        try:
            job = embedding_job_create(model_name=model, created_by=request.user)
        except ModelSpecError as error:
            raise ValidationError({"model": str(error)}) from error
        return Response(self.get_serializer(job).data, status=status.HTTP_201_CREATED)
