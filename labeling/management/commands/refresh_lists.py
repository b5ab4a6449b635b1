"""The command `refresh_lists`."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand

from labeling.candidates.services import lists_refresh_stale


class Command(BaseCommand):
    """Requests new lists for stale ones."""

    help = (
        "Have new candidate lists made for the open queries whose list is missing, failed or of "
        "another text, species filter or other models: run it after a change of the model or of "
        "POOL_MODELS. The judgments are kept."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        self.stdout.write(f"{lists_refresh_stale(by=None)} lists requested")
