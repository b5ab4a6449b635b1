"""Correlations through the API."""

from __future__ import annotations

from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.parameters import parameters
from core.errors import Invalid
from evaluation.leaderboard.board import BOTH, SPLITS, TEST, VAL
from evaluation.leaderboard.choice import read_measure, visible_measure
from evaluation.leaderboard.selectors import board_runs
from evaluation.runs.api import RunView
from evaluation.runs.models import Run
from extras.correlations.selectors import (
    between_measures,
    between_versions,
    columns_of,
    labeled_splits,
)
from extras.correlations.views import ScoresForm
from releases.models import Release


class CorrelationParameters(serializers.Serializer[dict[str, object]]):
    """What is correlated; of a split whose labels are hidden the validation split is shown."""

    task = serializers.ChoiceField(choices=Run.Task.choices, default=Run.Task.FULL)
    split = serializers.ChoiceField(
        choices=[(key, SPLITS[key]) for key in (TEST, VAL, BOTH)], default=TEST
    )
    measure = serializers.CharField(default="", help_text="between versions, by default the first")
    columns = serializers.ListField(
        child=serializers.CharField(), default=list, help_text="measures, by default the usual ones"
    )


class CorrelationsSerializer(serializers.Serializer[object]):
    """Kendall's tau-b between every two columns, from -1 to 1, null where it isn't defined; and
    over how many rows."""

    names = serializers.ListField(child=serializers.CharField())
    taus = serializers.ListField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True))
    )
    counts = serializers.ListField(child=serializers.ListField(child=serializers.IntegerField()))


class ReleaseCorrelationsSerializer(serializers.Serializer[object]):
    """Correlations on a release."""

    split = serializers.CharField()
    measure = serializers.CharField()
    measures = CorrelationsSerializer(help_text="between measures, over the runs")
    versions = CorrelationsSerializer(help_text="between versions of the release, for `measure`")


class ScoresSerializer(serializers.Serializer[object]):
    """A CSV file with a row for each model and a column for each measure."""

    scores = serializers.FileField()


class ReleaseCorrelationsView(RunView):
    """Whether measures, or versions, rank a release's runs alike."""

    @extend_schema(parameters=[CorrelationParameters], responses=ReleaseCorrelationsSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Correlate the measures of the published runs, and the versions by one measure."""
        release = get_object_or_404(Release.objects.made(), pk=pk)
        choice = parameters(request, CorrelationParameters)
        runs = board_runs(release, choice["task"], request.user)
        measure = read_measure(request.query_params, choice["task"])
        shown = visible_measure(runs, choice["split"], measure, labeled_splits(runs))
        if not set(choice["columns"]) <= set(shown.measures):
            raise Http404("There is no such measure.")
        answer = {
            "split": shown.split,
            "measure": shown.measure,
            "measures": between_measures(runs, shown.split, columns_of(runs, choice["columns"])),
            "versions": between_versions(runs, shown.split, shown.measure, request.user),
        }
        return Response(ReleaseCorrelationsSerializer(answer).data)


class CorrelateView(RunView):
    """Whether the measures of a table rank its models alike."""

    parser_classes = [MultiPartParser]

    @extend_schema(request=ScoresSerializer, responses=CorrelationsSerializer)
    def post(self, request: Request) -> Response:
        """Correlate the columns of a table, of which nothing is stored."""
        form = ScoresForm(files=request.FILES)
        if not form.is_valid():
            raise Invalid({"scores": map(str, form.errors["scores"])})
        return Response(CorrelationsSerializer(form.cleaned_data["scores"]).data)
