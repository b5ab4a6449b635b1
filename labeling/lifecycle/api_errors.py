"""What services refuse, as answers of the API."""

from __future__ import annotations

from collections import defaultdict

from django.core.exceptions import PermissionDenied
from rest_framework import exceptions, status
from rest_framework.response import Response
from rest_framework.views import APIView

from core.errors import Conflict
from labeling.lifecycle.imports import ImportRefused
from labeling.queries.transitions import (
    TransitionForbidden,
    TransitionIncomplete,
    TransitionRefused,
)
from retrieval.encoding.encoders import ModelSpecError


class ConflictProblem(exceptions.APIException):
    """409: well formed, but not possible in the state in which things are."""

    status_code = status.HTTP_409_CONFLICT


class LabelingView(APIView):
    """A view whose services' refusals become problem documents."""

    def handle_exception(self, exc: Exception) -> Response:
        return super().handle_exception(translated(exc))


def translated(error: Exception) -> Exception:
    """The error that the API answers with; those that it knows itself pass unchanged."""
    if isinstance(error, TransitionForbidden):
        return PermissionDenied(str(error))
    if isinstance(error, TransitionIncomplete):
        return exceptions.ValidationError({error.field: list(error.messages)})
    if isinstance(error, ImportRefused):
        return exceptions.ValidationError(_by_field(error))
    if isinstance(error, TransitionRefused | Conflict | ModelSpecError):
        return ConflictProblem(str(error))
    return error


def _by_field(refused: ImportRefused) -> dict[str, list[str]]:
    errors: defaultdict[str, list[str]] = defaultdict(list)
    for error in refused.errors:
        errors[error.field or "file"].append(f"{error.file}, line {error.line}: {error.message}")
    return dict(errors)
