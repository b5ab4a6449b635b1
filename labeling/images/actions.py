"""What people do for a query with images that they have selected."""

from __future__ import annotations

from typing import Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, require_role
from core.api.bulk import BulkOutcomeSerializer, IdsSerializer
from core.api.fields import TextField
from core.api.parameters import validated
from labeling.blind.requests import images_put_before
from labeling.judging.access import get_query_for
from labeling.judging.models import Relevance
from labeling.lifecycle.examples import examples_pin
from retrieval.browsing.actions import Choices, ImageAction

_OPEN_QUERIES: Final = "/api/queries/?state=open&limit=20"

ACTIONS: Final = [
    ImageAction(
        name="put-before",
        title="Put before annotators",
        about="The annotators of a query judge them blindly: nobody is told where they come from.",
        role=Role.REVIEWER,
        endpoint="/api/queries/{query}/put-before/",
        queries=_OPEN_QUERIES,
    ),
    ImageAction(
        name="examples",
        title="Take as examples",
        about="They are pinned to the guidelines of a query, where its annotators see them.",
        role=Role.ADMIN,
        endpoint="/api/queries/{query}/examples/add-images/",
        queries=_OPEN_QUERIES,
        choices=Choices(
            "relevance",
            "They are",
            [(one.value, str(one.label)) for one in (Relevance.RELEVANT, Relevance.NOT_RELEVANT)],
        ),
        note=True,
    ),
]


class ExamplesSerializer(IdsSerializer):
    """Images to pin as examples."""

    relevance = serializers.ChoiceField([Relevance.RELEVANT, Relevance.NOT_RELEVANT])
    note = TextField(allow_blank=True, default="", max_length=500, help_text="why, for annotators")


class ImageActions:
    """Actions on many images; part of the queries' view set."""

    @extend_schema(
        operation_id="queries_examples_add_images",
        request=ExamplesSerializer,
        responses=BulkOutcomeSerializer,
    )
    @action(detail=True, methods=["post"], url_path="examples/add-images")
    def examples_add(self, request: Request, pk: int) -> Response:
        """Pin images as examples of the query, all of one relevance (admins)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        given = validated(request, ExamplesSerializer)
        outcome = examples_pin(
            query=query,
            image_ids=given["ids"],
            relevant=given["relevance"] == Relevance.RELEVANT,
            note=given["note"],
            by=request.user,
        )
        return Response(BulkOutcomeSerializer(outcome).data)

    @extend_schema(
        operation_id="queries_put_before", request=IdsSerializer, responses=BulkOutcomeSerializer
    )
    @action(detail=True, methods=["post"], url_path="put-before")
    def put_before(self, request: Request, pk: int) -> Response:
        """Have images judged blindly that nobody has judged for the query (reviewers).

        They need not be in its candidate list. Annotators see them in random order, and neither
        where they come from nor who asked; their judgments have the source picked, which no streak,
        certificate or estimate counts as ranked or drawn.
        """
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.REVIEWER)
        ids = validated(request, IdsSerializer)["ids"]
        outcome = images_put_before(query=query, image_ids=ids, by=request.user)
        return Response(BulkOutcomeSerializer(outcome).data)
