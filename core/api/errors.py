"""What the API answers where a request is well formed and still can't be done."""

from __future__ import annotations

from rest_framework import status
from rest_framework.exceptions import APIException


class ConflictProblem(APIException):
    """409: not possible in the state in which things are."""

    status_code = status.HTTP_409_CONFLICT


class UnavailableProblem(APIException):
    """503: the server can't do it now: its model can't be loaded, or a search takes too long."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE
