"""Errors of well-formed requests that can't be processed."""

from __future__ import annotations

from rest_framework import status
from rest_framework.exceptions import APIException


class ConflictProblem(APIException):
    """409: not possible in the present state."""

    status_code = status.HTTP_409_CONFLICT


class UnavailableProblem(APIException):
    """503: the server can't do it now: its model can't be loaded, or a search takes too long."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
