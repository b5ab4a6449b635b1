"""Search in a corpus of one size: `python -m bench.text_search_size FOLDER …`, a process of its own
for `bench.text_search`; prints one JSON object, times in seconds.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bench.figures import percentile
from bench.own_state import tell, use_state
from bench.ranking_rows import MODEL, fill, query_vectors
from bench.text_encoding import texts

STORED: Final = 1000
"""Embeddings that are stored with and without an index."""
TEXT_MODEL: Final = "demo"

Hits = list[tuple[int, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fill a database, and search it in each way."""
    parser = argparse.ArgumentParser(prog="python -m bench.text_search_size", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--searches", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True)
    options = parser.parse_args(arguments)
    use_state(options.folder)
    from django.db import connection

    from annotator.embedded_postgres import embedded_postgres

    try:
        print(json.dumps(Size(options).measure()))
    finally:
        connection.close()
        embedded_postgres(options.folder).leave(wait=True)
    return 0


class Size:
    """The measurements at one size."""

    def __init__(self, options: argparse.Namespace) -> None:
        from django.core.management import call_command

        self.images: int = options.images
        self.dimension: int = options.dimension
        self.depth: int = min(options.depth, options.images)
        self.queries = query_vectors(options.searches + 1, options.dimension).tolist()
        tell(f"{self.images:,} images: filling a database …")
        call_command("migrate", verbosity=0)
        fill(images=self.images, dimension=self.dimension)
        from retrieval.embedding.models import EmbeddingModel
        from retrieval.encoding.model_specs import describe

        self.model = EmbeddingModel.objects.get(name=MODEL)
        # Where the text model's vectors are as long, the made-up ones pass for its images.
        self.with_text = describe(TEXT_MODEL).dimension == self.dimension
        if self.with_text:
            self.model.name = TEXT_MODEL
            self.model.save(update_fields=["name"])
        self.exact: list[Hits] = []

    def measure(self) -> dict[str, Any]:
        """What each way of searching takes, and what it finds of the exact best."""
        from retrieval.ranking.selectors import rank_images

        found: dict[str, Any] = {"stored": {"none": self._store()}}
        tell(f"{self.images:,} images: exact …")
        found["scan"] = self._searched(self._ranker(scan=True))
        pack_began = time.perf_counter()
        self._pack()
        found["pack"] = time.perf_counter() - pack_began
        found["matrix"] = self._searched(self._ranker(scan=False))
        by_matrix, by_scan = (
            [
                rank_images(model=self.model, text_vector=query, limit=self.depth, scan=scan)
                for query in self.queries
            ]
            for scan in (False, True)
        )
        found["same"] = by_matrix == by_scan
        self.exact = by_scan
        for kind in ("halfvec", "binary"):
            tell(f"{self.images:,} images: an index of kind {kind} …")
            found[kind] = self._index(kind)
            found["stored"][kind] = self._store()
        self._drop()
        found["requests"] = self._requests()
        return found

    def _ranker(self, *, scan: bool) -> Callable[[list[float]], Hits]:
        from retrieval.ranking.selectors import rank_images, ranking_method

        if not scan and ranking_method(self.model) != "matrix":
            raise RuntimeError("The matrix is packed, but doesn't rank.")
        return lambda query: rank_images(
            model=self.model, text_vector=query, limit=self.depth, scan=scan
        )

    def _searched(self, rank: Callable[[list[float]], Hits]) -> dict[str, Any]:
        """Times of one search after another; the first doesn't count. The share of the exact best
        that is found, where they are known.
        """
        seconds, recalls = [], []
        for number, query in enumerate(self.queries):
            began = time.perf_counter()
            hits = rank(query)
            seconds.append(time.perf_counter() - began)
            if self.exact:
                recalls.append(len(set(hits) & set(self.exact[number])) / self.depth)
        return {
            "median": percentile(seconds[1:], 0.5),
            "late": percentile(seconds[1:], 0.95),
            "recall": float(np.mean(recalls)) if recalls else 1.0,
        }

    def _index(self, kind: str) -> dict[str, Any]:
        from core.jobs.services import Slice, job_slice_run
        from retrieval.search.approximate import rank_by_index
        from retrieval.search.indexing import index_job_create
        from retrieval.search.vector_indexes import vector_index

        job = index_job_create(model_name=self.model.name, kind=kind)  # type: ignore[arg-type]
        began = time.perf_counter()
        while job_slice_run(job_id=job.pk) is Slice.MORE:
            pass
        seconds = time.perf_counter() - began
        index = vector_index(self.model)
        if index is None or not index.ready or index.kind != kind:
            raise RuntimeError(f"No index of kind {kind} was built.")
        searched = self._searched(
            lambda query: rank_by_index(
                model=self.model, index=index, text_vector=query, limit=self.depth
            )
        )
        return {**searched, "build": seconds, "bytes": index.size_bytes}

    def _store(self) -> float:
        """Seconds to store STORED embeddings of new images, which are taken out again."""
        from django.db import transaction

        from core.locks import transaction_lock
        from retrieval.corpus.models import Image
        from retrieval.embedding.embedding_models import embedding_model_lock
        from retrieval.embedding.store import embeddings_copy

        vectors = np.array(query_vectors(STORED, self.dimension))
        ids = np.arange(STORED, dtype=np.int64) + self.images + 1
        with transaction.atomic():
            Image.objects.bulk_create(
                Image(
                    id=image_id,
                    dataset="more",
                    source_id=str(image_id),
                    file_name=f"{image_id}.jpg",
                    sha256=f"{image_id:064x}",
                    format="JPEG",
                    width=500,
                    height=375,
                    size_bytes=60000,
                )
                for image_id in ids.tolist()
            )
            transaction_lock(embedding_model_lock(self.model), shared=True)
            began = time.perf_counter()
            embeddings_copy(model=self.model, image_ids=ids, vectors=vectors, fresh=True)
            seconds = time.perf_counter() - began
            transaction.set_rollback(True)
        return seconds

    def _pack(self) -> None:
        from django.core.management import call_command

        call_command("pack_embeddings", "--model", self.model.name, stdout=sys.stderr)

    def _drop(self) -> None:
        from retrieval.search.index_build import index_drop

        index_drop(model=self.model)

    def _requests(self) -> dict[str, float] | None:
        """Whole requests of a page that types: each text for the first time, and each again; None
        where the text model's vectors are of another length.
        """
        from django.conf import settings
        from django.contrib.auth import get_user_model
        from django.test import Client

        from core.access import Role

        if not self.with_text:
            return None
        tell(f"{self.images:,} images: whole requests …")
        settings.EMBEDDING_MODEL = TEXT_MODEL
        client = Client(headers={"host": "127.0.0.1"}, REMOTE_ADDR="127.0.0.1")
        client.force_login(
            get_user_model().objects.create(username="bench", role=Role.ANNOTATOR.value)
        )

        def request(text: str) -> float:
            began = time.perf_counter()
            answer = client.get("/search/", {"text": text, "part": "results"})
            seconds = time.perf_counter() - began
            if answer.status_code != 200 or b"<figure>" not in answer.content:
                raise RuntimeError(f"The search was answered {answer.status_code}.")
            return seconds

        asked = texts(len(self.queries))
        new = [request(text) for text in asked][1:]
        known = [request(text) for text in asked][1:]
        return {"new": percentile(new, 0.5), "known": percentile(known, 0.5)}


if __name__ == "__main__":
    sys.exit(main())
