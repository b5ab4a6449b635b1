"""Many queries are opened by one request."""

from __future__ import annotations

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.fields import IdField
from labeling.lifecycle.opening import MOST_AT_ONCE, queries_open


class OpenQueriesSerializer(serializers.Serializer):
    """Which queries to open, by `id`."""

    queries = serializers.ListField(
        child=IdField(),
        min_length=1,
        max_length=MOST_AT_ONCE,
    )


class OpeningRefusalSerializer(serializers.Serializer):
    """A query that stays as it is, by its number in the CSV files, and why."""

    query_id = serializers.IntegerField()
    detail = serializers.CharField()


class OpeningReportSerializer(serializers.Serializer):
    """What became of the queries; those that don't exist are in no count."""

    opened = serializers.IntegerField()
    unchanged = serializers.IntegerField(help_text="open already")
    refused = OpeningRefusalSerializer(many=True)


class OpeningActions:
    """What opens many queries at once; part of the queries' view set."""

    @extend_schema(request=OpenQueriesSerializer, responses=OpeningReportSerializer)
    @action(detail=False, methods=["post"], url_path="open")
    def open_many(self, request: Request) -> Response:
        """Open drafts (admins); the candidates of those without a species filter are ranked in one
        pass over the corpus. A query that can't be opened doesn't keep the others from it.
        """
        require_role(request.user, Role.ADMIN)
        data = OpenQueriesSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        report = queries_open(pks=data.validated_data["queries"], by=request.user)
        return Response(OpeningReportSerializer(asdict(report)).data)
