"""The API of how far a reader is to be believed."""

from __future__ import annotations

from dataclasses import asdict

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from core.access import Role, require_role
from extras.reading.calibration import TooFew
from extras.reading.calibrations import calibrate, latest, reader_figures
from extras.reading.models import Calibration, Reader


class CalibrationSerializer(serializers.ModelSerializer[Calibration]):
    """From what a reader says to shares of relevant images."""

    class Meta:
        model = Calibration
        fields = ("id", "said", "found", "relevant", "not_relevant", "made_at")


class ReaderCalibrationSerializer(serializers.Serializer[object]):
    """The latest calibration, and figures by the present labels; see the extra's README."""

    calibration = CalibrationSerializer(allow_null=True, help_text="null before the first")
    figures = serializers.DictField(
        allow_null=True,
        help_text="`judged` and `drawn` (of what audits drew): images, relevant, auc, brier, "
        "log_loss, both also of a constant, and bins; `agreement`: rows by category; null where "
        "too few images are judged to say anything",
    )


class ReaderCalibrationView(APIView):
    """How far a reader is to be believed."""

    @extend_schema(responses=ReaderCalibrationSerializer)
    def get(self, request: Request, pk: int) -> Response:
        """Read a reader's calibration and figures (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        return _answer(get_object_or_404(Reader, pk=pk))

    @extend_schema(
        request=None,
        responses={
            200: ReaderCalibrationSerializer,
            409: OpenApiResponse(description="too few images are judged"),
        },
    )
    def post(self, request: Request, pk: int) -> Response:
        """Calibrate a reader by the present labels (reviewers)."""
        require_role(request.user, Role.REVIEWER)
        reader = get_object_or_404(Reader, pk=pk)
        calibrate(reader=reader)
        return _answer(reader)


def _answer(reader: Reader) -> Response:
    try:
        figures = asdict(reader_figures(reader))
    except TooFew:
        figures = None
    answer = {"calibration": latest(reader), "figures": figures}
    return Response(ReaderCalibrationSerializer(answer).data)
