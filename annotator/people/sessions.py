"""Sessions and their people, which the request of each image reads too: by statements of our own,
since Django takes longer to write its own than the database to answer them.
"""

from __future__ import annotations

from typing import Any, Final

from django.contrib.auth.backends import ModelBackend
from django.contrib.sessions.backends.db import SessionStore as StoredSession
from django.contrib.sessions.models import Session
from django.utils import timezone

from annotator.models import User
from core.sql import fetch_all

_SESSION: Final = f"""
SELECT session_data FROM {Session._meta.db_table} WHERE session_key = %s AND expire_date > %s
"""
_USER: Final = f"SELECT * FROM {User._meta.db_table} WHERE id = %s"


class SessionStore(StoredSession):
    """Django's sessions in the database."""

    def load(self) -> dict[str, Any]:
        """What the session holds; nothing once it has expired."""
        for (data,) in fetch_all(_SESSION, [self.session_key, timezone.now()]):
            return self.decode(data)
        self._session_key = None
        return {}


class PasswordBackend(ModelBackend):
    """Django's log-in by password."""

    def get_user(self, user_id: int) -> User | None:
        """The person of a session, unless they are deactivated."""
        user = next(iter(User.objects.raw(_USER, [user_id])), None)
        return user if user is not None and user.is_active else None
