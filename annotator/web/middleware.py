"""What holds for every request: security headers and cookies that also work on this machine's own
plain-HTTP address, private answers, nonsense refused, pages that outlive their person's session.
"""

import ipaddress
import re
import secrets
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.exceptions import BadRequest
from django.core.signals import request_finished
from django.dispatch import receiver
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, QueryDict
from django.http.request import split_domain_port
from django.middleware.security import SecurityMiddleware

from annotator.web.bodies import NUL
from annotator.web.openapi import query_parameters
from annotator.web.problems import field_errors, is_api, problem_response, summary
from core.log_lines import request_id

PLAIN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestIdMiddleware:
    """Gives each request an id, which its answer has in X-Request-ID and its lines of the log have.

    It is the one of the proxy's, where TRUST_PROXY is on and it is short and plain.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass the request on; its id holds until the answer has been sent."""
        given = request.headers.get("X-Request-ID", "") if settings.TRUST_PROXY else ""
        one = given if PLAIN_ID.fullmatch(given) else secrets.token_hex(8)
        request_id.set(one)
        response = self.get_response(request)
        response.headers["X-Request-ID"] = one
        return response


@receiver(request_finished)
def forget_request_id(**_: Any) -> None:
    """End the id of this thread's request."""
    request_id.set(None)


class ProbesMiddleware:
    """Answers probes under every host name: in front of the check of ALLOWED_HOSTS.

    Monitors ask a container or a pod by its IP address. No answer to a probe holds an address that
    is made of the host name. SECURE_REDIRECT_EXEMPT spares probes HTTPS.
    """

    PROBES = frozenset({"/healthz", "/healthz/web", "/metrics"})

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass everything on, a probe as if this machine asked."""
        if request.path_info in self.PROBES:
            request.get_host = lambda: "localhost"  # type: ignore[method-assign]
        return self.get_response(request)


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


class PrivateMiddleware:
    """Keeps answers out of every cache, unless their view allows caching.

    Static files come from a middleware before this one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add `Cache-Control: private, no-store` where there is no such header."""
        response = self.get_response(request)
        response.headers.setdefault("Cache-Control", "private, no-store")
        return response


class RejectUnknownParameters:
    """Refuses (400) NUL characters, which no text in the database can hold, and query parameters
    that the API's description doesn't name: a misspelled filter must not answer everything.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Pass everything on; `process_view` checks requests."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Any, _arguments: Any, named: dict[str, Any]
    ) -> HttpResponse | None:
        """Check the address's parameters and a page's form."""
        if any("\0" in str(value) for value in named.values()):
            raise Http404
        program = is_api(request)
        errors = dict.fromkeys(_with_nul(request.GET), NUL)
        if program and hasattr(view, "cls"):
            known = query_parameters(view, "GET" if request.method == "HEAD" else request.method)
            if known is not None:
                errors |= dict.fromkeys(set(request.GET) - known, "There is no such parameter.")
        if not program and _with_nul(request.POST):
            raise BadRequest(NUL)
        if not errors:
            return None
        if not program:
            raise BadRequest(NUL)
        listed = field_errors(errors)
        return problem_response(400, detail=summary(listed), errors=listed)


def _with_nul(fields: QueryDict) -> list[str]:
    """The names of fields in which there is a NUL character."""
    return [name for name, values in fields.lists() if "\0" in "".join((name, *values))]


class SessionOwner:
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
