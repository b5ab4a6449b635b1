"""What the labelling page reads of one query."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from labeling.access import get_query_for
from labeling.api.studio_serializers import CandidatesParameters, CandidatesSerializer
from labeling.selectors.candidates import candidates_page
from labeling.selectors.lists import list_status
from labeling.selectors.progress import progress


class StudioActions:
    """Reads for the labelling page; part of the queries' view set."""

    @extend_schema(parameters=[CandidatesParameters], responses=CandidatesSerializer)
    @action(detail=True, methods=["get"])
    def candidates(self, request: Request, pk: str) -> Response:
        """Candidates in the frozen order with one's own relevance.

        While the list isn't ready, results are empty and `list.state` says why: building (ask
        again in a second), failed or none.
        """
        query = get_query_for(request.user, int(pk))
        parameters = CandidatesParameters(data=request.query_params)
        parameters.is_valid(raise_exception=True)
        start, limit = parameters.validated_data["start_rank"], parameters.validated_data["limit"]
        page = candidates_page(query=query, user=request.user, start_rank=start, limit=limit)
        found = list_status(query)
        following = start + limit
        address = request.build_absolute_uri(f"{request.path}?start_rank={following}&limit={limit}")
        answer = {
            "list": found,
            "progress": progress(query, annotator=request.user),
            "count": found.size,
            "start_rank": start,
            "next": address if following <= found.size else None,
            "results": page,
        }
        return Response(CandidatesSerializer(answer).data)
