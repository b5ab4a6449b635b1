"""API of search by a text or an image."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import names_hidden_from
from core.api.parameters import parameters
from core.errors import Unavailable
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.flags.selectors import image_visible_to
from retrieval.search.selectors import search_images
from retrieval.search.serializers import SearchQuerySerializer, SearchResultsSerializer
from retrieval.species.selectors import species_resolve


class SearchView(APIView):
    """Search over the embedded images."""

    @extend_schema(
        operation_id="search",
        parameters=[SearchQuerySerializer],
        responses={
            200: SearchResultsSerializer,
            404: OpenApiResponse(description="there is no such image to be like"),
            409: OpenApiResponse(description="nothing is embedded yet, or not this image"),
            429: OpenApiResponse(description="the user's earlier search is still running"),
        },
    )
    def get(self, request: Request) -> Response:
        """List the images most similar to a text, or to an image, which isn't among them: by
        cosine similarity, ties by image id.

        The order is exact unless `exact` is false. Without a packed matrix a user has one search
        at a time: another waits for some seconds and is then refused with 429.
        """
        given = parameters(request, SearchQuerySerializer)
        if any(given["species"]) and names_hidden_from(request.user):
            raise PermissionDenied("Species are hidden while you label.")
        named = [name.strip() for names in given["species"] for name in names.split(",")]
        species, missing = species_resolve([name for name in named if name])
        if missing:
            raise ValidationError(
                {"species": f"Not in the corpus: {', '.join(map(str, missing))}."}
            )
        like = given.get("like")
        if like is not None and image_visible_to(request.user, like) is None:
            raise Http404("There is no such image.")
        try:
            results = search_images(
                text=given.get("text", ""),
                like=like,
                species_ids=[s.pk for s in species],
                limit=given["limit"],
                person=request.user.pk,
            )
        except ModelSpecError as error:
            raise Unavailable(str(error)) from error
        return Response(SearchResultsSerializer(results, context={"request": request}).data)
