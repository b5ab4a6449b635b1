"""How many requests an API token may be sent with: API_RATE."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connection
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from annotator.models import ApiToken
from core.errors import LimitReached

# One statement by the database's clock, so that all processes and machines count together.
COUNT = """
INSERT INTO annotator_tokenrequests AS known (token_id, period, requests)
VALUES (%(token)s, floor(extract(epoch FROM statement_timestamp()) / %(seconds)s), 1)
ON CONFLICT (token_id) DO UPDATE SET period = excluded.period,
    requests = CASE known.period WHEN excluded.period THEN known.requests + 1 ELSE 1 END
RETURNING requests,
    ceil((period + 1) * %(seconds)s - extract(epoch FROM statement_timestamp()))
"""


class TokenRate(BaseThrottle):
    """Refuses (429) requests of a token above API_RATE until the next period begins."""

    def allow_request(self, request: Request, _view: Any) -> bool:
        """Count the request. LimitReached, with the seconds to wait, above the rate."""
        if settings.API_RATE is None or not isinstance(request.auth, ApiToken):
            return True
        limit, seconds = settings.API_RATE
        with connection.cursor() as cursor:
            cursor.execute(COUNT, {"token": request.auth.pk, "seconds": seconds})
            requests, wait = cursor.fetchone()
        if requests > limit:
            detail = f"This token was sent with more than {limit} requests in {seconds} seconds."
            raise LimitReached(detail, wait=float(wait))
        return True
