"""Runs through the API: submitted, described, published, deleted, and their scores."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import exceptions, mixins, status, viewsets
from rest_framework.decorators import action
from rest_framework.generics import GenericAPIView
from rest_framework.parsers import MultiPartParser
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from core.access import Role, require_evaluator, require_role
from core.api.parameters import parameters
from core.errors import Conflict
from core.jobs.models import Job
from core.jobs.serializers import JobSerializer
from evaluation.runs.baselines import baselines_begin
from evaluation.runs.fusions import fusible_runs, run_fuse
from evaluation.runs.model_evaluations import evaluation_begin
from evaluation.runs.models import Run
from evaluation.runs.selectors import (
    can_edit,
    can_unpublish,
    get_run_for,
    query_scores_for,
    require_allowed,
    runs_visible_to,
    scores_visible_to,
)
from evaluation.runs.serializers import (
    AllowanceSerializer,
    CardSerializer,
    EvaluationSerializer,
    FusionSerializer,
    JudgeSerializer,
    QueryScoresSerializer,
    RequestedSerializer,
    RunDetailSerializer,
    RunParameters,
    RunSerializer,
    RunsParameters,
    ScoreOnSerializer,
    ScoresParameters,
    SubmissionSerializer,
)
from evaluation.runs.services import (
    CARD_FIELDS,
    run_card_update,
    run_delete,
    run_publish,
    run_score_elsewhere,
    run_unpublish,
)
from evaluation.runs.submissions import allowance_of, require_open_board, run_submit
from evaluation.runs.unjudged import unjudged_request
from releases.access import labels_visible_to
from releases.models import Release
from releases.selectors import get_release

RELATED = ("release", "owner", "job", "embedding_model")


class RunView(APIView):
    """A view for those who may see runs: researchers, reviewers and admins."""

    permission_classes = [IsAuthenticated]

    def check_permissions(self, request: Request) -> None:
        """Refuse annotators too."""
        super().check_permissions(request)
        require_evaluator(request.user)


@extend_schema_view(list=extend_schema(parameters=[RunsParameters]))
class RunViewSet(
    RunView,
    mixins.ListModelMixin,
    mixins.RetrieveModelMixin,
    viewsets.GenericViewSet[Run],
):
    """The runs that the user sees: published ones and their own; admins see all."""

    queryset = Run.objects.none()
    lookup_value_converter = "id"

    def get_queryset(self) -> QuerySet[Run]:
        return runs_visible_to(self.request.user).select_related(*RELATED)

    def filter_queryset(self, queryset: QuerySet[Run, Any]) -> QuerySet[Run, Any]:
        """By the parameters of a list."""
        if self.action != "list":
            return queryset
        return queryset.filter(**parameters(self.request, RunsParameters))

    def get_serializer_class(self) -> type[RunSerializer]:
        """With details but in lists."""
        return RunSerializer if self.action == "list" else RunDetailSerializer

    @extend_schema(request=CardSerializer(partial=True), responses=RunDetailSerializer)
    def partial_update(self, request: Request, pk: int) -> Response:
        """Change fields of the method card (the run's owner and admins)."""
        run = get_run_for(request.user, pk)
        require_allowed(can_edit(request.user, run))
        written = CardSerializer(data=request.data, partial=True)
        written.is_valid(raise_exception=True)
        run_card_update(run=run, **written.validated_data)
        return self._detail(request, pk)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        """Delete a private run (its owner and admins)."""
        run = get_run_for(request.user, pk)
        require_allowed(can_edit(request.user, run))
        run_delete(run=run)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @extend_schema(request=None, responses=RunDetailSerializer)
    @action(detail=True, methods=["post"])
    def publish(self, request: Request, pk: int) -> Response:
        """Show a scored run to everybody (its owner and admins)."""
        run = get_run_for(request.user, pk)
        require_allowed(can_edit(request.user, run))
        if run.test_queries and not run.published:
            require_open_board(run.release)
        run_publish(run=run)
        return self._detail(request, pk)

    @extend_schema(request=None, responses=RunDetailSerializer)
    @action(detail=True, methods=["post"])
    def unpublish(self, request: Request, pk: int) -> Response:
        """Make a public run private again (admins)."""
        require_role(request.user, Role.ADMIN)
        run = get_run_for(request.user, pk)
        if run.published and not can_unpublish(request.user, run):
            raise Conflict("Baselines are always public.")
        run_unpublish(run=run)
        return self._detail(request, pk)

    @extend_schema(request=JudgeSerializer, responses=RequestedSerializer)
    @action(detail=True, methods=["post"])
    def judge(self, request: Request, pk: int) -> Response:
        """Have the first images of a public run that nobody has judged judged (reviewers); a repeat
        adds nothing."""
        require_role(request.user, Role.REVIEWER)
        run = get_run_for(request.user, pk)
        written = JudgeSerializer(data=request.data)
        written.is_valid(raise_exception=True)
        images, queries = unjudged_request(run=run, by=request.user, **written.validated_data)
        return Response({"images": images, "queries": queries})

    @extend_schema(
        methods=["get"],
        parameters=[ScoresParameters],
        responses=QueryScoresSerializer,
    )
    @extend_schema(
        methods=["post"], request=ScoreOnSerializer, responses={201: QueryScoresSerializer}
    )
    @action(detail=True, methods=["get", "post"])
    def scores(self, request: Request, pk: int) -> Response:
        """The score of each query whose labels you may see; POST scores the run on another version
        of its benchmark, whose test labels you must see."""
        run = get_run_for(request.user, pk)
        if request.method == "POST":
            written = ScoreOnSerializer(data=request.data)
            written.is_valid(raise_exception=True)
            release = written.validated_data["release"]
            if release.name != run.release.name:
                raise exceptions.ValidationError({"release": "It is of another benchmark."})
            require_allowed(labels_visible_to(request.user, release, "test"))
            if not run.ready:
                raise Conflict("The run isn't scored on its own release yet.")
            scores = run_score_elsewhere(run=run, release=release)
            data = QueryScoresSerializer(query_scores_for(request.user, scores)).data
            return Response(data, status=status.HTTP_201_CREATED)
        name = parameters(request, ScoresParameters).get("release")
        release = get_release(name) if name else run.release
        visible = scores_visible_to(request.user, run)
        on_release = next((each for each in visible if each.release_id == release.pk), None)
        if on_release is None:
            raise Http404("The run has no such scores.")
        return Response(QueryScoresSerializer(query_scores_for(request.user, on_release)).data)

    def _detail(self, request: Request, pk: int) -> Response:
        run = get_run_for(request.user, pk)
        return Response(RunDetailSerializer(run, context={"request": request}).data)


class ReleaseRunsView(RunView, GenericAPIView[Run]):
    """The runs of one release."""

    queryset = Run.objects.none()
    serializer_class = RunSerializer
    parser_classes = [MultiPartParser]

    def get_queryset(self) -> QuerySet[Run]:
        runs = runs_visible_to(self.request.user).filter(release=self.kwargs["pk"])
        return runs.select_related(*RELATED)

    @extend_schema(parameters=[RunParameters], responses=RunSerializer(many=True))
    def get(self, request: Request, pk: int) -> Response:
        """The runs that the user sees, by id."""
        _release(pk)
        runs = self.get_queryset().filter(**parameters(request, RunParameters))
        page = self.paginate_queryset(runs) or []
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        request={"multipart/form-data": SubmissionSerializer},
        responses={
            201: RunDetailSerializer,
            429: OpenApiResponse(description="the day's submissions on the test split are used up"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Submit a run (researchers, reviewers, admins): a TREC, CSV or JSON lines file, also with
        gzip. A job checks it whole, line by line, and scores it; of a file with errors the run's
        `state` becomes failed, and its `errors` say why."""
        release = _release(pk)
        written = SubmissionSerializer(data=request.data)
        written.is_valid(raise_exception=True)
        fields = written.validated_data
        upload = fields["file"]
        run = run_submit(
            release=release,
            owner=request.user,
            file=upload,
            file_name=upload.name,
            task=fields["task"],
            split=fields["split"],
            card={name: fields[name] for name in CARD_FIELDS if name in fields},
            publish=fields["publish"],
        )
        return created(run, request)


class BaselinesView(RunView):
    """The runs that every release has of itself."""

    @extend_schema(request=None, responses={202: JobSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Have them made by a job (admins); again, what is new since."""
        require_role(request.user, Role.ADMIN)
        job = baselines_begin(release=_release(pk), created_by=request.user)
        return _accepted(job, request)


class FusionView(RunView):
    """Runs that fuse others of a release."""

    @extend_schema(request=FusionSerializer, responses={201: RunDetailSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Fuse scored runs of one task, in this order; a job makes the run, which is yours. With
        test queries it counts as a submission."""
        written = FusionSerializer(data=request.data)
        written.is_valid(raise_exception=True)
        numbers = written.validated_data.pop("runs")
        fusible = fusible_runs(_release(pk), request.user).select_related("release")
        by_id = fusible.in_bulk(numbers)
        if unknown := [number for number in numbers if number not in by_id]:
            message = f"There is no run {unknown[0]} of this release that can be fused."
            raise exceptions.ValidationError({"runs": message})
        run = run_fuse(
            runs=[by_id[number] for number in numbers],
            owner=request.user,
            **written.validated_data,
        )
        return created(run, request)


class EvaluationView(RunView):
    """Evaluating a model on a release."""

    @extend_schema(request=EvaluationSerializer, responses={202: JobSerializer})
    def post(self, request: Request, pk: int) -> Response:
        """Embed the corpus by a model as far as it isn't, rank it for the queries and score that
        (reviewers): one job, which goes on where it stopped."""
        require_role(request.user, Role.REVIEWER)
        written = EvaluationSerializer(data=request.data)
        written.is_valid(raise_exception=True)
        job = evaluation_begin(
            release=_release(pk),
            model_name=written.validated_data["model"],
            created_by=request.user,
        )
        return _accepted(job, request)


class AllowanceView(RunView):
    """The limit of submissions on the test split."""

    @extend_schema(responses=AllowanceSerializer)
    def get(self, request: Request) -> Response:
        """How many the user has left, over all releases."""
        return Response(AllowanceSerializer(allowance_of(request.user)).data)


def created(run: Run, request: Request) -> Response:
    """The answer 201 with a new run."""
    return Response(
        RunDetailSerializer(run, context={"request": request}).data,
        status=status.HTTP_201_CREATED,
        headers={"Location": reverse("api-run-detail", args=[run.pk], request=request)},
    )


def _accepted(job: Job, request: Request) -> Response:
    data = JobSerializer(job, context={"request": request}).data
    return Response(data, status=status.HTTP_202_ACCEPTED)


def _release(pk: int) -> Release:
    return get_object_or_404(Release.objects.made(), pk=pk)
