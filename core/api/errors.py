"""Errors of well-formed requests that can't be processed."""

from __future__ import annotations

import math

from rest_framework import status
from rest_framework.exceptions import APIException

from core.errors import LimitReached


class ConflictProblem(APIException):
    """409: not possible in the present state."""

    status_code = status.HTTP_409_CONFLICT


class UnavailableProblem(APIException):
    """503: the server can't do it now: its model can't be loaded, or a search takes too long."""

    status_code = status.HTTP_503_SERVICE_UNAVAILABLE


class LimitProblem(APIException):
    """429, with the seconds to wait as Retry-After."""

    status_code = status.HTTP_429_TOO_MANY_REQUESTS

    def __init__(self, error: LimitReached) -> None:
        super().__init__(str(error))
        self.wait = error.wait and max(1, math.ceil(error.wait))
