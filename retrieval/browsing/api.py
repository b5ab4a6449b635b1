"""API of the images' page: matches, tiles, counts, the CSV, and saved filters."""

from __future__ import annotations

from tempfile import TemporaryFile

from django.http import FileResponse, HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.api.parameters import parameters, validated
from retrieval.browsing.choice import Choice, choice_of
from retrieval.browsing.files import csv_lines
from retrieval.browsing.saved import filter_remove, filter_save, saved_filters
from retrieval.browsing.selectors import counted, matches, tiles
from retrieval.browsing.serializers import (
    ChoiceParameters,
    CountsParameters,
    CountsSerializer,
    ListedImages,
    MatchesParameters,
    MatchesSerializer,
    SavedFilterSerializer,
    TilesParameters,
    TilesSerializer,
)


class MatchesView(APIView):
    """The images that filters, a text or an image choose, in order."""

    @extend_schema(
        operation_id="images_matches",
        parameters=[MatchesParameters],
        responses={
            200: MatchesSerializer,
            404: OpenApiResponse(description="there is no such image to be like"),
            409: OpenApiResponse(description="nothing is embedded yet, or not this image"),
            429: OpenApiResponse(description="the user's earlier search is still running"),
        },
    )
    def get(self, request: Request) -> Response:
        """List the ids of the matches from a position on: by id, the newest first, or by their
        scores for a text or an image. Scores and order are exact unless `method` is `index`.
        """
        given = parameters(request, MatchesParameters)
        found = matches(
            choice_of(request.query_params, request.user),
            offset=given["offset"],
            limit=given["limit"],
            with_tiles=given["tiles"],
            # As a page does that sends a later search.
            has_left=request.META.get("waitress.client_disconnected", lambda: False),
        )
        return Response(MatchesSerializer(found).data)


class TilesView(APIView):
    """What the grid shows of images."""

    @extend_schema(
        operation_id="images_tiles", parameters=[TilesParameters], responses=TilesSerializer
    )
    def get(self, request: Request) -> Response:
        """List thumbnails and names of images, in the order in which they are named."""
        given = parameters(request, TilesParameters)
        return Response({"results": tiles(given["id"], request.user)})


class CountsView(APIView):
    """How many images match, by filter."""

    @extend_schema(
        operation_id="images_counts", parameters=[CountsParameters], responses=CountsSerializer
    )
    def get(self, request: Request) -> Response:
        """Count the matches, and the images by the values of each filter given all others; a text
        or an image to be like doesn't narrow them. Counting ends after 1.5 seconds.
        """
        given = parameters(request, CountsParameters)
        choice = choice_of(request.query_params, request.user)
        total, by_filter = counted(choice, keys=given.get("by"))
        filters = [{"key": one.key, "values": values} for one, values in by_filter]
        return Response(CountsSerializer({"total": total, "filters": filters}).data)


class MatchesCsvView(APIView):
    """The list of images as a CSV."""

    _ANSWER = {(200, "text/csv"): OpenApiTypes.BINARY}

    @extend_schema(
        operation_id="images_matches_csv", parameters=[ChoiceParameters], responses=_ANSWER
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Get the matches as a CSV, with what the user may see of them: all by id, or the best
        100,000 for a text or an image.
        """
        parameters(request, ChoiceParameters)
        return _csv(choice_of(request.query_params, request.user), None)

    @extend_schema(
        operation_id="images_listed_csv", parameters=[], request=ListedImages, responses=_ANSWER
    )
    def post(self, request: Request) -> HttpResponseBase:
        """Get the same of some images, in the order in which they are named."""
        ids = validated(request, ListedImages)["ids"]
        return _csv(Choice(request.user), list(dict.fromkeys(ids)))


def _csv(choice: Choice, image_ids: list[int] | None) -> HttpResponseBase:
    # Whole before it is sent: however slowly it is read, that takes no thread.
    file = TemporaryFile()  # noqa: SIM115 (the answer closes it)
    file.writelines(line.encode() for line in csv_lines(choice, image_ids=image_ids))
    file.seek(0)
    kind = "text/csv; charset=utf-8"
    return FileResponse(file, as_attachment=True, filename="images.csv", content_type=kind)


class SavedFiltersView(APIView):
    """Filters that people saved."""

    @extend_schema(operation_id="filters_list", responses=SavedFilterSerializer(many=True))
    def get(self, request: Request) -> Response:
        """List one's own filters and those that admins share, by name."""
        return Response(SavedFilterSerializer(saved_filters(request.user), many=True).data)

    @extend_schema(
        operation_id="filters_save", request=SavedFilterSerializer, responses=SavedFilterSerializer
    )
    def post(self, request: Request) -> Response:
        """Save a filter, in place of one's own of that name."""
        saved = filter_save(**validated(request, SavedFilterSerializer), by=request.user)
        return Response(SavedFilterSerializer(saved).data)


class SavedFilterView(APIView):
    """A filter that somebody saved."""

    @extend_schema(operation_id="filters_remove", request=None, responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Remove a filter of one's own, or as an admin a shared one."""
        filter_remove(pk=pk, by=request.user)
        return Response(status=status.HTTP_204_NO_CONTENT)
