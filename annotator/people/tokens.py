"""API tokens: made, checked, counted, ended. One is shown once; the database holds its SHA-256."""

from __future__ import annotations

import hashlib
import secrets
from datetime import timedelta
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from annotator.models import ApiToken, User
from core.errors import Conflict, Forbidden, Invalid, LimitReached

#: Days after which a token expires, for people to choose from.
LIFETIMES: Final = (30, 90, 365)
LOG_IN_LIFETIME: Final = 90
MOST_NAMED: Final = 20
MOST_OF_LOG_INS: Final = 10
# One statement by the database's clock, so that all processes and machines count together.
COUNT_REQUEST: Final = """
INSERT INTO annotator_tokenrequests AS known (token_id, period, requests)
VALUES (%(token)s, floor(extract(epoch FROM statement_timestamp()) / %(seconds)s), 1)
ON CONFLICT (token_id) DO UPDATE SET period = excluded.period,
    requests = CASE known.period WHEN excluded.period THEN known.requests + 1 ELSE 1 END
RETURNING requests,
    ceil((period + 1) * %(seconds)s - extract(epoch FROM statement_timestamp()))
"""


def digest_of(token: str) -> str:
    """The SHA-256 of a token, as it is stored. A token is random, so that no salt is needed."""
    return hashlib.sha256(token.encode()).hexdigest()


class TokenAuthentication(authentication.TokenAuthentication):
    """`Authorization: Token …`, by one SQL query."""

    def authenticate_credentials(self, key: str) -> tuple[User, ApiToken]:
        """The token's person and the token. AuthenticationFailed: it opens nothing (any more)."""
        found = ApiToken.objects.select_related("user").filter(
            digest=digest_of(key), expires_at__gt=Now(), user__is_active=True
        )
        token = found.first()
        if token is None:
            raise AuthenticationFailed("This token is unknown, was revoked or has expired.")
        return token.user, token


@transaction.atomic
def token_create(*, user: User, name: str, days: int) -> tuple[ApiToken, str]:
    """Make a token for a script of the person's; returns it with its text, which nobody can read
    again.

    Raises Invalid where the person has a token of that name, Conflict for more than MOST_NAMED, and
    Forbidden for who was deactivated, or got another password, after they were let in.
    """
    _begin(user)
    named = user.api_tokens.exclude(name="")
    if named.filter(name=name).exists():
        raise Invalid({"name": [f"You have a token named “{name}” already."]})
    if named.count() >= MOST_NAMED:
        raise Conflict(f"At most {MOST_NAMED} tokens: revoke one that you don't need any more.")
    return _store(user, name, days)


@transaction.atomic
def log_in_token_create(*, user: User) -> tuple[ApiToken, str]:
    """Make a token for who sent a name and a password, and end the oldest such tokens of the
    person above MOST_OF_LOG_INS; as `token_create`.
    """
    _begin(user)
    made = _store(user, "", LOG_IN_LIFETIME)
    kept = user.api_tokens.filter(name="").order_by("-pk").values_list("pk", flat=True)
    user.api_tokens.filter(name="").exclude(pk__in=list(kept[:MOST_OF_LOG_INS])).delete()
    return made


def _begin(user: User) -> None:
    """Let one request at a time count the person's tokens, and remove expired ones. Raises as
    `token_create`: what has ended a person's tokens ends those that are being made too.
    """
    now = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if not now.is_active or now.password != user.password:
        raise Forbidden("You were deactivated, or your password was changed. Log in again.")
    user.api_tokens.filter(expires_at__lte=Now()).delete()


def _store(user: User, name: str, days: int) -> tuple[ApiToken, str]:
    text = secrets.token_hex(32)
    expires_at = timezone.now() + timedelta(days=days)
    token = ApiToken.objects.create(
        user=user, name=name, digest=digest_of(text), expires_at=expires_at
    )
    return token, text


class TokensEndWithPassword:
    """Ends a person's tokens when their password changes, whoever changes it: a password validator
    in AUTH_PASSWORD_VALIDATORS is what Django tells of that. It takes every password.
    """

    def validate(self, password: str, user: Any = None) -> None:
        """Take any password."""

    def get_help_text(self) -> str:
        """What Django's forms say beside the password."""
        return "A new password ends all other log-ins and all API tokens."

    def password_changed(self, password: str, user: User) -> None:
        """Django calls this after a new password is stored."""
        user.api_tokens.all().delete()


class TokenRate(BaseThrottle):
    """Refuses (429) requests of a token above API_RATE until the next period begins."""

    def allow_request(self, request: Request, _view: Any) -> bool:
        """Count the request. LimitReached, with the seconds to wait, above the rate."""
        if settings.API_RATE is None or not isinstance(request.auth, ApiToken):
            return True
        limit, seconds = settings.API_RATE
        with connection.cursor() as cursor:
            cursor.execute(COUNT_REQUEST, {"token": request.auth.pk, "seconds": seconds})
            requests, wait = cursor.fetchone()
        if requests > limit:
            detail = f"This token was sent with more than {limit} requests in {seconds} seconds."
            raise LimitReached(detail, wait=float(wait))
        return True
