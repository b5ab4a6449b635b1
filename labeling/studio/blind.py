"""Reading a person's blind queues of one query, and showing more; marking checks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, at_least, require_role
from core.api.parameters import validated
from labeling.blind.opinions import check_mark
from labeling.blind.selectors import BlindQueue, blind_queue
from labeling.blind.services import blind_show
from labeling.candidates.selectors import list_status
from labeling.judging.access import get_query_for, require_permission
from labeling.judging.blind import BlindKind
from labeling.judging.services import latest_event
from labeling.lifecycle.batches import (
    missed_checks,
    part_send_back_for_checks,
    parts_failing_checks,
)
from labeling.queries.models import Query
from labeling.studio.audit_serializers import (
    AnsweredChecksSerializer,
    BlindQueueSerializer,
    CheckSerializer,
    DrawSerializer,
    PartSendBackSerializer,
)
from labeling.studio.candidates import audit_images


class BlindQueueView(APIView):
    """What one judges blindly of a query's images: what its audits for releases drew, second
    opinions, what runs request, or further images.
    """

    @extend_schema(responses={200: BlindQueueSerializer})
    def get(self, request: Request, pk: int, kind: BlindKind) -> Response:
        """What of a query is to be judged blindly (whoever sees the query, also after handing in).

        Audits for releases until the query is decided, second opinions while it is submitted, and
        what runs rank high and further images also when it is complete.
        """
        query = get_query_for(request.user, pk)
        require_permission(request.user, query, kind)
        return _answer(query, request.user, blind_queue(kind, query, request.user))


class BlindDrawsView(APIView):
    """Showing more of what one judges blindly."""

    @extend_schema(request=DrawSerializer, responses={200: BlindQueueSerializer})
    def post(self, request: Request, pk: int, kind: BlindKind) -> Response:
        """Show images until so many wait to be judged: all of them, with the source audit (audits
        for releases), second (second opinions), run (what runs request) or picked (further images).
        Sent twice, it shows the same.
        """
        query = get_query_for(request.user, pk)
        count = validated(request, DrawSerializer)["count"]
        queue = blind_show(kind=kind, query=query, annotator=request.user, count=count)
        return _answer(query, request.user, queue)


class CheckActions:
    """Checks of one query; part of the queries' view set."""

    @extend_schema(request=CheckSerializer, responses={200: CheckSerializer})
    @action(detail=True, methods=["post"])
    def checks(self, request: Request, pk: int) -> Response:
        """Mark an image that a reviewer has decided as one to check people with, or end that
        (reviewers).
        """
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.REVIEWER)
        sent = validated(request, CheckSerializer)
        check_mark(query=query, image_id=sent["image"], marked=sent["marked"], by=request.user)
        return Response(CheckSerializer(sent).data)

    @extend_schema(responses=AnsweredChecksSerializer)
    @checks.mapping.get
    def checks_answered(self, request: Request, pk: int) -> Response:
        """The parts that their checks propose to send back (reviewers), and one's own checks that
        one missed, once the part was sent back for them.
        """
        return _checks_answer(get_query_for(request.user, pk), request.user)

    @extend_schema(request=PartSendBackSerializer, responses={200: AnsweredChecksSerializer})
    @action(detail=True, methods=["post"], url_path="checks/send-back")
    def checks_send_back(self, request: Request, pk: int) -> Response:
        """Send back a part for its checks, which its person sees then (reviewers)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.REVIEWER)
        person = validated(request, PartSendBackSerializer)["annotator"]
        part_send_back_for_checks(query=query, person=person, by=request.user)
        query.refresh_from_db()
        return _checks_answer(query, request.user)


def _checks_answer(query: Query, user: Any) -> Response:
    answer = {
        "send_back": parts_failing_checks(query) if at_least(user, Role.REVIEWER) else [],
        "missed": missed_checks(query, user),
    }
    return Response(AnsweredChecksSerializer(answer).data)


def _answer(query: Query, user: Any, queue: BlindQueue) -> Response:
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
