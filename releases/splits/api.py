"""Drawing the splits through the API."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.fields import NumberField, TextField, TruthField
from labeling.lifecycle.serializers import BenchmarkField
from labeling.lifecycle.splitting import LARGEST_SEED, queries_split, split_plan
from labeling.queries.models import Query
from releases.selectors import released_queries_by_id


class SplitWriteSerializer(serializers.Serializer[dict[str, Any]]):
    """How to draw."""

    val_share = NumberField(min_value=0, max_value=1, help_text="for validation")
    benchmark = BenchmarkField(required=False, help_text="whose queries, by its id; the first")
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_SEED, default=0)
    stratify = TruthField(default=False, help_text="meet it in each category")
    redraw = TruthField(default=False, help_text="also what is settled")
    unfinished = TruthField(
        default=False, help_text="also queries that aren't complete, but for rejected ones"
    )
    dry_run = TruthField(default=False, help_text="change nothing")
    expected = TextField(
        default="", allow_blank=True, max_length=64, help_text="the fingerprint of a dry run"
    )


class SplitRowSerializer(serializers.Serializer[Any]):
    """Queries of one category by split, before the draw and after."""

    category = serializers.CharField()
    val_before = serializers.IntegerField()
    test_before = serializers.IntegerField()
    val = serializers.IntegerField()
    test = serializers.IntegerField()


class SplitMoveSerializer(serializers.Serializer[dict[str, Any]]):
    """A query that changes splits."""

    query_id = serializers.IntegerField()
    before = serializers.ChoiceField(choices=Query.Split.choices)
    after = serializers.ChoiceField(choices=Query.Split.choices)
    release = serializers.CharField(
        help_text="the newest release that has it, with the old split; else empty"
    )


class SplitSerializer(serializers.Serializer[dict[str, Any]]):
    """What a draw does."""

    val = serializers.IntegerField()
    test = serializers.IntegerField()
    drawn = serializers.IntegerField()
    kept = serializers.IntegerField()
    categories = SplitRowSerializer(many=True)
    moved = SplitMoveSerializer(many=True)
    fingerprint = serializers.CharField()


class SplitView(APIView):
    """Which queries are for validation and which for testing."""

    @extend_schema(
        operation_id="splits_draw",
        request=SplitWriteSerializer,
        responses={
            200: SplitSerializer,
            409: OpenApiResponse(description="not the draw that was expected"),
        },
    )
    def post(self, request: Request) -> Response:
        """Draw the splits of the complete queries (admins).

        Settled splits, by an earlier draw, a person or a file, and those of released queries are
        kept, unless `redraw` is set.
        """
        require_role(request.user, Role.ADMIN)
        written = SplitWriteSerializer(data=request.data)
        written.is_valid(raise_exception=True)
        options = dict(written.validated_data)
        dry_run, expected = options.pop("dry_run"), options.pop("expected")
        released = released_queries_by_id()
        if dry_run:
            plan = split_plan(**options, released=released)
        else:
            plan = queries_split(by=request.user, **options, released=released, expected=expected)
        answer = {
            "val": plan.sum.val,
            "test": plan.sum.test,
            "drawn": len(plan.drawn),
            "kept": len(plan.after) - len(plan.drawn),
            "categories": plan.rows,
            "moved": [
                {
                    "query_id": query_id,
                    "before": plan.before[query_id],
                    "after": plan.after[query_id],
                    "release": plan.released.get(query_id, ""),
                }
                for query_id in plan.moved
            ],
            "fingerprint": plan.fingerprint,
        }
        return Response(SplitSerializer(answer).data)
