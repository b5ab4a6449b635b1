"""`manage.py import_benchmark DIR`, or hf:ORG/NAME."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from core.commands import ServiceCommand
from core.commands.progress import Progress
from core.storage import shown
from releases.hub import SCHEME, benchmark_fetched
from releases.importing.services import (
    NO_IMAGES,
    benchmark_import,
    benchmark_import_begin,
)
from releases.making.progress import Step
from releases.models import Release
from retrieval.importing.records import Refusal


class Command(ServiceCommand):
    """Make a release of an existing benchmark."""

    help = (
        "Make a release of the benchmark in DIR, in INQUIRE's layout: …queries_val.csv and "
        "…queries_test.csv (or …queries.csv with a column split), and …annotations.csv with "
        "query_id, image_id and, if there is one, image_path. Where DIR also holds …judgments.csv "
        "and inquire_rerank/val.csv and test.csv, as releases made here do, the judged images that "
        "aren't relevant and the fixed lists for re-ranking are taken too. Or in BEIR's layout: "
        "queries.jsonl, qrels/validation.tsv (or dev.tsv), qrels/test.tsv and, if there is one, "
        "corpus.jsonl, where every id is a whole number. Extras read other layouts. "
        "hf:org/name instead of DIR is a data set of the Hugging Face Hub, such as publish_release "
        "makes, and hf:org/name@revision an earlier state of it. Runs are "
        "scored on it as on a release made here. Whatever is wrong is named by file, line and "
        "field, and nothing is written. A name that was imported before gets its next version."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("directory", metavar="DIR")
        parser.add_argument(
            "--name", default="", help="by default the name of the directory, or that on the Hub"
        )
        parser.add_argument(
            "--images",
            metavar="DIR",
            help="a folder below which image_path is found: images that the corpus doesn't have "
            "are brought in; or 'none': no image of the corpus here is the benchmark's",
        )
        parser.add_argument(
            "--dataset",
            "--data-set",
            dest="data_set",
            metavar="NAME",
            default="",
            help="the data set of the corpus whose ids the image ids are, for files that name no "
            "image_path; import_images says what its data sets are called. Without a path or this, "
            "no image of the corpus is taken for the benchmark's",
        )
        parser.add_argument(
            "--rerank-model",
            metavar="NAME",
            default="",
            help="make the fixed lists for re-ranking from the corpus's first 100 images in this "
            "model's order; the corpus must hold all images of the benchmark and be embedded with "
            "it",
        )
        parser.add_argument(
            "--test-labels",
            choices=Release.TestLabels.values,
            default="",
            help="who sees the labels of the test split: hidden, reviewers and admins alone, or "
            "public, researchers too (default: public where the files name relevant images of test "
            "queries, since who has the files has them)",
        )
        parser.add_argument(
            "--replace-nothing", action="store_true", help="refuse a name that is here already"
        )
        parser.add_argument(
            "--background", action="store_true", help="check the files, and let a worker do it"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        place = str(options["directory"])
        with ExitStack() as stack:
            if not place.startswith(SCHEME):
                directory = Path(place)
            elif options["background"]:
                raise CommandError("What is on the Hub is imported without --background.")
            else:
                directory = stack.enter_context(benchmark_fetched(place.removeprefix(SCHEME)))
            self._begin(directory, options)

    def _begin(self, directory: Path, options: dict[str, Any]) -> None:
        arguments = {
            "directory": directory,
            "name": options["name"],
            "images": _folder(options["images"]),
            "use_corpus": options["images"] != NO_IMAGES,
            "data_set": options["data_set"],
            "rerank_model": options["rerank_model"],
            "test_labels": options["test_labels"],
            "new_only": options["replace_nothing"],
        }
        try:
            if options["background"]:
                release = benchmark_import_begin(**arguments)
                self.stdout.write(f"{release} is being imported: job {release.job_id}.")
            else:
                self._import(arguments)
        except OSError as error:
            raise CommandError(f"Can't read the benchmark: {error}") from error

    def _import(self, arguments: dict[str, Any]) -> None:
        show = Progress()

        def report(steps: Sequence[Step]) -> None:
            running = next((step for step in steps if step.state == "running"), None)
            if running is not None:
                show(running.done, running.total or None, running.title)

        def on_refusal(refusal: Refusal) -> None:
            show.close()
            self.stdout.write(f"refused {refusal}")

        try:
            result = benchmark_import(**arguments, report=report, on_refusal=on_refusal)
        finally:
            show.close()
        release, images = result.release, result.matches
        self.stdout.write(
            f"{release}: {release.val_queries} val and {release.test_queries} test queries, "
            f"{release.positives} relevant pairs ({result.rows} rows, {result.duplicates} of them "
            f"repeated), {result.images} images"
        )
        if result.added:
            self.stdout.write(f"{result.added} images were brought into the corpus.")
        self.stdout.write(
            f"Images of the corpus: {images.by_path} matched by path, {images.by_data_set} by data "
            f"set name; not in the corpus: {images.absent}"
        )
        if images.others:
            self.stdout.write(
                f"{images.others} of the ids that aren't in the corpus are also ids of images "
                "here. Nothing says that those are the same, so they aren't taken for the "
                "benchmark's."
            )
        self.stdout.write(f"Its files are in {shown(release.directory)}")


def _folder(images: str | None) -> Path | None:
    if images is None or images == NO_IMAGES:
        return None
    folder = Path(images)
    if not folder.is_dir():
        raise CommandError(f"There is no folder {folder}; --images takes a folder or 'none'.")
    return folder
