from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.text import printable
from retrieval.corpus.models import ImageRoot
from retrieval.images.roots import image_root_get_or_create
from retrieval.importing.choices import ImportChoices
from retrieval.importing.fields import NO_FILE
from retrieval.importing.records import Refusal
from retrieval.importing.services import ImportReport, import_images


class Command(ServiceCommand):
    help = (
        "Import images into the corpus. PATH is a COCO file (such as iNat24's train.json), a table "
        "(.csv, .tsv, .txt, .xlsx, .ods, .jsonl, .parquet) or a folder with one sub-folder per "
        "species. What a table's columns are is guessed and listed. Run it again when the data set "
        "has changed or the import was stopped: nothing is duplicated. The exit code is 1 if any "
        "record was refused."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("path", metavar="PATH")
        parser.add_argument(
            "--dataset",
            help="the name by which the images are recognized again; by default the file's folder "
            "and name (photos/train), or the folder's name",
        )
        place = parser.add_mutually_exclusive_group()
        place.add_argument(
            "--in-place",
            action="store_true",
            help="leave the images in place, below the folder of the COCO file, without reading or "
            "copying them",
        )
        place.add_argument(
            "--root",
            metavar="LOCATION",
            help="the same for images below another folder, or in an S3 bucket: s3://bucket/prefix",
        )
        order = parser.add_mutually_exclusive_group()
        order.add_argument(
            "--day-first", action="store_true", help="03/04/2024 in a table is the third of April"
        )
        order.add_argument(
            "--month-first",
            action="store_true",
            help="03/04/2024 in a table is the fourth of March",
        )
        parser.add_argument("--quiet", action="store_true", help="only refusals and the report")

    def handle(self, *args: Any, **options: Any) -> None:
        checking = Progress("bytes", title="checking the file", quiet=options["quiet"])
        show = Progress("images", quiet=options["quiet"])

        def progress(done: int, total: int) -> None:
            checking.close()
            show(done, total)

        def on_refusal(refusal: Refusal) -> None:
            show.close()
            self.stdout.write(f"{refusal.effect} {refusal}")

        try:
            report = import_images(
                path=options["path"],
                dataset=options["dataset"],
                choices=ImportChoices(day_first=_day_first(options)),
                root=_root(options),
                progress=progress,
                checking=checking,
                on_refusal=on_refusal,
            )
        except OSError as error:
            raise CommandError(
                f"{error}. What was imported so far stays; run this again to continue."
            ) from error
        finally:
            checking.close()
            show.close()
        if report.columns and not options["quiet"]:
            self.stdout.write(printable(f"columns: {', '.join(report.columns)}"))
        self.stdout.write(
            f"{report.dataset}: {report.added} added, {report.updated} updated, "
            f"{report.skipped} skipped, {report.refused_count} refused"
            + (f", {report.left_out_count} fields left out" if report.left_out_count else "")
            + (f", {report.renamed_count} names of files matched" if report.renamed_count else "")
            + (f"; other data sets have {report.copies} of the files" if report.copies else "")
            + _understood(report)
        )
        if report.unused:
            self.stdout.write(printable(f"not used: {', '.join(report.unused)}"))
        if any(one["reason"] == NO_FILE for one in report.reasons.listed()):
            folder = Path(options["path"]).resolve().parent
            self.stdout.write(
                f"Files are looked for below {folder}. Where they lie elsewhere, name it with "
                "--root, which leaves them there."
            )
        if report.refused_count:
            raise CommandError(f"{report.refused_count} refused; each is listed above.")


def _understood(report: ImportReport) -> str:
    """What the names of an import say, where some are no species."""
    numbers = report.understood.numbers()
    if not (numbers["folder_names"] or numbers["taxon_texts"]):
        return ""
    counts = [
        (numbers["species"], "species", "species"),
        (numbers["without_species"], "without a species", "without a species"),
        (numbers["folder_names"], "folder name", "folder names"),
        (numbers["taxon_texts"], "other taxon", "other taxa"),
    ]
    told = (f"{count} {one if count == 1 else more}" for count, one, more in counts if count)
    return f"; {', '.join(told)}"


def _day_first(options: dict[str, Any]) -> bool | None:
    """The order of day and month that is given, or None."""
    return options["day_first"] if options["day_first"] or options["month_first"] else None


def _root(options: dict[str, Any]) -> ImageRoot | None:
    """Return the root of images left in place, or None if they are copied."""
    location = options["root"]
    if options["in_place"]:
        path = Path(options["path"]).resolve()
        location = str(path if path.is_dir() else path.parent)
    return image_root_get_or_create(location=location) if location else None
