"""The command `import_boxes`."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.files import open_regular
from extras.boxes.services import boxes_import
from extras.boxes.views import said_of
from labeling.queries.models import Query


class Command(ServiceCommand):
    """Reads the file and imports it for one query."""

    help = (
        "Import boxes for a complete query from a COCO file, as Label Studio and CVAT write them. "
        "Images are found by their paths or file names. Run twice, it changes nothing."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE.json")
        parser.add_argument("--query", type=int, required=True, metavar="NUMBER")
        parser.add_argument("--annotator", required=True, metavar="NAME", help="whose they become")
        parser.add_argument("--category", default="", help="only the boxes of this category")

    def handle(self, *args: Any, file: Path, annotator: str, **options: Any) -> None:
        person = get_user_model().objects.filter(username=annotator).first()
        if person is None:
            raise CommandError(f"There is no user {annotator!r}; make one with create_user.")
        query = Query.objects.filter(query_id=options["query"]).first()
        if query is None:
            raise CommandError(f"There is no query {options['query']}.")
        try:
            with open_regular(file) as opened:
                data = opened.read()
        except OSError as error:
            raise CommandError(f"{file}: {error.strerror}") from error
        report = boxes_import(query=query, data=data, by=person, category=options["category"])
        for said in said_of(report):
            self.stdout.write(said)
