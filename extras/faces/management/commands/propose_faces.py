from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import CommandError

from core.access import Role
from core.commands import ServiceCommand
from core.commands.progress import Progress
from extras.faces.faces import faces_propose, opencv_detector


class Command(ServiceCommand):
    help = (
        "Flag images in which OpenCV's YuNet finds a face, for reviewers to decide on. The ONNX "
        "file of the model is given by its path; OpenCV is installed apart (extra “faces”)."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", type=Path, required=True, help="face_detection_yunet.onnx")
        parser.add_argument("--by", required=True, help="the reviewer who raises the flags")
        parser.add_argument("--confidence", type=float, default=0.8, help="least, 0 to 1 (0.8)")

    def handle(self, *args: Any, **options: Any) -> None:
        by = get_user_model().objects.filter(username=options["by"]).first()
        if by is None or by.role not in (Role.REVIEWER, Role.ADMIN):
            raise CommandError(f"{options['by']} is no reviewer or admin.")
        detect = opencv_detector(options["model"], options["confidence"])
        show = Progress("images", quiet=options["verbosity"] == 0)
        flagged = faces_propose(detect=detect, by=by, progress=show)
        show.close()
        self.stdout.write(f"{flagged:,} images flagged.")
