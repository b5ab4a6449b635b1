"""Reading a query's audits, and drawing."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.parameters import validated
from core.errors import Conflict
from labeling.audits.selectors import AuditState, audit_state, pool_words
from labeling.audits.services import audit_draw
from labeling.candidates.selectors import list_status
from labeling.judging.access import counted_for, get_query_for, require_permission
from labeling.judging.services import latest_event
from labeling.queries.models import Query
from labeling.studio.audit_serializers import AuditSerializer, DrawSerializer
from labeling.studio.candidates import drawn_images

_NOT_READY = OpenApiResponse(description="the list isn't ready")


class AuditActions:
    """Random audits of one query's list; part of the queries' view set."""

    @extend_schema(responses={200: AuditSerializer, 409: _NOT_READY})
    @action(detail=True, methods=["get"])
    def audit(self, request: Request, pk: int) -> Response:
        """What the query's audits certify, and the drawn images to judge (whoever may judge)."""
        query = get_query_for(request.user, pk)
        require_permission(request.user, query)
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
        count = validated(request, DrawSerializer)["count"]
        state = audit_draw(query=query, annotator=request.user, count=count)
        return _answer(query, request.user, state)


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
