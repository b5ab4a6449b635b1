"""Links by which people set a password: each works once, and the newest of a person's alone."""

from __future__ import annotations

import secrets
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from annotator.models import PasswordLink, User
from annotator.people.tokens import digest_of


class LinkTokens:
    """Makes and checks the secret in a link, in place of Django's PasswordResetTokenGenerator: that
    computes its secrets, so that several are good at once.
    """

    def make_token(self, user: User) -> str:
        """A new secret, in place of the person's former one."""
        text = secrets.token_hex(32)
        expires_at = timezone.now() + timedelta(seconds=settings.PASSWORD_RESET_TIMEOUT)
        made = {"digest": _digest(text, user), "expires_at": expires_at}
        PasswordLink.objects.update_or_create(user=user, defaults=made)
        return text

    def check_token(self, user: Any, token: str | None) -> bool:
        """Whether the secret is good still."""
        digest = _digest(token, user) if user and token else ""
        return PasswordLink.objects.filter(user=user, digest=digest, expires_at__gt=Now()).exists()


@transaction.atomic
def link_take(*, user: User, token: str) -> bool:
    """Use up a link; False where it isn't good any more, as for all but one that come at once."""
    row = PasswordLink.objects.select_for_update().filter(user=user)
    if row.first() is None or not LinkTokens().check_token(user, token):
        return False
    row.delete()
    return True


def _digest(token: str, user: User) -> str:
    """The secret's SHA-256 with what a log-in or a new password changes, which so end the link."""
    return digest_of(f"{token} {user.password} {user.last_login}")
