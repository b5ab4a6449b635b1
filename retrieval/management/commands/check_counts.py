from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from retrieval.corpus.counts import image_counts_check

SHOWN = 20


class Command(BaseCommand):
    help = (
        "Count the images of the corpus and of every species, and compare with the numbers that "
        "pages show."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--repair", action="store_true", help="correct wrong numbers")

    def handle(self, *args: Any, repair: bool, **options: Any) -> None:
        wrong = image_counts_check(repair=repair)
        for count in wrong[:SHOWN]:
            name = count.species or "The whole corpus"
            self.stdout.write(f"{name}: {count.stored:,} stored, {count.counted:,} counted")
        if len(wrong) > SHOWN:
            self.stdout.write(f"… and {len(wrong) - SHOWN:,} more")
        if wrong and not repair:
            raise CommandError(f"{len(wrong):,} numbers are wrong. --repair corrects them.")
        self.stdout.write("Corrected." if wrong else "All numbers of images are right.")
