"""Security headers and cookies that also work on this machine's own plain-HTTP address, and pages
that outlive their person's session.
"""

import ipaddress
from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port
from django.middleware.security import SecurityMiddleware

from annotator.problems import is_api, problem_response


def is_loopback(host: str) -> bool:
    """Whether a Host header names the machine itself: localhost, 127.0.0.0/8 or [::1]."""
    name, _port = split_domain_port(host)
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


class LoopbackSecurityMiddleware(SecurityMiddleware):
    """Django's SecurityMiddleware, sparing http://127.0.0.1 and its like.

    Traffic on the loopback address never crosses a network, so there the redirect to HTTPS is left
    out and cookies lose their Secure flag, which some browsers would not send back.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:  # type: ignore[override]
        """Redirect to HTTPS, except on the loopback address."""
        return None if self._spared(request) else super().process_request(request)

    def process_response(  # type: ignore[override]
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Set the headers; on the loopback address drop the cookies' Secure flag."""
        response = super().process_response(request, response)  # type: ignore[arg-type]
        if self._spared(request):
            for cookie in response.cookies.values():
                cookie["secure"] = ""
        return response

    @staticmethod
    def _spared(request: HttpRequest) -> bool:
        return not request.is_secure() and is_loopback(request.META.get("HTTP_HOST", ""))


class SamePersonMiddleware:
    """Answers 409 to a page whose person isn't the one who is logged in any more.

    Somebody else may log in in another tab of the browser while a page stands open: nothing that is
    done on it may be stored under their name, and nothing of theirs be shown on it. Pages say whose
    they are in the header X-Annotator; programs with a token need not.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass on what comes from the person's own page."""
        person = request.headers.get("X-Annotator")
        if person is None or not is_api(request) or "Authorization" in request.headers:
            return self.get_response(request)
        if request.user.is_authenticated and person.strip() != str(request.user.pk):
            return problem_response(
                409,
                detail="Somebody else is logged in in this browser now. Nothing was changed; log "
                "in as yourself to go on with this page.",
            )
        return self.get_response(request)
