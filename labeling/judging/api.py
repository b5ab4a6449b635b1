"""Writing and reading the judgments of one query; extending and renewing its list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, status
from rest_framework.decorators import action
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.parameters import parameters
from core.errors import Conflict, QueryGone
from labeling.candidates.selectors import list_status
from labeling.candidates.serializers import ListSerializer
from labeling.candidates.services import list_extend, list_refresh
from labeling.judging.access import (
    get_query_for,
    judgment_history,
    judgments_visible_to,
    query_unknown,
    require_permission,
    sees_query,
)
from labeling.judging.progress import progress
from labeling.judging.serializers import (
    ExtendedSerializer,
    ExtendSerializer,
    HistoryParameters,
    HistorySerializer,
    JudgmentAnswerSerializer,
    JudgmentItemSerializer,
    JudgmentParameters,
    JudgmentSerializer,
    ProgressSerializer,
)
from labeling.judging.services import (
    LARGEST_BATCH,
    JudgmentOutcome,
    JudgmentStatus,
    RefusalCode,
    judgments_record,
)
from labeling.judging.writer import JudgmentInput
from labeling.queries.models import Query

# Made once: a serializer copies all its fields when it is made, which takes longer than an item.
_ITEM = JudgmentItemSerializer()
_PROGRESS = ProgressSerializer()


class LabelingActions:
    """What is done on one query's list; part of the queries' view set."""

    paginator: BasePagination

    @extend_schema(
        methods=["get"],
        parameters=[JudgmentParameters],
        responses=JudgmentSerializer(many=True),
    )
    @extend_schema(
        methods=["post"],
        request=JudgmentItemSerializer(many=True),
        parameters=[
            OpenApiParameter(
                "X-Annotator",
                OpenApiTypes.INT64,
                OpenApiParameter.HEADER,
                description="the annotator's id, as `outline` returns it",
            )
        ],
        responses={
            200: JudgmentAnswerSerializer,
            400: OpenApiResponse(description="the body is not a list of at most 500"),
            409: OpenApiResponse(
                description="X-Annotator isn't the logged-in user; nothing stored"
            ),
        },
    )
    @action(detail=True, methods=["get", "post"])
    def judgments(self, request: Request, pk: int) -> Response:
        """Store or list judgments.

        POST takes a list and answers per item: stored, repeated (the client id was stored before;
        nothing changes) or refused with a code and a reason; a relevance of null takes a judgment
        back. GET gives reviewers everybody's current judgments by rank, annotators their own.
        """
        if request.method == "POST":
            return self._judge(request, pk)
        query = get_query_for(request.user, pk)
        given = parameters(request, JudgmentParameters)
        if "annotator" in given:
            given["annotator__username"] = given.pop("annotator")
        visible = judgments_visible_to(request.user, query).filter(**given)
        page = self.paginator.paginate_queryset(visible, request, view=self) or []  # type: ignore[arg-type]
        return self.paginator.get_paginated_response(JudgmentSerializer(page, many=True).data)

    @extend_schema(parameters=[HistoryParameters], responses=HistorySerializer)
    @action(detail=True, methods=["get"])
    def history(self, request: Request, pk: int) -> Response:
        """The history of one image's judgments for the query, the oldest first.

        Reviewers see everybody's, annotators their own.
        """
        query = get_query_for(request.user, pk)
        query_parameters = parameters(request, HistoryParameters)
        events = judgment_history(query, query_parameters["image"], request.user)
        return Response(HistorySerializer({"results": events}).data)

    @extend_schema(request=ExtendSerializer, responses=ExtendedSerializer)
    @action(detail=True, methods=["post"])
    def extend(self, request: Request, pk: int) -> Response:
        """Append the next candidates of the same order (anybody who may judge for the query)."""
        query = get_query_for(request.user, pk)
        require_permission(request.user, query)
        data = ExtendSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        if query.current_list is None:
            raise Conflict("The query has no candidate list.")
        added = list_extend(
            candidate_list=query.current_list, by_count=data.validated_data["count"]
        )
        current = list_status(get_query_for(request.user, query.pk))
        return Response(ExtendedSerializer({"added": added, "list": current}).data)

    @extend_schema(request=None, responses={202: ListSerializer})
    @action(detail=True, methods=["post"])
    def refresh(self, request: Request, pk: int) -> Response:
        """Make a new list that includes images embedded since (admins)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        list_refresh(query=query, by=request.user)
        current = list_status(get_query_for(request.user, query.pk))
        return Response(ListSerializer(current).data, status=status.HTTP_202_ACCEPTED)

    def _judge(self, request: Request, pk: int) -> Response:
        sender = request.headers.get("X-Annotator")
        if sender is not None and sender.strip() != str(request.user.pk):
            raise Conflict(
                "These judgments belong to another user than the one who is logged in; nothing "
                "was stored. Log in as that user to send them."
            )
        if not isinstance(request.data, list):
            raise exceptions.ValidationError("A list of judgments is needed.")
        if len(request.data) > LARGEST_BATCH:
            raise exceptions.ValidationError(f"At most {LARGEST_BATCH} judgments at once.")
        read = [_read(raw) for raw in request.data]
        try:
            recorded = judgments_record(
                query=Query(pk=pk, benchmark_id=0),
                annotator=request.user,
                items=[item for item in read if isinstance(item, JudgmentInput)],
            )
        except QueryGone:
            raise query_unknown() from None
        # All items were refused where the person can't see the query; it isn't revealed either.
        if not sees_query(request.user, recorded.query):
            raise query_unknown()
        outcomes = iter(recorded.outcomes)
        results = [
            _answer(raw, next(outcomes) if isinstance(item, JudgmentInput) else item)
            for raw, item in zip(request.data, read, strict=True)
        ]
        own = progress(recorded.query, annotator=request.user)
        return Response(
            {
                "results": results,
                "progress": _PROGRESS.to_representation(own),
                "cursor": recorded.cursor,
            }
        )


def _read(raw: Any) -> JudgmentInput | JudgmentOutcome:
    """One item as the service takes it, or its refusal."""
    try:
        given = _ITEM.run_validation(raw)
    except exceptions.ValidationError as error:
        parts = [
            f"{field}: {' '.join(map(str, messages))}"
            for field, messages in error.detail.items()  # type: ignore[union-attr]
        ]
        image = raw.get("image") if isinstance(raw, Mapping) else None
        return JudgmentOutcome(
            image=image if isinstance(image, int) else None,
            status=JudgmentStatus.REFUSED,
            code=RefusalCode.INVALID,
            detail="; ".join(part.removeprefix("non_field_errors: ") for part in parts),
        )
    return JudgmentInput(**given)


def _answer(raw: Any, outcome: JudgmentOutcome) -> dict[str, Any]:
    """The answer for one item, with the client id as it was sent."""
    client_id = raw.get("client_id") if isinstance(raw, Mapping) else None
    sent = client_id[:100] if isinstance(client_id, str) else None
    return {"client_id": sent, **asdict(outcome)}
