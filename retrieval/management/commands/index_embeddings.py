from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.template.defaultfilters import filesizeformat
from psycopg2.extensions import set_wait_callback
from psycopg2.extras import wait_select

from core.commands import ServiceCommand
from retrieval.search.indexing import (
    EF_CONSTRUCTION,
    M,
    index_build,
    index_drop,
)


class Command(ServiceCommand):
    help = (
        "Build an approximate index (HNSW) of a model's embeddings, for free-text search of large "
        "corpora without a packed matrix; the page says when results are approximate. Candidate "
        "lists never use it. The database works for minutes to hours (its view "
        "pg_stat_progress_create_index shows how far it is) and serves all else meanwhile; Ctrl-C "
        "ends that. With an index, new embeddings take many times longer to store: --drop it "
        "before a large import and build it again afterwards."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--model", default="", help="by default the model in use")
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

    def handle(self, *args: Any, **options: Any) -> None:
        # So that Ctrl-C cancels the statement that runs.
        set_wait_callback(wait_select)
        try:
            if options["drop"]:
                index_drop(model_name=options["model"])
                self.stdout.write("The index was dropped.")
                return
            index = index_build(
                model_name=options["model"],
                kind=options["kind"],
                m=options["m"],
                ef_construction=options["ef_construction"],
                memory=options["memory"],
            )
        finally:
            set_wait_callback(None)
        self.stdout.write(f"Indexed ({index.kind}), {filesizeformat(index.size_bytes)}")
