"""The API of a query's reader, and of judgments that somebody can give."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.fields import IdField, NumberField, TruthField
from core.api.parameters import validated
from core.errors import Invalid
from extras.reading.models import Reader, ReaderUse
from extras.reading.queues import MOST_GIVEN, spend
from extras.reading.use import use_set
from labeling.judging.access import get_query_for
from labeling.queries.models import Benchmark, Query


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


def use_of(query: Query) -> ReaderUse:
    """What the query uses; without a reader where it uses none."""
    return ReaderUse.objects.filter(query=query).first() or ReaderUse(query=query)


def use_save(query: Query, sent: dict[str, Any], by: Any) -> None:
    """Do what a valid ReaderUseSerializer says. Raises Invalid, and what `use_set` does."""
    reader_id, screening = sent.pop("reader_id"), sent.pop("recall")
    reader = Reader.objects.filter(pk=reader_id).first()
    if reader is None and reader_id is not None:
        raise Invalid({"reader": ["There is no such reader."]})
    use_set(query=query, reader=reader, screening=screening, by=by, **sent)


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
