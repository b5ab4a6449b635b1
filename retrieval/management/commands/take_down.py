"""`manage.py take_down IMAGE …`."""

from argparse import ArgumentParser
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from core.access import Role, at_least
from core.commands import ServiceCommand
from retrieval.corpus.models import Image
from retrieval.takedown.services import image_take_down


class Command(ServiceCommand):
    """take_down IMAGE … --reason TEXT --by ADMIN"""

    help = (
        "Remove images for good: files, thumbnails and embeddings, and their bytes from made "
        "releases. Images with the same file go too."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("images", nargs="+", type=int, metavar="IMAGE", help="an image's id")
        parser.add_argument("--reason", required=True, help="kept for the record")
        parser.add_argument("--by", required=True, help="the name of the admin who decides")

    def handle(self, *args: Any, **options: Any) -> None:
        by = get_user_model().objects.filter(username=options["by"]).first()
        if by is None or not at_least(by, Role.ADMIN):
            raise CommandError(f"{options['by']} is no admin.")
        images = Image.objects.in_bulk(options["images"])
        if unknown := [str(pk) for pk in options["images"] if pk not in images]:
            raise CommandError(f"There is no image {', '.join(unknown)}; nothing was taken down.")
        for image in images.values():
            removed = image_take_down(image=image, reason=options["reason"], by=by)
            self.stdout.write(
                f"image {image.pk}: taken down with {len(removed) - 1} equal ones"
                if removed
                else f"image {image.pk}: was taken down already"
            )
            if image.root is not None:
                self.stdout.write(f"Its file stays at {image.root.location}/{image.file_name}")
