"""Limits on wrong passwords, per name and per address, and the answer above them."""

from contextlib import suppress
from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from axes.handlers.database import AxesDatabaseHandler
from axes.helpers import get_client_username
from django.conf import settings
from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from annotator.models import LoginAddress, User
from annotator.web.problems import is_api, problem_response

#: How long an address is one's own after a log-in.
KNOWN_FOR: Final = timedelta(days=90)


def client_address(request: HttpRequest) -> str | None:
    """The address that the request came from, or None where it has none, as over a Unix socket.

    Behind a proxy (TRUST_PROXY) it is the last entry of X-Forwarded-For, the one that the proxy
    itself wrote; anything before it the client may have made up. Of an IPv6 address the network of
    64 bits counts, since one client has all of it.
    """
    candidates = [request.META.get("REMOTE_ADDR", "")]
    if settings.TRUST_PROXY:
        forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")[-1].strip()
        candidates.insert(0, forwarded)
    for candidate in candidates:
        with suppress(ValueError):
            address = ip_address(candidate)
            if isinstance(address, IPv6Address):
                address = (
                    address.ipv4_mapped
                    or IPv6Network((int(address), 64), strict=False).network_address
                )
            return str(address)
    return None


def logged_client(username: str, address: str, agent: str, path: str, request: HttpRequest) -> str:
    """How logs name who logged in or failed to: by address, since a log keeps what it was told."""
    return str(address)


class LoginLimits(AxesDatabaseHandler):
    """django-axes' record of wrong passwords, held against each of LOGIN_LIMITS.

    django-axes itself knows one limit and one time for all of its lockout parameters.
    """

    def get_failures(self, request: HttpRequest, credentials: dict[str, Any] | None = None) -> int:
        """Return how many of the limits are exceeded; AXES_FAILURE_LIMIT is one.

        The request is marked with the longest time in minutes for which they hold.
        """
        exceeded = []
        recorded = self.get_user_attempts(request, credentials)
        known = self._known_from(request.axes_ip_address)  # type: ignore[attr-defined]
        name = get_client_username(request, credentials)
        for attempts, (counted, limit, minutes) in zip(
            recorded, settings.LOGIN_LIMITS, strict=True
        ):
            if counted == ("ip_address",):
                if name in known:
                    continue
                attempts = attempts.exclude(username__in=known)
            since = request.axes_attempt_time - timedelta(minutes=minutes)  # type: ignore[attr-defined]
            failures = attempts.filter(attempt_time__gt=since).aggregate(
                sum=Sum("failures_since_start", default=0)
            )
            if failures["sum"] >= limit:
                exceeded.append(minutes)
        request.lockout_minutes = max(exceeded, default=0)  # type: ignore[attr-defined]
        return len(exceeded)

    def user_logged_in(self, sender: Any, request: HttpRequest, user: Any, **kwargs: Any) -> None:
        """Forget their wrong passwords, and remember where they logged in for KNOWN_FOR."""
        super().user_logged_in(sender, request, user, **kwargs)
        address = request.axes_ip_address  # type: ignore[attr-defined]
        if address:
            LoginAddress.objects.filter(user=user, last_at__lt=timezone.now() - KNOWN_FOR).delete()
            LoginAddress.objects.update_or_create(
                user=user, address=address, defaults={"last_at": timezone.now()}
            )

    @staticmethod
    def _known_from(address: str | None) -> set[str]:
        """The names of who has logged in from an address: they mistype, and guess nobody's."""
        people = User.objects.filter(login_addresses__address=address)
        return set(people.values_list("username", flat=True))

    def reset_user_attempts(
        self, request: HttpRequest, credentials: dict[str, Any] | None = None
    ) -> int:
        """Forget the wrong passwords of this name from this address.

        Those of other names stay: else one account of one's own would lift the address's limit.
        """
        return int(self.filter_user_attempts(request, credentials)[0].delete()[0])


def lockout_response(
    request: HttpRequest, original: HttpResponse | None, credentials: dict[str, Any] | None
) -> HttpResponse:
    """429, as a problem document under /api/ and as the log-in page elsewhere."""
    minutes: int = request.lockout_minutes  # type: ignore[attr-defined]
    message = f"Too many wrong passwords. Try again in {minutes} minutes."
    if is_api(request):
        response = problem_response(429, detail=message)
    else:
        from django.contrib.auth.forms import AuthenticationForm

        context = {"form": AuthenticationForm(request), "locked_out": message}
        response = render(request, "registration/login.html", context, status=429)
    response["Retry-After"] = str(60 * minutes)
    return response
