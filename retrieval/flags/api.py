"""API of flags on images: everybody raises them, reviewers decide on them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.parameters import parameters, validated
from retrieval.corpus.models import Image
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import (
    FlagReview,
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
    FlagRaiseSerializer,
    FlagReviewSerializer,
    FlagSerializer,
    FlagsParameters,
    ReopenSerializer,
    RestoreSerializer,
    WithdrawSerializer,
)
from retrieval.flags.services import (
    image_flag_raise,
    image_flag_retract,
    image_flags_clear,
    image_flags_reopen,
    image_restore,
    image_withdraw,
)


class ImageFlagsView(APIView):
    """The open flags of one image."""

    @extend_schema(operation_id="images_flags_list", responses=FlagListSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """List open flags, the oldest first; annotators see authors and notes of their own."""
        image = get_object_or_404(images_visible_to(request.user), pk=pk)
        answer = {"results": open_flags(image)}
        return Response(FlagListSerializer(answer, context={"request": request}).data)

    @extend_schema(
        operation_id="images_flags_create",
        request=FlagRaiseSerializer,
        responses={
            201: FlagSerializer,
            200: OpenApiResponse(FlagSerializer, description="the flag was open already"),
            409: OpenApiResponse(description="the image is withdrawn"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Flag the image for a reviewer, unless the user has an open flag of that kind."""
        given = validated(request, FlagRaiseSerializer)
        image = get_object_or_404(Image, pk=pk)
        flag, new = image_flag_raise(image=image, by=request.user, **given)
        return Response(
            FlagSerializer(flag, context={"request": request}).data,
            status=status.HTTP_201_CREATED if new else status.HTTP_200_OK,
        )


class ImageFlagView(APIView):
    """One flag of one image."""

    @extend_schema(
        operation_id="images_flags_destroy",
        request=None,
        responses={204: None, 409: OpenApiResponse(description="a reviewer has decided on it")},
    )
    def delete(self, request: Request, pk: int, flag: int) -> Response:
        """Retract an open flag of one's own."""
        found = get_object_or_404(ImageFlag, pk=flag, image=pk, raised_by=request.user)
        image_flag_retract(flag=found, by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FlagsView(GenericAPIView[Image]):
    """Flagged and withdrawn images, for reviewers."""

    queryset = Image.objects.none()
    serializer_class = FlagReviewSerializer

    @extend_schema(
        operation_id="flags_list",
        parameters=[FlagsParameters],
        responses=FlagReviewSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """List images with open flags, or withdrawn ones, the newest first (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        state = parameters(request, FlagsParameters)["state"]
        images = flagged_images() if state == "open" else withdrawn_images()
        page = flag_reviews(self.paginate_queryset(images) or [])
        return self.get_paginated_response(
            FlagReviewSerializer(page, many=True, context={"request": request}).data
        )


class DecisionView(APIView):
    """A reviewer's decision on one image; sending it twice changes nothing."""

    def image(self, request: Request, pk: int) -> Image:
        """Return the image, or raise PermissionDenied to anybody but reviewers."""
        require_role(request.user, Role.REVIEWER)
        return get_object_or_404(Image, pk=pk)

    def answer(self, request: Request, image: Image) -> Any:
        """Return the image's state after the decision."""
        reviews: list[FlagReview] = flag_reviews([image])
        if not reviews:
            raise Http404
        return FlagReviewSerializer(reviews[0], context={"request": request}).data


class WithdrawView(DecisionView):
    """Withdrawal of an image."""

    @extend_schema(
        operation_id="images_withdraw", request=WithdrawSerializer, responses=FlagReviewSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Withdraw the image from the corpus and uphold its flags (reviewers).

        Search, new lists and new releases leave it out from now on. A withdrawn image stays as it
        is.
        """
        image = self.image(request, pk)
        given = validated(request, WithdrawSerializer)
        image_withdraw(image=image, by=request.user, note=given["note"])
        return Response(self.answer(request, image))


class RestoreView(DecisionView):
    """Restoration of a withdrawn image."""

    @extend_schema(
        operation_id="images_restore", request=RestoreSerializer, responses=FlagReviewSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Restore a withdrawn image to the corpus (reviewers)."""
        image = self.image(request, pk)
        given = validated(request, RestoreSerializer)
        image_restore(image=image, by=request.user, reopen=given["reopen"])
        return Response(self.answer(request, image))


class ClearFlagsView(DecisionView):
    """Clearing of an image's open flags."""

    @extend_schema(
        operation_id="images_clear_flags", request=ClearSerializer, responses=ClearedSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Close open flags as unfounded: the given ones, by default all (reviewers)."""
        image = self.image(request, pk)
        given = validated(request, ClearSerializer)
        cleared = image_flags_clear(image=image, by=request.user, flags=given.get("flags"))
        return Response(self.answer(request, image) | {"cleared": cleared})


class ReopenFlagsView(DecisionView):
    """Reopening of an image's cleared flags."""

    @extend_schema(
        operation_id="images_reopen_flags",
        request=ReopenSerializer,
        responses={
            200: FlagReviewSerializer,
            409: OpenApiResponse(description="the image has been withdrawn"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Undo a clearing: open these flags again (reviewers)."""
        image = self.image(request, pk)
        given = validated(request, ReopenSerializer)
        image_flags_reopen(image=image, flags=given["flags"])
        return Response(self.answer(request, image))
