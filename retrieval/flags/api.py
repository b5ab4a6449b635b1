"""API of flags on images: everybody raises them, reviewers decide on them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from core.access import Role, require_role
from core.api.bulk import BulkOutcomeSerializer
from core.api.parameters import parameters, validated
from retrieval.corpus.models import Image
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import (
    flag_reviews,
    flagged_images,
    images_visible_to,
    open_flags,
    withdrawn_images,
)
from retrieval.flags.serializers import (
    ClearedSerializer,
    ClearSerializer,
    FlagListSerializer,
    FlagManySerializer,
    FlagRaiseSerializer,
    FlagReviewSerializer,
    FlagSerializer,
    FlagsParameters,
    ReopenSerializer,
    RestoreSerializer,
    WithdrawManySerializer,
    WithdrawSerializer,
)
from retrieval.flags.services import (
    image_flag_raise,
    image_flag_retract,
    image_flags_clear,
    image_flags_reopen,
    image_restore,
    image_withdraw,
    images_flag_raise,
    images_withdraw,
)


class FlagActions(GenericViewSet[Image]):
    """Flags on an image and decisions on them, which change nothing when they are sent again; part
    of the images' view set.
    """

    def handle_exception(self, exc: Exception) -> Response:
        """Answer 404 also for an image that is deleted meanwhile."""
        return super().handle_exception(Http404() if isinstance(exc, Image.DoesNotExist) else exc)

    @extend_schema(
        operation_id="flags_list",
        parameters=[FlagsParameters],
        responses=FlagReviewSerializer(many=True),
    )
    def flagged(self, request: Request) -> Response:
        """List images with open flags, or withdrawn ones, the newest first (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        state = parameters(request, FlagsParameters)["state"]
        images = flagged_images() if state == "open" else withdrawn_images()
        page = flag_reviews(self.paginate_queryset(images) or [])
        return self.get_paginated_response(
            FlagReviewSerializer(page, many=True, context={"request": request}).data
        )

    @extend_schema(methods=["get"], operation_id="images_flags_list", responses=FlagListSerializer)
    @extend_schema(
        methods=["post"],
        operation_id="images_flags_create",
        request=FlagRaiseSerializer,
        responses={
            201: FlagSerializer,
            200: OpenApiResponse(FlagSerializer, description="the flag was open already"),
            409: OpenApiResponse(description="the image is withdrawn"),
        },
    )
    @action(detail=True, methods=["get", "post"])
    def flags(self, request: Request, pk: int) -> Response:
        """List open flags, the oldest first, or flag the image for a reviewer, unless the user has
        an open flag of that kind. Annotators see authors and notes of their own flags.
        """
        context = {"request": request}
        if request.method == "GET":
            image = get_object_or_404(images_visible_to(request.user), pk=pk)
            return Response(
                FlagListSerializer({"results": open_flags(image)}, context=context).data
            )
        given = validated(request, FlagRaiseSerializer)
        flag, new = image_flag_raise(image=Image(pk=pk), by=request.user, **given)
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(FlagSerializer(flag, context=context).data, status=code)

    @extend_schema(
        operation_id="images_flags_destroy",
        request=None,
        responses={204: None, 409: OpenApiResponse(description="a reviewer has decided on it")},
    )
    @action(detail=True, methods=["delete"], url_path="flags/<id:flag>")
    def flag_retract(self, request: Request, pk: int, flag: int) -> Response:
        """Retract an open flag of one's own."""
        raised = get_object_or_404(ImageFlag, pk=flag, image=pk, raised_by=request.user)
        image_flag_retract(flag=raised, by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(
        operation_id="images_flag_many",
        request=FlagManySerializer,
        responses=BulkOutcomeSerializer,
    )
    @action(detail=False, methods=["post"], url_path="flag-many")
    def flag_many(self, request: Request) -> Response:
        """Flag up to 5,000 images for a reviewer, all or none, as each by itself is flagged."""
        given = validated(request, FlagManySerializer)
        outcome = images_flag_raise(
            image_ids=given["ids"], kind=given["reason"], note=given["note"], by=request.user
        )
        return Response(BulkOutcomeSerializer(outcome).data)

    @extend_schema(
        operation_id="images_withdraw_many",
        request=WithdrawManySerializer,
        responses=BulkOutcomeSerializer,
    )
    @action(detail=False, methods=["post"], url_path="withdraw-many")
    def withdraw_many(self, request: Request) -> Response:
        """Withdraw up to 5,000 images from the corpus, all or none (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        given = validated(request, WithdrawManySerializer)
        outcome = images_withdraw(image_ids=given["ids"], by=request.user, note=given["note"])
        return Response(BulkOutcomeSerializer(outcome).data)

    @extend_schema(
        operation_id="images_withdraw", request=WithdrawSerializer, responses=FlagReviewSerializer
    )
    @action(detail=True, methods=["post"])
    def withdraw(self, request: Request, pk: int) -> Response:
        """Withdraw the image from the corpus and uphold its flags (reviewers).

        Search, new lists and new releases leave it out from now on. A withdrawn image stays as it
        is.
        """
        image, given = _to_decide(request, pk, WithdrawSerializer)
        image_withdraw(image=image, by=request.user, note=given["note"])
        return _decided(request, image)

    @extend_schema(
        operation_id="images_restore", request=RestoreSerializer, responses=FlagReviewSerializer
    )
    @action(detail=True, methods=["post"])
    def restore(self, request: Request, pk: int) -> Response:
        """Restore a withdrawn image to the corpus (reviewers)."""
        image, given = _to_decide(request, pk, RestoreSerializer)
        image_restore(image=image, by=request.user, reopen=given["reopen"])
        return _decided(request, image)

    @extend_schema(
        operation_id="images_clear_flags", request=ClearSerializer, responses=ClearedSerializer
    )
    @action(detail=True, methods=["post"], url_path="clear-flags")
    def flags_clear(self, request: Request, pk: int) -> Response:
        """Close open flags as unfounded: the given ones, by default all (reviewers)."""
        image, given = _to_decide(request, pk, ClearSerializer)
        cleared = image_flags_clear(image=image, by=request.user, flags=given.get("flags"))
        return _decided(request, image, cleared=cleared)

    @extend_schema(
        operation_id="images_reopen_flags",
        request=ReopenSerializer,
        responses={
            200: FlagReviewSerializer,
            409: OpenApiResponse(description="the image has been withdrawn"),
        },
    )
    @action(detail=True, methods=["post"], url_path="reopen-flags")
    def flags_reopen(self, request: Request, pk: int) -> Response:
        """Undo a clearing: open these flags again (reviewers)."""
        image, given = _to_decide(request, pk, ReopenSerializer)
        image_flags_reopen(image=image, flags=given["flags"])
        return _decided(request, image)


def _to_decide(
    request: Request, pk: int, kind: type[serializers.Serializer[Any]]
) -> tuple[Image, dict[str, Any]]:
    """The image and what is sent of the decision. Raises PermissionDenied unless the user is a
    reviewer.
    """
    require_role(request.user, Role.REVIEWER)
    return get_object_or_404(Image, pk=pk), validated(request, kind)


def _decided(request: Request, image: Image, **more: Any) -> Response:
    """Answer with the image's state after a decision."""
    for review in flag_reviews([image]):
        return Response(FlagReviewSerializer(review, context={"request": request}).data | more)
    raise Http404
