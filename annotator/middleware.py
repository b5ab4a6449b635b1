"""Security headers and cookies that also work on this machine's own plain-HTTP address."""

import ipaddress

from django.http import HttpRequest, HttpResponseBase
from django.http.request import split_domain_port
from django.middleware.security import SecurityMiddleware


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
