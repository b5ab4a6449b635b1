"""People of a served application, made inside one of its processes."""

from __future__ import annotations

from typing import Final

PASSWORD: Final = "tawny-owl-at-dusk-7"


def make_people(roles: dict[str, str]) -> dict[str, dict[str, str]]:
    """People with the password PASSWORD by name; the role, token and session of each."""
    from django.test import Client

    from annotator.people.services import user_create
    from annotator.people.tokens import token_create
    from core.access import Role

    made = {}
    for name, role in roles.items():
        user = user_create(username=name, role=Role(role), password=PASSWORD)
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        token = token_create(user=user, name="tests", days=30)[1]
        made[name] = {
            "role": role,
            "token": token,
            "session": str(client.session.session_key),
        }
    return made
