"""Shared parts of management commands."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from core.errors import FileRefused, Refused

SHOWN_ERRORS = 20


def command(arguments: str) -> str:
    """A management command as one types it here, such as “python manage.py embed”."""
    program = "python manage.py" if settings.CHECKOUT else "inquire-annotator"
    return f"“{program} {arguments}”"


class ServiceCommand(BaseCommand):
    """A command that ends with what a service refuses, in its words; of a file's errors with the
    first ones.
    """

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command; a refusal becomes a CommandError."""
        try:
            return super().execute(*args, **options)
        except FileRefused as error:
            shown = [str(one) for one in error.errors[:SHOWN_ERRORS]]
            if (more := len(error.errors) - SHOWN_ERRORS) > 0:
                shown.append(f"and {more} more errors")
            raise CommandError("\n".join(shown)) from error
        except Refused as error:
            raise CommandError(str(error)) from error
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
