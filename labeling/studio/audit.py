"""Reading a query's audits, second opinions and what runs request, and drawing."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import PermissionDenied
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.errors import Conflict
from labeling.audits.release_selectors import BlindQueue, audit_queue
from labeling.audits.release_services import release_draws_show
from labeling.audits.selectors import AuditState, audit_state, pool_words
from labeling.audits.services import audit_draw
from labeling.candidates.selectors import list_status
from labeling.judging.access import (
    auditing_problem,
    counted_for,
    get_query_for,
    judging_problem,
    requested_problem,
)
from labeling.judging.services import latest_event
from labeling.opinions.requested import requested_queue, requested_show
from labeling.opinions.selectors import opinion_problem, opinion_queue
from labeling.opinions.services import check_mark, opinions_show
from labeling.queries.models import Query
from labeling.studio.audit_serializers import (
    AuditSerializer,
    BlindQueueSerializer,
    CheckSerializer,
    DrawSerializer,
)
from labeling.studio.candidates import audit_images, drawn_images

_NOT_READY = OpenApiResponse(description="the list isn't ready")


class AuditActions:
    """Random audits of one query's list; part of the queries' view set."""

    @extend_schema(responses={200: AuditSerializer, 409: _NOT_READY})
    @action(detail=True, methods=["get"])
    def audit(self, request: Request, pk: int) -> Response:
        """What the query's audits certify, and the drawn images to judge (whoever may judge)."""
        query = get_query_for(request.user, pk)
        if problem := judging_problem(request.user, query):
            raise PermissionDenied(problem)
        if query.current_list is None or not query.current_list.ready:
            raise Conflict("The candidate list isn't ready yet, so nothing can be audited.")
        return _answer(query, request.user, audit_state(query, counted_for(request.user)))

    @extend_schema(request=DrawSerializer, responses={200: AuditSerializer, 409: _NOT_READY})
    @action(detail=True, methods=["post"], url_path="audit/draws")
    def audit_draws(self, request: Request, pk: int) -> Response:
        """Draw images until so many wait to be judged (whoever may judge).

        What was drawn counts as relevant until somebody judges it, so judge all of it: with the
        source audit. Sent twice, it draws once.
        """
        query = get_query_for(request.user, pk)
        state = audit_draw(query=query, annotator=request.user, count=_count(request))
        return _answer(query, request.user, state)

    @extend_schema(responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["get"], url_path="release-audit")
    def release_audit(self, request: Request, pk: int) -> Response:
        """What is to be judged of the query's audits for releases (whoever sees the query, also
        after handing in)."""
        query = get_query_for(request.user, pk)
        if problem := auditing_problem(request.user, query):
            raise PermissionDenied(problem)
        return _queue_answer(query, request.user, audit_queue(query, request.user))

    @extend_schema(request=DrawSerializer, responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["post"], url_path="release-audit/draws")
    def release_audit_draws(self, request: Request, pk: int) -> Response:
        """Show images of the query's audits for releases until so many wait to be judged: all of
        them, with the source audit. Sent twice, it shows the same.
        """
        query = get_query_for(request.user, pk)
        queue = release_draws_show(query=query, annotator=request.user, count=_count(request))
        return _queue_answer(query, request.user, queue)


class OpinionActions:
    """Second opinions on one query; part of the queries' view set."""

    @extend_schema(responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["get"], url_path="second-opinions")
    def second_opinions(self, request: Request, pk: int) -> Response:
        """What is to be judged blindly of a submitted query (whoever sees it)."""
        query = get_query_for(request.user, pk)
        if problem := opinion_problem(request.user, query):
            raise PermissionDenied(problem)
        return _queue_answer(query, request.user, opinion_queue(query, request.user))

    @extend_schema(request=DrawSerializer, responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["post"], url_path="second-opinions/draws")
    def second_opinion_draws(self, request: Request, pk: int) -> Response:
        """Show images until so many wait to be judged: all of them, with the source second. Sent
        twice, it shows the same.
        """
        query = get_query_for(request.user, pk)
        queue = opinions_show(query=query, annotator=request.user, count=_count(request))
        return _queue_answer(query, request.user, queue)

    @extend_schema(request=CheckSerializer, responses={200: CheckSerializer})
    @action(detail=True, methods=["post"])
    def checks(self, request: Request, pk: int) -> Response:
        """Mark an image that a reviewer has decided as one to check people with, or end that
        (reviewers).
        """
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.REVIEWER)
        data = CheckSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        sent = data.validated_data
        check_mark(query=query, image_id=sent["image"], marked=sent["marked"], by=request.user)
        return Response(CheckSerializer(sent).data)


class RequestedActions:
    """Images of one query that runs request; part of the queries' view set."""

    @extend_schema(responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["get"])
    def requested(self, request: Request, pk: int) -> Response:
        """What runs rank high and nobody has judged (whoever sees the query, also after handing in
        and after the query is complete)."""
        query = get_query_for(request.user, pk)
        if problem := requested_problem(request.user, query):
            raise PermissionDenied(problem)
        return _queue_answer(query, request.user, requested_queue(query, request.user))

    @extend_schema(request=DrawSerializer, responses={200: BlindQueueSerializer})
    @action(detail=True, methods=["post"], url_path="requested/draws")
    def requested_draws(self, request: Request, pk: int) -> Response:
        """Show images until so many wait to be judged: all of them, with the source run. Sent
        twice, it shows the same.
        """
        query = get_query_for(request.user, pk)
        queue = requested_show(query=query, annotator=request.user, count=_count(request))
        return _queue_answer(query, request.user, queue)


def _count(request: Request) -> int:
    data = DrawSerializer(data=request.data)
    data.is_valid(raise_exception=True)
    return int(data.validated_data["count"])


def _queue_answer(query: Query, user: Any, queue: BlindQueue) -> Response:
    answer = {
        "annotator": user.pk,
        "query": {"state": query.state, "can_label": True},
        "list": list_status(query),
        "cursor": latest_event(query, user),
        "left": queue.left,
        "to_judge": len(queue.to_judge),
        "results": audit_images(
            query=query, user=user, judged=queue.judged, to_judge=queue.to_judge
        ),
    }
    return Response(BlindQueueSerializer(answer).data)


def _answer(query: Query, user: Any, state: AuditState) -> Response:
    answer = {
        "annotator": user.pk,
        "query": {"state": query.state, "can_label": True},
        "list": list_status(query),
        # Read before the labels: what is judged meanwhile is new to `changes`.
        "cursor": latest_event(query, user),
        "pool": pool_words(state.pool),
        "target": state.aim.target,
        "confidence": state.aim.confidence,
        "found": state.found,
        "unjudged": state.unjudged,
        "drawn": state.drawn,
        "hits": state.hits,
        "to_judge": len(state.to_judge),
        "now": state.now,
        "then": state.then,
        "results": drawn_images(query=query, user=user, state=state),
    }
    return Response(AuditSerializer(answer).data)
