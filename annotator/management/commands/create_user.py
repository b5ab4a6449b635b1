"""Make a person who may log in."""

from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError

from annotator.people.services import UserExists, user_create
from annotator.people.tokens import LIFETIMES, token_create
from core.access import Role
from core.commands import ServiceCommand


class Command(ServiceCommand):
    """create_user NAME --role researcher|annotator|reviewer|admin --password P [--token]"""

    help = "Creates a user."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Name, role, password, and whether to change a user who exists and to make a token."""
        parser.add_argument("name")
        parser.add_argument("--role", choices=Role.values, default=Role.ANNOTATOR)
        parser.add_argument("--password", required=True)
        parser.add_argument(
            "--update",
            action="store_true",
            help="give a user who exists this role and password, which ends their API tokens",
        )
        parser.add_argument(
            "--token",
            action="store_true",
            help="make an API token for a year, and print it alone on standard output",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Create or update; with --token print a token."""
        try:
            user = user_create(
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
        if options["token"]:
            _token, text = token_create(user=user, name="create_user", days=max(LIFETIMES))
            self.stdout.write(text)
