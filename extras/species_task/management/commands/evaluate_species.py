"""`manage.py evaluate_species MODEL`."""

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from core.commands import ServiceCommand
from core.commands.waiting import add_wait_argument, wait_for_job
from core.files import open_regular
from core.jobs.models import Job
from extras.species_task.models import SpeciesRun
from extras.species_task.services import species_run_begin, training_images_read
from retrieval.embedding.models import EmbeddingModel


class Command(ServiceCommand):
    """Have a model name the species of the corpus' images by a worker."""

    help = (
        "Let MODEL name the species of each image that it has embedded, zero-shot, among all "
        "species or those of the image's look-alike group (CrypticBio's task)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("model", help="the name of an embedding model of the corpus")
        parser.add_argument("--scope", choices=SpeciesRun.Scope.values, default="all")
        parser.add_argument("--naming", choices=SpeciesRun.Naming.values, default="sci")
        parser.add_argument("--language", default="en", help="of vernacular names (en)")
        parser.add_argument("--prompt", default="a photo of {}.")
        parser.add_argument(
            "--training-images",
            type=Path,
            metavar="FILE.csv",
            help="scientific_name,images: how many of each species MODEL was trained on",
        )
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        model = EmbeddingModel.objects.filter(name=options["model"]).first()
        if model is None:
            raise CommandError(f"{options['model']} has embedded no image yet.")
        chosen = {name: options[name] for name in ("scope", "naming", "language", "prompt")}
        training = None
        if file := options["training_images"]:
            try:
                with open_regular(file) as lines:
                    training = training_images_read(lines, name=file.name)
            except OSError as error:
                raise CommandError(f"{file}: {error.strerror}") from error
        run = species_run_begin(model=model, training_images=training, **chosen)
        if training is not None:
            self.stdout.write(f"{len(run.training_images):,} of its species are in the corpus.")
        job = run.job
        assert job is not None
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if options["wait"] and wait_for_job(job, self.stdout, starting="reading embeddings"):
            if job.state != Job.State.DONE:
                raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
            run.refresh_from_db()
            self.stdout.write(
                f"{run.correct:,} of {run.images:,} images are named right, "
                f"{run.correct_5:,} by one of the five nearest."
            )
