from __future__ import annotations

from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.exceptions import APIException, Throttled, ValidationError
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from retrieval.access import Role, require_role
from retrieval.api.parameters import parameters
from retrieval.api.serializers import (
    ImageSerializer,
    JobCreateSerializer,
    JobDetailSerializer,
    JobSerializer,
    SearchQuerySerializer,
    SearchResultsSerializer,
)
from retrieval.encoders import ModelSpecError
from retrieval.models import Image, Job
from retrieval.search_turns import SearchBusy, SearchTooSlow
from retrieval.selectors.flags import images_visible_to
from retrieval.selectors.jobs import jobs_visible_to
from retrieval.selectors.search import SearchUnavailable, search_images
from retrieval.selectors.species import species_resolve
from retrieval.services.embedding import embedding_job_create
from retrieval.services.jobs import job_cancel, job_retry

BUSY_SECONDS = 2


class NotReady(APIException):
    """The corpus is not in a state in which the request makes sense."""

    status_code = status.HTTP_409_CONFLICT


class CannotServe(APIException):
    """The server cannot do it now: its model cannot be loaded, or a search takes too long."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE


class SearchView(APIView):
    """Free-text search over the embedded images."""

    @extend_schema(
        operation_id="search",
        parameters=[SearchQuerySerializer],
        responses={
            200: SearchResultsSerializer,
            409: OpenApiResponse(description="nothing is embedded yet"),
            429: OpenApiResponse(description="one's search before this one isn't done"),
        },
    )
    def get(self, request: Request) -> Response:
        """Answer the most similar images: by cosine similarity, ties by image id.

        The order is exact unless `exact` says that it is not. Without a packed matrix a user has
        one search at a time: another waits for some seconds, and is answered 429 then.
        """
        asked = parameters(request, SearchQuerySerializer)
        named = [name.strip() for several in asked["species"] for name in several.split(",")]
        species, missing = species_resolve([name for name in named if name])
        if missing:
            raise ValidationError(
                {"species": f"Not in the corpus: {', '.join(map(str, missing))}."}
            )
        try:
            found = search_images(
                text=asked["text"],
                species_ids=[s.pk for s in species],
                limit=asked["limit"],
                person=request.user.pk,
            )
        except SearchUnavailable as error:
            raise NotReady(str(error)) from error
        except SearchBusy as error:
            raise Throttled(wait=BUSY_SECONDS, detail=str(error)) from error
        except (ModelSpecError, SearchTooSlow) as error:
            raise CannotServe(str(error)) from error
        return Response(SearchResultsSerializer(found, context={"request": request}).data)


class ImageViewSet(mixins.RetrieveModelMixin, viewsets.GenericViewSet[Image]):
    """The images of the corpus; reviewers see the withdrawn ones too."""

    queryset = Image.objects.none()
    serializer_class = ImageSerializer
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[Image]:
        visible = images_visible_to(self.request.user)
        return visible.select_related("species").prefetch_related("species__names")


class JobViewSet(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Job]):
    """Long work: admins see all of it, others what they started."""

    permission_classes: ClassVar = [IsAuthenticated]
    queryset = Job.objects.none()
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[Job]:
        return jobs_visible_to(self.request.user)

    def get_serializer_class(self) -> Any:
        return JobSerializer if self.action == "list" else JobDetailSerializer

    @extend_schema(request=JobCreateSerializer, responses={201: JobDetailSerializer})
    def create(self, request: Request) -> Response:
        """Have the corpus embedded; an unfinished job of the same model is answered again."""
        require_role(request.user, Role.ADMIN)
        asked = JobCreateSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        try:
            job = embedding_job_create(
                model_name=asked.validated_data["model"], created_by=request.user
            )
        except ModelSpecError as error:
            raise ValidationError({"model": str(error)}) from error
        return Response(self.get_serializer(job).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses=JobDetailSerializer)
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: int) -> Response:
        """Stop an unfinished job before its next piece of work."""
        return self._changed(request, job_cancel, "This job has ended already.")

    @extend_schema(request=None, responses=JobDetailSerializer)
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: int) -> Response:
        """Queue a failed or cancelled job again; it goes on from where it was."""
        return self._changed(request, job_retry, "Only a failed or cancelled job can be retried.")

    def _changed(self, request: Request, change: Any, refusal: str) -> Response:
        require_role(request.user, Role.ADMIN)
        job = self.get_object()
        if not change(job=job):
            raise NotReady(refusal)
        job.refresh_from_db()
        return Response(self.get_serializer(job).data)
