"""Make a person who may log in."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError

from annotator.services import UserExists, user_create
from core.access import Role


class Command(BaseCommand):
    """create_user NAME --role researcher|annotator|reviewer|admin --password P"""

    help = "Creates a user and prints the user's API token, alone on standard output."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name, role, password and whether to change a user who exists."""
        parser.add_argument("name")
        parser.add_argument("--role", choices=Role.values, default=Role.ANNOTATOR)
        parser.add_argument("--password", required=True)
        parser.add_argument(
            "--update",
            action="store_true",
            help="give a user who exists this role and password, and a new token",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create or update, then print the token."""
        try:
            _user, token = user_create(
                username=options["name"],
                role=Role(options["role"]),
                password=options["password"],
                update=options["update"],
            )
        except UserExists as error:
            raise CommandError(f"{error} Add --update to change that user.") from error
        except ValidationError as error:
            lines = [f"{name}: {' '.join(texts)}" for name, texts in error.message_dict.items()]
            raise CommandError("; ".join(lines)) from error
        self.stdout.write(token.key)
