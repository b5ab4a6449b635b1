"""The API of readers: reviewers see them, admins make readers and have them read."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.fields import IdField, NumberField, TextField, TruthField
from core.api.parameters import validated
from core.jobs.serializers import JobSerializer
from evaluation.reranking.api import RerankEstimateSerializer
from extras.reading.models import Reader
from extras.reading.readers import reader_create, readers_counted
from extras.reading.reading_job import (
    MAX_DEPTH,
    queries_to_read,
    reading_begin,
    reading_checked,
    reading_estimate,
)
from labeling.queries.models import Benchmark


class ReaderSerializer(serializers.ModelSerializer[Reader]):
    """A reader, and how much it has read."""

    endpoint = TextField(
        write_only=True,
        default="",
        allow_blank=True,
        help_text="name of a server in the setting MULTIMODAL_ENDPOINTS",
    )
    readings = serializers.IntegerField(source="reading_count", read_only=True, default=0)

    class Meta:
        model = Reader
        fields = (
            "id", "name", "family", "endpoint", "base_url", "model", "entry_point", "prompt",
            "max_side", "requests_per_minute", "price_in", "price_out", "readings", "created_at",
        )  # fmt: skip
        read_only_fields = ("base_url", "max_side", "created_at")


class ReadSerializer(serializers.Serializer[Any]):
    """What is read, and what that may cost."""

    queries = TextField(default="open", help_text="open, all, or numbers separated by commas")
    benchmark = IdField(default=None, allow_null=True, help_text="the id of one; null for all")
    depth = serializers.IntegerField(min_value=1, max_value=MAX_DEPTH)
    max_cost = NumberField(min_value=0, default=None, allow_null=True, help_text="US dollars")
    estimate = TruthField(default=False, help_text="whether nothing is started")


class ReadersView(APIView):
    """Machines that read along."""

    @extend_schema(operation_id="readers_list", responses=ReaderSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List the readers (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        return Response(ReaderSerializer(readers_counted(), many=True).data)

    @extend_schema(request=ReaderSerializer, responses={201: ReaderSerializer})
    def post(self, request: Request) -> Response:
        """Make a reader, of a server or an installed entry point (admins)."""
        require_role(request.user, Role.ADMIN)
        sent = validated(request, ReaderSerializer)
        # Only servers that the operator named: the API must not make this machine ask any address.
        address = settings.MULTIMODAL_ENDPOINTS.get(sent.pop("endpoint"), "")
        reader = reader_create(reader=Reader(base_url=address, **sent), by=request.user)
        return Response(ReaderSerializer(reader).data, status=status.HTTP_201_CREATED)


class ReadingsView(APIView):
    """The readings of one reader."""

    @extend_schema(
        request=ReadSerializer, responses={200: RerankEstimateSerializer, 201: JobSerializer}
    )
    def post(self, request: Request, pk: int) -> Response:
        """Have the reader read images, or estimate what that takes (admins)."""
        require_role(request.user, Role.ADMIN)
        reader = get_object_or_404(Reader, pk=pk)
        sent = validated(request, ReadSerializer)
        benchmark = sent.pop("benchmark")
        if benchmark is not None:
            benchmark = get_object_or_404(Benchmark, pk=benchmark)
        queries = queries_to_read(sent.pop("queries"), benchmark)
        if sent.pop("estimate"):
            reading_checked(reader=reader, **sent)
            estimate = reading_estimate(reader=reader, queries=queries, depth=sent["depth"])
            return Response(RerankEstimateSerializer(asdict(estimate)).data)
        job = reading_begin(reader=reader, queries=queries, by=request.user, **sent)
        return Response(JobSerializer(job).data, status=status.HTTP_201_CREATED)
