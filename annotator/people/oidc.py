"""Log-in by OpenID Connect: mozilla-django-oidc does the protocol, at the addresses that the
provider tells of itself, and `services.person_log_in` knows the person.
"""

from __future__ import annotations

import logging
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

import jwt
import requests
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.models import Session
from django.core.exceptions import SuspiciousOperation, ValidationError
from django.db import IntegrityError, transaction
from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import SimpleLazyObject
from mozilla_django_oidc.auth import OIDCAuthenticationBackend
from mozilla_django_oidc.utils import import_from_settings
from mozilla_django_oidc.views import OIDCAuthenticationCallbackView, OIDCAuthenticationRequestView

from annotator.models import User
from annotator.people.services import person_log_in
from core.access import Role, highest
from core.errors import Forbidden
from core.outside import PROVIDER

logger = logging.getLogger(__name__)

#: The library's settings of addresses, and how the provider's own description names them.
ADDRESSES = {
    "OIDC_OP_AUTHORIZATION_ENDPOINT": "authorization_endpoint",
    "OIDC_OP_TOKEN_ENDPOINT": "token_endpoint",
    "OIDC_OP_USER_ENDPOINT": "userinfo_endpoint",
    "OIDC_OP_JWKS_ENDPOINT": "jwks_uri",
}


def provider_host() -> str:
    """The host of the provider, as people know it; empty where there is none."""
    return urlsplit(settings.OIDC_ISSUER).hostname or ""


@cache
def description(issuer: str) -> dict[str, Any]:
    """What a provider tells of itself, once it has answered.

    Raises requests.RequestException where it doesn't, ValueError where it isn't the one meant.
    """
    address = f"{issuer}/.well-known/openid-configuration"
    answer = PROVIDER.ask(lambda: requests.get(address, timeout=settings.OIDC_TIMEOUT))
    answer.raise_for_status()
    told: dict[str, Any] = answer.json()
    if told["issuer"].rstrip("/") != issuer:
        raise ValueError(f"OIDC_ISSUER is {issuer}, and the provider there is {told['issuer']}.")
    return told


class _Described:
    """Reads the settings of the library; the provider is asked for its own when they are used."""

    @staticmethod
    def get_settings(name: str, *default: Any) -> Any:
        """The value of a setting."""
        if name == "OIDC_TOKEN_USE_BASIC_AUTH":
            ways = description(settings.OIDC_ISSUER).get("token_endpoint_auth_methods_supported")
            return "client_secret_post" not in (ways or [])
        if name in ADDRESSES:
            return SimpleLazyObject(lambda: description(settings.OIDC_ISSUER)[ADDRESSES[name]])
        return import_from_settings(name, *default)


class Backend(_Described, OIDCAuthenticationBackend):
    """Finds the person whom the provider answers for."""

    def authenticate(self, request: HttpRequest, *, nonce: str, code_verifier: str) -> User:
        """The person. It never leaves them to other backends, where this would count as a wrong
        password.

        Raises Forbidden with a text for people, and as `_Answered.dispatch` expects.
        """
        # What the calls below need of it is known from here on.
        description(settings.OIDC_ISSUER)
        user: User | None = super().authenticate(request, nonce=nonce, code_verifier=code_verifier)
        if user is None:
            raise SuspiciousOperation("The provider's answer names nobody.")
        return user

    def get_token(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The provider's answer to a code."""
        told: dict[str, Any] = PROVIDER.ask(partial(super().get_token, payload))
        return told

    def retrieve_matching_jwk(self, token: str) -> Any:
        """The provider's key that signed a token."""
        return PROVIDER.ask(partial(super().retrieve_matching_jwk, token))

    def get_userinfo(self, access_token: str, id_token: str, payload: Any) -> dict[str, Any]:
        """What the provider tells of the person."""
        about = partial(super().get_userinfo, access_token, id_token, payload)
        told: dict[str, Any] = PROVIDER.ask(about)
        return told

    def get_payload_data(self, token: str, key: Any) -> dict[str, Any]:
        """What a token says. jwt.PyJWTError: its signature, issuer, audience or time is wrong, of
        which the library checks the first and the last alone.
        """
        issuer = description(settings.OIDC_ISSUER)["issuer"]
        payload: dict[str, Any] = jwt.decode(
            token, key, algorithms=[self.OIDC_RP_SIGN_ALGO], audience=self.OIDC_RP_CLIENT_ID,
            issuer=issuer, leeway=60, options={"require": ["exp", "sub"]},
        )  # fmt: skip
        # OpenID Connect Core 1.0, 3.1.3.7, steps 4 and 5.
        several = isinstance(payload["aud"], list) and len(payload["aud"]) > 1
        if (several or "azp" in payload) and payload.get("azp") != self.OIDC_RP_CLIENT_ID:
            raise Forbidden(f"{provider_host()} made this log-in for another application.")
        return payload

    def get_or_create_user(self, access_token: str, id_token: str, payload: dict[str, Any]) -> User:
        """The person, with the role of their groups. Forbidden: they may not log in."""
        about = self.get_userinfo(access_token, id_token, payload)
        if not payload["sub"] or not about.get("sub"):
            raise Forbidden(f"{provider_host()} doesn't say who you are: its answer has no “sub”.")
        if about["sub"] != payload["sub"]:
            raise SuspiciousOperation("The provider's two answers are about two people.")
        claims = payload | about
        names = _group_names(claims.get(settings.OIDC_GROUPS_CLAIM))
        roles = [Role(settings.OIDC_ROLES[name]) for name in names & settings.OIDC_ROLES.keys()]
        if not roles:
            raise Forbidden(f"None of your groups at {provider_host()} may log in. Ask an admin.")
        subject = f"{settings.OIDC_ISSUER} {payload['sub']}"
        username = str(claims.get(settings.OIDC_USERNAME_CLAIM) or "")
        try:
            return person_log_in(subject=subject, username=username, role=highest(roles))
        except ValidationError as error:
            why = f"{' '.join(error.messages)} Ask an admin."
            raise Forbidden(f"The name “{username}” can't be used here: {why}") from None

    def get_user(self, user_id: int) -> User | None:
        """The person of a session, unless they are deactivated."""
        return ModelBackend.get_user(self, user_id)


def _group_names(claim: Any) -> set[str]:
    """The groups of a claim: a name, or a list of names. Forbidden for anything else."""
    groups = [] if claim is None else [claim] if isinstance(claim, str) else claim
    if not isinstance(groups, list) or not all(isinstance(one, str) for one in groups):
        name = settings.OIDC_GROUPS_CLAIM
        raise Forbidden(f"{provider_host()} names no groups in “{name}”. Ask an admin.")
    return set(groups)


class _Answered(_Described):
    """Has the log-in page say why a log-in failed."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        """Go on with a log-in. 404 without a provider."""
        if not settings.OIDC_ISSUER:
            raise Http404
        if request.user.is_authenticated:
            return redirect(settings.LOGIN_REDIRECT_URL)
        try:
            answer: HttpResponseBase = super().dispatch(  # type: ignore[misc]
                request, *args, **kwargs
            )
            return answer
        except Forbidden as error:
            text = str(error)
        except (requests.ConnectionError, requests.Timeout) as error:
            logger.warning("The provider of log-ins doesn't answer: %s", error)
            text = f"{provider_host()} doesn't answer now. Try again later."
        except (
            requests.RequestException, jwt.PyJWTError, SuspiciousOperation, IntegrityError,
            KeyError, ValueError,
        ) as error:  # fmt: skip
            logger.warning("A log-in by the provider failed: %r", error)
            text = f"The log-in by {provider_host()} failed. Try it again."
        messages.error(request, text)
        target = request.session.get("oidc_login_next")
        return redirect(reverse("login", query={"next": target} if target else None))


class LogInView(_Answered, OIDCAuthenticationRequestView):
    """Sends somebody to the provider."""


class CallbackView(_Answered, OIDCAuthenticationCallbackView):
    """Logs in whom the provider sends back, in a new session."""

    def get(self, request: HttpRequest) -> HttpResponseBase:
        """Go on with a state that is taken once. The library looks it up in the session as it was
        when the request came and removes it later, so it lets several through at once.
        """
        session = request.session
        if "code" in request.GET and "oidc_states" in session:
            with transaction.atomic():
                Session.objects.select_for_update().filter(pk=session.session_key).first()
                stored = type(session)(session.session_key)
                if not stored.get("oidc_states", {}).pop(request.GET.get("state"), None):
                    raise SuspiciousOperation("The state is of no log-in, or was taken before.")
                stored.save()
        answer: HttpResponseBase = super().get(request)
        return answer

    def login_failure(self) -> HttpResponseBase:
        """Say that nobody is logged in: the provider refused, or the session ended meanwhile."""
        raise Forbidden(f"{provider_host()} didn't log you in. Try it again.")
