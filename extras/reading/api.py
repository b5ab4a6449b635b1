"""The API of readers: reviewers see them and how far they are to be believed, admins make readers,
have them read, and say what queries use them for.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.conf import settings
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.fields import IdField, NumberField, TextField, TruthField
from core.api.parameters import validated
from core.errors import Invalid
from core.jobs.serializers import JobSerializer
from evaluation.reranking.api import RerankEstimateSerializer
from extras.reading.calibration import TooFew
from extras.reading.calibrations import calibrate, latest, reader_figures
from extras.reading.models import Calibration, Reader
from extras.reading.queues import MOST_GIVEN, spend
from extras.reading.readers import reader_create, readers_counted
from extras.reading.reading_job import (
    MAX_DEPTH,
    queries_to_read,
    reading_begin,
    reading_checked,
    reading_estimate,
)
from extras.reading.use import use_of, use_save
from labeling.judging.access import get_query_for
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


class CalibrationSerializer(serializers.ModelSerializer[Calibration]):
    """From what a reader says to shares of relevant images."""

    class Meta:
        model = Calibration
        fields = ("id", "said", "found", "relevant", "not_relevant", "made_at")


class ReaderCalibrationSerializer(serializers.Serializer[object]):
    """The latest calibration, and figures by the present labels; see the extra's README."""

    calibration = CalibrationSerializer(allow_null=True, help_text="null before the first")
    figures = serializers.DictField(
        allow_null=True,
        help_text="`judged` and `drawn` (of what audits drew): images, relevant, auc, brier, "
        "log_loss, both also of a constant, and bins; `agreement`: rows by category; null where "
        "too few images are judged to say anything",
    )


class ReaderCalibrationView(APIView):
    """How far a reader is to be believed."""

    @extend_schema(responses=ReaderCalibrationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Read a reader's calibration and figures (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        return _answer(get_object_or_404(Reader, pk=pk))

    @extend_schema(
        request=None,
        responses={
            200: ReaderCalibrationSerializer,
            409: OpenApiResponse(description="too few images are judged"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Calibrate a reader by the present labels (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        reader = get_object_or_404(Reader, pk=pk)
        calibrate(reader=reader)
        return _answer(reader)


def _answer(reader: Reader) -> Response:
    try:
        figures = asdict(reader_figures(reader))
    except TooFew:
        figures = None
    answer = {"calibration": latest(reader), "figures": figures}
    return Response(ReaderCalibrationSerializer(answer).data)


class ReaderUseSerializer(serializers.Serializer[Any]):
    """What a query uses a reader for."""

    reader = IdField(source="reader_id", allow_null=True, help_text="null for none")
    order = TruthField(help_text="the order that learns knows what it says")
    queue = TruthField(help_text="after the stop, people judge what it calls relevant")
    opinions = TruthField(help_text="labels that it doubts get a second opinion")
    recall = NumberField(
        min_value=0.5,
        max_value=1,
        allow_null=True,
        help_text="of judged relevant images, the share that screening keeps; null for none",
    )
    threshold = NumberField(
        source="screening",
        read_only=True,
        allow_null=True,
        help_text="the calibrated probability below which images don't come up",
    )


class SpendSerializer(serializers.Serializer[Any]):
    """How many judgments people can give."""

    count = serializers.IntegerField(min_value=1, max_value=MOST_GIVEN)
    benchmark = IdField(allow_null=True, default=None, help_text="null for all")


class SpentSerializer(serializers.Serializer[Any]):
    """How many images wait to be judged for them."""

    images = serializers.IntegerField()


class QueryReaderView(APIView):
    """The reader of one query."""

    @extend_schema(responses=ReaderUseSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Read what a query uses a reader for (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        return Response(ReaderUseSerializer(use_of(get_query_for(request.user, pk))).data)

    @extend_schema(
        request=ReaderUseSerializer,
        responses={
            200: ReaderUseSerializer,
            409: OpenApiResponse(description="it isn't calibrated, or can't screen the query"),
        },
    )
    def put(self, request: Request, pk: int) -> Response:
        """Say what a query uses a reader for (admins)."""
        require_role(request.user, Role.ADMIN)
        query = get_query_for(request.user, pk)
        use_save(query, validated(request, ReaderUseSerializer), request.user)
        return Response(ReaderUseSerializer(use_of(query)).data)


class SpendView(APIView):
    """Judgments that people can give."""

    @extend_schema(
        operation_id="readers_judgments_create",
        request=SpendSerializer,
        responses={
            201: SpentSerializer,
            409: OpenApiResponse(description="no query has a reader whose images people judge"),
        },
    )
    def post(self, request: Request) -> Response:
        """Have people judge so many images of which readers are least sure (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        sent = validated(request, SpendSerializer)
        benchmark = Benchmark.objects.filter(pk=sent["benchmark"]).first()
        if benchmark is None and sent["benchmark"] is not None:
            raise Invalid({"benchmark": ["There is no such benchmark."]})
        images = spend(count=sent["count"], benchmark=benchmark, by=request.user)
        return Response(SpentSerializer({"images": images}).data, status.HTTP_201_CREATED)
