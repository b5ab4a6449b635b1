"""Flags on images through the API: everyone raises them, reviewers decide about them."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import APIException
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from core.api.parameters import parameters
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
    FlagRefused,
    image_flag_raise,
    image_flag_retract,
    image_flags_clear,
    image_flags_reopen,
    image_restore,
    image_withdraw,
)


class FlagConflict(APIException):
    """409: the image or the flag is in another state by now."""

    status_code = status.HTTP_409_CONFLICT


class FlagView(APIView):
    """A view whose services' refusals become problem documents."""

    def handle_exception(self, exc: Exception) -> Response:
        if isinstance(exc, FlagRefused):
            exc = FlagConflict(str(exc))
        elif isinstance(exc, Image.DoesNotExist):
            exc = Http404()
        return super().handle_exception(exc)


class ImageFlagsView(FlagView):
    """The open flags of one image."""

    @extend_schema(operation_id="images_flags_list", responses=FlagListSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Open flags, the oldest first; annotators see whose and why of their own ones only."""
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
        """Flag the image for a reviewer; one's open flag of that kind is answered again."""
        asked = FlagRaiseSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        flag, new = image_flag_raise(image=Image(pk=pk), by=request.user, **asked.validated_data)
        return Response(
            FlagSerializer(flag, context={"request": request}).data,
            status=status.HTTP_201_CREATED if new else status.HTTP_200_OK,
        )


class ImageFlagView(FlagView):
    """One flag of one image."""

    @extend_schema(
        operation_id="images_flags_destroy",
        request=None,
        responses={204: None, 409: OpenApiResponse(description="a reviewer has decided about it")},
    )
    def delete(self, request: Request, pk: int, flag: int) -> Response:
        """Take one's own open flag back."""
        found = get_object_or_404(ImageFlag, pk=flag, image=pk, raised_by=request.user)
        image_flag_retract(flag=found, by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)


class FlagsView(GenericAPIView[Image]):
    """What reviewers have to decide about, and what they decided."""

    queryset = Image.objects.none()
    serializer_class = FlagReviewSerializer

    @extend_schema(
        operation_id="flags_list",
        parameters=[FlagsParameters],
        responses=FlagReviewSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """Images with open flags, or withdrawn ones, the newest first (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        wanted = parameters(request, FlagsParameters)["state"]
        images = flagged_images() if wanted == "open" else withdrawn_images()
        page = flag_reviews(self.paginate_queryset(images) or [])
        return self.get_paginated_response(
            FlagReviewSerializer(page, many=True, context={"request": request}).data
        )


class DecisionView(FlagView):
    """A reviewer's decision about one image, which may be sent twice."""

    def image(self, request: Request, pk: int) -> Image:
        """The image, for reviewers."""
        require_role(request.user, Role.REVIEWER)
        return get_object_or_404(Image, pk=pk)

    def answer(self, request: Request, image: Image) -> Any:
        """How the image stands after the decision."""
        reviews: list[FlagReview] = flag_reviews([image])
        if not reviews:
            raise Http404
        return FlagReviewSerializer(reviews[0], context={"request": request}).data


class WithdrawView(DecisionView):
    @extend_schema(
        operation_id="images_withdraw", request=WithdrawSerializer, responses=FlagReviewSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Take the image out of the corpus and uphold its flags (reviewers).

        Search, new lists and new releases leave it out from now on. An image that is withdrawn
        already stays so, as it was.
        """
        image = self.image(request, pk)
        asked = WithdrawSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        image_withdraw(image=image, by=request.user, note=asked.validated_data["note"])
        return Response(self.answer(request, image))


class RestoreView(DecisionView):
    @extend_schema(
        operation_id="images_restore", request=RestoreSerializer, responses=FlagReviewSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Bring a withdrawn image back into the corpus (reviewers)."""
        image = self.image(request, pk)
        asked = RestoreSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        image_restore(image=image, by=request.user, reopen=asked.validated_data["reopen"])
        return Response(self.answer(request, image))


class ClearFlagsView(DecisionView):
    @extend_schema(
        operation_id="images_clear_flags", request=ClearSerializer, responses=ClearedSerializer
    )
    def post(self, request: Request, pk: int) -> Response:
        """Close open flags as unfounded: those named, by default all (reviewers)."""
        image = self.image(request, pk)
        asked = ClearSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        cleared = image_flags_clear(
            image=image, by=request.user, flags=asked.validated_data.get("flags")
        )
        return Response(self.answer(request, image) | {"cleared": cleared})


class ReopenFlagsView(DecisionView):
    @extend_schema(
        operation_id="images_reopen_flags",
        request=ReopenSerializer,
        responses={
            200: FlagReviewSerializer,
            409: OpenApiResponse(description="the image was withdrawn meanwhile"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Undo a clearing: open these flags again (reviewers)."""
        image = self.image(request, pk)
        asked = ReopenSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        image_flags_reopen(image=image, flags=asked.validated_data["flags"])
        return Response(self.answer(request, image))
