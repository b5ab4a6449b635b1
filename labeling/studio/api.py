"""The labeling page's reads of one query, and the examples that admins pin for it."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from django.http import Http404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.access import Role, names_hidden_from, require_role
from core.api.parameters import parameters
from labeling.audits.hand_in import hand_in_state
from labeling.candidates.selectors import list_status
from labeling.candidates.serializers import ListSerializer
from labeling.judging.access import (
    Act,
    counted_for,
    get_query_for,
    query_and_part,
    require_permission,
    why_not,
)
from labeling.judging.progress import progress
from labeling.judging.serializers import HandInSerializer, ProgressSerializer
from labeling.judging.services import latest_event
from labeling.lifecycle.examples import example_pin, example_unpin
from labeling.queries.models import Query
from labeling.studio.candidates import candidates_at, review_candidates, similar_images
from labeling.studio.filters import CandidateFilter, facets, matching_ranks
from labeling.studio.outline import changes_since, outline
from labeling.studio.reference import reference
from labeling.studio.serializers import (
    CandidatesParameters,
    CandidatesSerializer,
    ChangesParameters,
    ChangesSerializer,
    ExampleSerializer,
    ExampleWriteSerializer,
    FacetsSerializer,
    MatchingParameters,
    MatchingSerializer,
    OutlineSerializer,
    ReferenceSerializer,
    ReviewParameters,
    ReviewSerializer,
    SimilarParameters,
    SimilarSerializer,
)
from retrieval.corpus.models import Image


class StudioActions:
    """Reads for the labeling page; part of the queries' view set."""

    @extend_schema(responses=OutlineSerializer)
    @action(detail=True, methods=["get"])
    def outline(self, request: Request, pk: int) -> Response:
        """The whole list in short, with one's own labels and what is new from now on.

        While the list isn't ready there are no ranks, and `list.state` says why.
        """
        query = _query_with_list(request, pk)
        shown = outline(query=query, user=request.user)
        own = progress(query, annotator=request.user)
        # Plain lists of thousands, which a serializer would only copy item by item.
        return Response(
            {
                "annotator": request.user.pk,
                "query": _query_status(request, query),
                "list": ListSerializer(list_status(query)).data,
                "progress": ProgressSerializer(own).data,
                "minimum_labels": own.stop.minimum,
                "hand_in": HandInSerializer(
                    hand_in_state(query, own.stop, counted_for(request.user))
                ).data,
                "images": shown.images,
                "scores": shown.scores,
                "relevance": shown.relevance,
                "sources": shown.sources,
                "grades": shown.grades,
                "withdrawn": shown.withdrawn,
                "flagged": shown.flagged,
                "cursor": shown.cursor,
            }
        )

    @extend_schema(parameters=[ReviewParameters], responses=ReviewSerializer)
    @action(detail=True, methods=["get"])
    def review(self, request: Request, pk: int) -> Response:
        """The images that are unsure or disputed, with those of them that are decided (reviewers).

        Decide one by judging it; one that isn't in the list with the source search.
        """
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.REVIEWER)
        sent = parameters(request, ReviewParameters)
        answer = {
            "annotator": request.user.pk,
            "query": _query_status(request, query),
            "list": list_status(query),
            # Read before the votes: what is judged meanwhile is new to `changes`.
            "cursor": latest_event(query, request.user),
            "results": review_candidates(query=query, user=request.user, **sent),
        }
        return Response(ReviewSerializer(answer).data)

    @extend_schema(parameters=[CandidatesParameters], responses=CandidatesSerializer)
    @action(detail=True, methods=["get"])
    def candidates(self, request: Request, pk: int) -> Response:
        """Candidates in the frozen order with one's own relevance: a part of the list, or ranks.

        While the list isn't ready, results are empty and `list.state` says why: building (request
        it again in a second), failed or none. Withdrawn images are left out.
        """
        query = _query_with_list(request, pk)
        sent = parameters(request, CandidatesParameters)
        status_of_list = list_status(query)
        following = None
        ranks = sent.get("ranks")
        if ranks is None:
            start, limit = sent["start_rank"], sent["limit"]
            ranks = range(start, start + limit)
            if start + limit <= status_of_list.size:
                following = request.build_absolute_uri(
                    f"{request.path}?start_rank={start + limit}&limit={limit}"
                )
        answer = {
            "list": status_of_list,
            "progress": progress(query, annotator=request.user),
            "count": status_of_list.size,
            "start_rank": ranks[0],
            "next": following,
            "results": candidates_at(query=query, user=request.user, ranks=ranks),
        }
        return Response(CandidatesSerializer(answer).data)

    @extend_schema(parameters=[MatchingParameters], responses=MatchingSerializer)
    @action(detail=True, methods=["get"])
    def matching(self, request: Request, pk: int) -> Response:
        """The ranks that pass a filter; it narrows what is shown, never what the stop rule counts.

        An image without a date passes no date filter, one without a place no box.
        """
        query = _query_with_list(request, pk)
        hidden = names_hidden_from(request.user)
        conditions = CandidateFilter(**parameters(request, MatchingParameters, names_hidden=hidden))
        ranks = matching_ranks(query=query, user=request.user, candidate_filter=conditions)
        return Response({"count": len(ranks), "ranks": ranks})

    @extend_schema(responses=FacetsSerializer)
    @action(detail=True, methods=["get"])
    def facets(self, request: Request, pk: int) -> Response:
        """What the list can be filtered by, with the number of images."""
        found = facets(query=get_query_for(request.user, pk), user=request.user)
        return Response(FacetsSerializer(found).data)

    @extend_schema(parameters=[ChangesParameters], responses=ChangesSerializer)
    @action(detail=True, methods=["get"])
    def changes(self, request: Request, pk: int) -> Response:
        """What is new since a cursor of `outline` or of the last `changes`; cheap to call often.

        Judgments are one's own, made in whatever tab or device; of others reviewers read how many.
        """
        query, part = query_and_part(request.user, pk)
        sent = parameters(request, ChangesParameters)
        changes = changes_since(query=query, user=request.user, **sent)
        if why_not(request.user, query, Act.READ_LIST):
            changes = replace(changes, withdrawn=[], flagged=[])
        answer = {
            "query": _query_status(request, query, part=part),
            "list": list_status(query),
            **asdict(changes),
        }
        return Response(ChangesSerializer(answer).data)

    @extend_schema(
        parameters=[SimilarParameters],
        responses={
            200: SimilarSerializer,
            409: OpenApiResponse(description="the image or the list can't be compared yet"),
        },
    )
    @action(detail=True, methods=["get"])
    def similar(self, request: Request, pk: int) -> Response:
        """The images nearest to one, in exact order, within the query's species filter if any."""
        query = _query_with_list(request, pk)
        sent = parameters(request, SimilarParameters)
        try:
            found = similar_images(
                query=query, user=request.user, image_id=sent["image"], limit=sent["limit"]
            )
        except Image.DoesNotExist as error:
            raise exceptions.ValidationError({"image": str(error)}) from None
        return Response(SimilarSerializer(found).data)

    @extend_schema(responses=ReferenceSerializer)
    @action(detail=True, methods=["get"])
    def reference(self, request: Request, pk: int) -> Response:
        """Guidelines, pinned examples, and the filter's species with their look-alikes."""
        query = get_query_for(request.user, pk)
        found = reference(query=query, user=request.user)
        return Response(ReferenceSerializer(found).data)

    @extend_schema(
        request=ExampleWriteSerializer,
        responses={
            200: OpenApiResponse(ExampleSerializer, "it was pinned before and is changed"),
            201: ExampleSerializer,
        },
    )
    @action(detail=True, methods=["post"])
    def examples(self, request: Request, pk: int) -> Response:
        """Pin an image as an example (admins); pinning again changes it."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        data = ExampleWriteSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        sent = data.validated_data
        example, new = example_pin(
            query=query,
            image_id=sent["image"],
            relevant=sent["relevant"],
            note=sent["note"],
            by=request.user,
        )
        code = status.HTTP_201_CREATED if new else status.HTTP_200_OK
        return Response(ExampleSerializer(example).data, status=code)

    @extend_schema(
        operation_id="queries_examples_destroy",
        responses={204: None},
    )
    @action(detail=True, methods=["delete"], url_path="examples/<id:image>")
    def example(self, request: Request, pk: int, image: int) -> Response:
        """Remove an example (admins)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        if not example_unpin(query=query, image_id=image):
            raise Http404("This image isn't an example of the query.")
        return Response(status=status.HTTP_204_NO_CONTENT)


def _query_with_list(request: Request, pk: int) -> Query:
    """The query, for a person who may read its list. Raises Http404 and Forbidden."""
    query = get_query_for(request.user, pk)
    require_permission(request.user, query, Act.READ_LIST)
    return query


def _query_status(request: Request, query: Any, **known: Any) -> dict[str, Any]:
    return {"state": query.state, "can_label": not why_not(request.user, query, **known)}
