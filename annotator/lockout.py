"""What happens after too many wrong passwords, and whose they were."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from annotator.problems import is_api, problem_response

MESSAGE = "Too many wrong passwords for this name. Try again in 15 minutes."
SECONDS = int(settings.AXES_COOLOFF_TIME.total_seconds())


def client_address(request: HttpRequest) -> str:
    """The address that the request came from.

    Behind a proxy (TRUST_PROXY) it is the last entry of X-Forwarded-For, the one that the proxy
    itself wrote; anything before it the client may have made up.
    """
    if settings.TRUST_PROXY:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")[-1].strip()
        if forwarded:
            return str(forwarded)
    return str(request.META.get("REMOTE_ADDR", ""))


def lockout_response(
    request: HttpRequest, original: HttpResponse | None, credentials: dict[str, Any] | None
) -> HttpResponse:
    """429, as a problem document under /api/ and as the log-in page elsewhere."""
    if is_api(request):
        response = problem_response(429, detail=MESSAGE)
    else:
        from django.contrib.auth.forms import AuthenticationForm

        context = {"form": AuthenticationForm(request), "locked_out": MESSAGE}
        response = render(request, "registration/login.html", context, status=429)
    response["Retry-After"] = str(SECONDS)
    return response
