"""Run the application with a corpus, a model and queries to try it with."""

import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError
from django.db import connections

from annotator.environment import choose_model
from annotator.management.commands import serve
from annotator.processes.serving import Services, address
from demo.corpus import DEFAULT_COUNT
from demo.steps import demo_people

#: More than of a large corpus, so that the demo's certificate says something.
AUDIT_SHARE: Final = "0.1"


class Command(serve.Command):
    """demo [--images N]"""

    help = "As `serve`, with the demo's images, model, queries and people."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many images; fewer make a first start quicker."""
        parser.add_argument("--images", type=int, default=DEFAULT_COUNT)

    def handle(self, *args: Any, **options: Any) -> None:
        """Start everything, print how to log in, do the rest of the demo's steps, keep running."""
        model = os.environ.get("EMBEDDING_MODEL") or "demo"
        share = os.environ.get("RELEASE_AUDIT_SHARE", AUDIT_SHARE)
        services = Services(self.say, {"EMBEDDING_MODEL": model, "RELEASE_AUDIT_SHARE": share})
        with services.running() as works:
            if not works:
                return
            choose_model(Path(settings.VAR_DIR), model)
            self.say(f"\nInquire Annotator is at {address()} (Ctrl-C ends it)\n")
            for person in demo_people():
                self.say(f"  {person.name:<10} password {person.password}")
            self.say(f"\nLogs: {services.logs}\n")
            connections.close_all()
            status = services.run("demo_data", f"--images={options['images']}")
            if services.supervisor.ending:
                return
            if status != 0:
                raise CommandError(
                    "The demo could not be prepared; the lines above say why. "
                    f"Run it again to resume. Logs: {services.logs}"
                )
            services.run_on()
