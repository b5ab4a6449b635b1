"""The first admin of an empty installation, who is made in the browser by a one-time link."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db import transaction

from annotator.models import User
from annotator.people.services import user_create
from core.access import Role
from core.errors import Conflict
from core.locks import lock_key, transaction_lock

_SIGNER = TimestampSigner(salt="annotator.people.first_admin")


def first_admin_token() -> str | None:
    """Return a new secret for the link; None once there is anybody."""
    return None if User.objects.exists() else _SIGNER.sign("first")


def first_admin_allowed(token: str) -> bool:
    """Whether the link is good still: signed here, young enough, and nobody is there yet."""
    try:
        _SIGNER.unsign(token, max_age=timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT))
    except BadSignature:
        return False
    return not User.objects.exists()


@transaction.atomic
def first_admin_create(*, token: str, username: str, password: str) -> User:
    """Create the first admin, which ends all such links.

    ValidationError: a bad name or weak password; Conflict: the link isn't good any more.
    """
    # Of several at once the later ones see the first.
    transaction_lock(lock_key("people"))
    if not first_admin_allowed(token):
        raise Conflict("This link doesn’t work any more. Somebody has an account here already.")
    return user_create(username=username, role=Role.ADMIN, password=password)
