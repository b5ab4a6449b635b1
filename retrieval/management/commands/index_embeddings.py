from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.template.defaultfilters import filesizeformat

from core.commands import ServiceCommand
from core.commands.waiting import add_wait_argument, wait_for_job
from core.jobs.models import Job
from retrieval.search.indexing import (
    EF_CONSTRUCTION,
    M,
    index_drop_job_create,
    index_job_create,
)


class Command(ServiceCommand):
    help = (
        "Build an approximate index (HNSW) of a model's embeddings by a job of the workers, for "
        "free-text search of large corpora without a packed matrix; the page says when results are "
        "approximate. Candidate lists never use it. With an index, new embeddings take many times "
        "longer to store: --drop it before a large import and build it again afterwards."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", default="", help="by default the setting EMBEDDING_MODEL")
        parser.add_argument(
            "--kind",
            choices=["halfvec", "binary"],
            help="index the vectors, or the signs of their coordinates with re-ranking by the "
            "vectors: smaller, and faster to build; by default halfvec up to 1,000,000 embeddings",
        )
        parser.add_argument("--m", type=int, default=M, help="neighbors in a layer (%(default)s)")
        parser.add_argument(
            "--ef-construction",
            type=int,
            default=EF_CONSTRUCTION,
            help="candidates examined for each neighbor (%(default)s)",
        )
        parser.add_argument(
            "--memory",
            type=int,
            metavar="MIB",
            help="for building the graph, by default what it needs up to 2048; with less than "
            "it needs, building is many times slower",
        )
        parser.add_argument("--drop", action="store_true", help="drop the existing index")
        add_wait_argument(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        job = (
            index_drop_job_create(model_name=options["model"])
            if options["drop"]
            else index_job_create(
                model_name=options["model"],
                kind=options["kind"],
                m=options["m"],
                ef_construction=options["ef_construction"],
                memory=options["memory"],
            )
        )
        self.stdout.write(f"Job {job.pk}: {job.title}")
        if options["wait"] and wait_for_job(
            job, self.stdout, starting="looking", also=lambda job: job.result.get("phase", "")
        ):
            self._report(job)

    def _report(self, job: Job) -> None:
        if job.state != Job.State.DONE:
            raise CommandError(f"Job {job.pk} {job.state}. {job.error}")
        if job.params.get("drop"):
            self.stdout.write("The index was dropped.")
            return
        self.stdout.write(
            f"{job.total} embeddings indexed ({job.params['kind']}), "
            f"{filesizeformat(job.result['bytes'])}"
        )
