"""Listing, writing and importing queries, and changing their states."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from django.db.models import prefetch_related_objects
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.viewsets import GenericViewSet

from core.access import Role, at_least, require_role
from core.api.parameters import parameters, validated
from labeling.audits.hand_in import hand_in_state
from labeling.candidates.rules import HandInState
from labeling.comments.api import CommentActions
from labeling.gallery.api import GalleryActions
from labeling.images.actions import ImageActions
from labeling.judging.access import (
    counted_for,
    get_query_for,
    own_assignment,
    queries_visible_to,
)
from labeling.judging.api import LabelingActions
from labeling.judging.progress import Progress, progress
from labeling.learning.api import LearningActions
from labeling.lifecycle.assignments import still_labeling, transitions_open_to
from labeling.lifecycle.imports import LARGEST_UPLOAD, queries_import_uploads
from labeling.lifecycle.opening import queries_open
from labeling.lifecycle.serializers import (
    ImportParameters,
    ImportReportSerializer,
    ImportSerializer,
    OpeningReportSerializer,
    OpenQueriesSerializer,
    QueryDetailSerializer,
    QueryParameters,
    QuerySerializer,
    QueryWriteSerializer,
    SearchToQuerySerializer,
)
from labeling.lifecycle.services import (
    query_change,
    query_create_in_state,
    query_delete,
    query_from_search,
)
from labeling.queries.models import Assignment, Query
from labeling.review.overview import QueryOverview, overview_of, queries_filtered
from labeling.review.selectors import OpenPoint, given_up, left_open
from labeling.studio.api import StudioActions
from labeling.studio.audit import AuditActions
from labeling.studio.blind import CheckActions

STATE_FIELDS = frozenset({"state", "reject_reason", "reject_note", "note", "give_up"})


class CsvParser(BaseParser):
    """A CSV as the whole body; gives its bytes."""

    media_type = "text/csv"

    def parse(  # type: ignore[override]
        self, stream: Any, media_type: Any = None, parser_context: Any = None
    ) -> bytes:
        """The body, cut one byte above the limit so that a larger one is noticed."""
        data: bytes = stream.read(LARGEST_UPLOAD + 1)
        return data


@dataclass(frozen=True, slots=True)
class QueryDetail:
    """A dashboard row with the details of a single query."""

    overview: QueryOverview
    own_progress: Progress
    hand_in: HandInState
    transitions: tuple[str, ...]
    given_up: Assignment | None
    assignment: Assignment | None
    assignments: list[Assignment]
    still_labeling: list[str]
    left_open: list[OpenPoint]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.overview, name)


class QueryViewSet(
    LabelingActions,
    LearningActions,
    StudioActions,
    AuditActions,
    CheckActions,
    CommentActions,
    GalleryActions,
    ImageActions,
    GenericViewSet[Query],
):
    """The queries that the user sees: annotators the open ones and those that they judged for."""

    queryset = Query.objects.none()
    serializer_class = QuerySerializer
    lookup_value_converter = "id"
    http_method_names = ["get", "post", "patch", "delete", "head", "options"]

    @extend_schema(parameters=[QueryParameters], responses=QuerySerializer(many=True))
    def list(self, request: Request) -> Response:
        """Queries by query id with their progress."""
        filters = parameters(request, QueryParameters)
        queries = (
            queries_filtered(queries_visible_to(request.user), filters)
            .select_related("benchmark", "current_list__job", "current_list__embedding_model")
            .prefetch_related("species__names")
            .order_by("query_id")
        )
        page = self.paginate_queryset(queries) or []
        rows = overview_of(list(page), user=request.user)
        return self.get_paginated_response(self.get_serializer(rows, many=True).data)

    @extend_schema(request=QueryWriteSerializer, responses={201: QueryDetailSerializer})
    def create(self, request: Request) -> Response:
        """Write a query (admins): a draft, or with the state open at once an open one."""
        require_role(request.user, Role.ADMIN)
        fields = self._written(request, partial=False)
        to_state = fields.pop("state", Query.State.DRAFT)
        if to_state not in (Query.State.DRAFT, Query.State.OPEN):
            raise exceptions.ValidationError({"state": "A new query is a draft or open."})
        if STATE_FIELDS & fields.keys():
            raise exceptions.ValidationError({"reject_reason": "A new query isn't rejected."})
        query = query_create_in_state(to_state=to_state, created_by=request.user, **fields)
        return self._created(request, query)

    @extend_schema(responses=QueryDetailSerializer)
    def retrieve(self, request: Request, pk: int) -> Response:
        """One query with its progress."""
        return self._detail(request, pk)

    @extend_schema(request=QueryWriteSerializer(partial=True), responses=QueryDetailSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change fields (admins) or the state: submit, complete, reopen, reject (reviewers).

        An annotator's state "submitted" hands in their own part, with `give_up` as a request to
        reject it: the query is submitted with the last part and stays open until then. Their state
        "open" resumes the part. A query that leaves something open (`left_open`) is completed with
        a `note` that says why.
        """
        query = get_query_for(request.user, pk)
        sent = set(request.data) if isinstance(request.data, dict) else set()
        if "state" not in sent or sent - STATE_FIELDS:
            require_role(request.user, Role.ADMIN)
        fields = self._written(request, partial=True)
        state = {name: fields.pop(name) for name in STATE_FIELDS & fields.keys()}
        if state and "state" not in state:
            raise exceptions.ValidationError({"state": "Reasons and notes come with a state."})
        query_change(
            query=query,
            by=request.user,
            fields=fields,  # type: ignore[arg-type]
            to_state=state.get("state"),
            reason=state.get("reject_reason", ""),
            note=state.get("reject_note") or state.get("note", ""),
            give_up=state.get("give_up", ""),
        )
        return self._detail(request, query.pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a query that nobody has judged for (admins)."""
        query = get_query_for(request.user, pk)
        require_role(request.user, Role.ADMIN)
        query_delete(query=query)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=OpenQueriesSerializer, responses=OpeningReportSerializer)
    @action(detail=False, methods=["post"], url_path="open")
    def open_many(self, request: Request) -> Response:
        """Open drafts (admins).

        The candidates of those without a species filter are ranked in one pass over the corpus. A
        query that can't be opened is refused without keeping the others from being opened.
        """
        require_role(request.user, Role.ADMIN)
        data = OpenQueriesSerializer(data=request.data)
        data.is_valid(raise_exception=True)
        report = queries_open(pks=data.validated_data["queries"], by=request.user)
        return Response(OpeningReportSerializer(asdict(report)).data)

    @extend_schema(request=SearchToQuerySerializer, responses={201: QueryDetailSerializer})
    @action(detail=False, methods=["post"], url_path="from-search")
    def from_search(self, request: Request) -> Response:
        """Turn a search into a draft query (admins); the same search again gives the same draft."""
        require_role(request.user, Role.ADMIN)
        data = SearchToQuerySerializer(data=request.data)
        data.is_valid(raise_exception=True)
        query = query_from_search(created_by=request.user, **data.validated_data)
        return self._created(request, query)

    @extend_schema(
        parameters=[ImportParameters],
        request={"multipart/form-data": ImportSerializer, "text/csv": OpenApiTypes.BINARY},
        responses=ImportReportSerializer,
    )
    @action(
        detail=False,
        methods=["post"],
        url_path="import",
        parser_classes=[MultiPartParser, CsvParser],
    )
    def import_csv(self, request: Request) -> Response:
        """Import CSVs of queries whole (admins): uploads named `file`, or the body as text/csv.

        Queries that anybody has judged for, and those that no import brought, stay as they are
        unless `update_queries` names them. The parameters are for a body alone; a form has them as
        fields.
        """
        require_role(request.user, Role.ADMIN)
        files, options = _uploads(request)
        report = queries_import_uploads(
            files=files,
            by=request.user,
            split=options["split"],
            named=options["update_queries"],
            dry_run=options["dry_run"],
        )
        return Response(ImportReportSerializer(report).data)

    def _written(self, request: Request, *, partial: bool) -> dict[str, Any]:
        data = QueryWriteSerializer(data=request.data, partial=partial)
        data.is_valid(raise_exception=True)
        fields: dict[str, Any] = dict(data.validated_data)
        return fields

    def _detail(
        self, request: Request, pk: int, code: int = status.HTTP_200_OK, **headers: str
    ) -> Response:
        query = get_query_for(request.user, pk)
        prefetch_related_objects([query], "species__names")
        [overview] = overview_of([query], user=request.user)
        reviewer = at_least(request.user, Role.REVIEWER)
        own = progress(query, annotator=request.user) if reviewer else overview.progress
        part = own_assignment(request.user, query)
        reads = {} if reviewer else {"annotator": request.user}
        allowed = transitions_open_to(request.user, query, part)
        detail = QueryDetail(
            overview,
            own_progress=own,
            hand_in=hand_in_state(query, own.stop, counted_for(request.user)),
            transitions=allowed,
            given_up=given_up(query, request.user),
            assignment=part if part is not None and part.handed_in else None,
            assignments=list(query.assignments.filter(**reads).select_related("annotator")),
            still_labeling=still_labeling(query),
            left_open=left_open(query) if "complete" in allowed else [],
        )
        serializer = QueryDetailSerializer(detail, context=self.get_serializer_context())
        return Response(serializer.data, status=code, headers=headers)

    def _created(self, request: Request, query: Query) -> Response:
        where = reverse("api-query-detail", args=[query.pk], request=request)
        return self._detail(request, query.pk, status.HTTP_201_CREATED, Location=where)


def _uploads(request: Request) -> tuple[list[tuple[str, bytes]], dict[str, Any]]:
    """The (name, content) of each CSV of a request, and how to import them."""
    data: Any = request.data
    if request.content_type.partition(";")[0].strip().lower() == CsvParser.media_type:
        # Without a body no parser runs, and the data is an empty mapping.
        options = parameters(request, ImportParameters)
        files = [(options["name"], data or b"")]
    else:
        options = validated(request, ImportSerializer)
        files = [(upload.name, upload.read(LARGEST_UPLOAD + 1)) for upload in options["file"]]
    return files, options
