"""Shared parts of management commands."""

from django.conf import settings


def command(arguments: str) -> str:
    """A management command as one types it here, such as “python manage.py embed”."""
    program = "python manage.py" if settings.CHECKOUT else "inquire-annotator"
    return f"“{program} {arguments}”"
