"""Run the whole application on this machine."""

from typing import Any

from django.core.management.base import BaseCommand
from django.urls import reverse

from annotator.processes.serving import Services, address


class Command(BaseCommand):
    """serve"""

    help = "Runs the database, the worker and the web server until Ctrl-C or SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        """Start everything, say where it is, and run on."""
        services = Services(self.say, {})
        with services.running() as works:
            if works:
                self.say(f"Inquire Annotator is at {address()} (Ctrl-C ends it)")
                if token := services.first_admin:
                    path = reverse("first-admin", args=[token])
                    self.say("Nobody has an account yet. Make the first admin here, once:")
                    self.say(f"    {address()}{path}")
                self.say(f"Logs: {services.logs}")
                services.run_on()

    def say(self, text: str) -> None:
        """Write one line at once, also into a pipe."""
        self.stdout.write(text)
        self.stdout.flush()
