"""One way of ranking, in a process of its own: `python -m bench.ranking_methods METHOD …`.

`bench.ranking` starts one for each method, so that neither their memory nor their threads mix, and
asks them in turn over standard input and output, a line of JSON each. Each measures itself.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench.harness import anonymous_bytes
from bench.own_state import use_state
from bench.ranking_rows import MODEL, SPECIES_OF_A_GENUS, fill
from retrieval.ranking.files import Manifest, Mapped

BLOCK_ROWS: Final = 4096
SIMILAR: Final = 201
ANSWER: Final = "answer "
#: Of the kinds of filters, how many species each names.
FILTERS: Final = {"species": 1, "genus": SPECIES_OF_A_GENUS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer requests until the input ends."""
    parser = argparse.ArgumentParser(prog="python -m bench.ranking_methods", description=__doc__)
    parser.add_argument("method", choices=sorted(METHODS))
    parser.add_argument("folder", type=Path, help="the state folder, with queries.npy in it")
    parser.add_argument("--images", type=int, required=True)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True)
    method = METHODS[(options := parser.parse_args(arguments)).method](options)
    for line in sys.stdin:
        request = json.loads(line)
        answer = getattr(method, request.pop("do"))(**request)
        print(ANSWER + json.dumps(answer), flush=True)
    method.close()
    return 0


class Method:
    """What all methods have."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.name: str = options.method
        self.folder: Path = options.folder
        self.images: int = options.images
        self.dimension: int = options.dimension
        self.depth: int = min(options.depth, options.images)
        self.queries: NDArray[np.float16] = np.load(self.folder / "queries.npy")

    def memory(self) -> dict[str, int]:
        """The process's anonymous memory in bytes: what is its own, without mapped files."""
        return {"bytes": anonymous_bytes()}

    def close(self) -> None:
        """Leave nothing behind."""

    def keep(self, name: str, image_ids: Any, scores: Any) -> None:
        """Store a list for comparison."""
        folder = self.folder / "lists"
        folder.mkdir(exist_ok=True)
        np.savez(
            folder / f"{self.name}-{name}.npz",
            image_ids=np.asarray(image_ids, dtype=np.int64),
            scores=np.asarray(scores, dtype=np.float32),
        )


class Ranking(Method):
    """The application's own functions: by the database's scan, or through the packed matrix."""

    scan = True

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        use_state(self.folder / "var")
        from django.db import connection

        from retrieval.ranking import selectors as ranking

        self.connection = connection
        self.ranking = ranking

    @property
    def model(self) -> Any:
        """The model's row."""
        from retrieval.embedding.models import EmbeddingModel

        return EmbeddingModel.objects.get(name=MODEL)

    def rank(self, query: int) -> dict[str, float]:
        """The whole function, all of its SQL included, for one of the queries."""
        return self._timed(f"whole-{query}", self._query(query), limit=self.depth)

    def within(self, kind: str, query: int) -> dict[str, float]:
        """The same within the species of a filter of FILTERS."""
        from retrieval.corpus.models import Species

        picked = Species.objects.order_by("pk").values_list("pk", flat=True)[: FILTERS[kind]]
        return self._timed(
            f"{kind}-{query}", self._query(query), limit=self.images, species_ids=list(picked)
        )

    def similar(self, query: int) -> dict[str, float]:
        """The images that are most like one image."""
        from retrieval.embedding.models import Embedding

        stored = Embedding.objects.get(model=self.model, image=query + 1).vector
        limit = min(SIMILAR, self.images)
        return self._timed(f"similar-{query}", list(stored), limit=limit)

    def close(self) -> None:
        self.connection.close()

    def _query(self, number: int) -> list[float]:
        return [float(value) for value in self.queries[number]]

    def _timed(self, name: str, vector: list[float], **options: Any) -> dict[str, float]:
        model = self.model
        began = time.perf_counter()
        rows = self.ranking.rank_images(model=model, text_vector=vector, scan=self.scan, **options)
        seconds = time.perf_counter() - began
        self.keep(name, [row[0] for row in rows], [row[1] for row in rows])
        return {"seconds": seconds}


class Database(Ranking):
    """Makes the database, and has PostgreSQL scan it with pgvector."""

    def make(self) -> dict[str, float]:
        """Migrate and fill the database."""
        from django.core.management import call_command

        began = time.perf_counter()
        call_command("migrate", verbosity=0)
        fill(images=self.images, dimension=self.dimension)
        return {"seconds": time.perf_counter() - began}

    def copied(self) -> dict[str, float]:
        """A bare binary COPY of what a packed matrix is made of."""
        began = time.perf_counter()
        with self.connection.cursor() as cursor, open(os.devnull, "wb") as nowhere:
            cursor.copy_expert(
                "COPY (SELECT image_id, created_at, vector FROM retrieval_embedding"
                f" WHERE model_id = {int(self.model.pk)}) TO STDOUT (FORMAT binary)",
                nowhere,
            )
        return {"seconds": time.perf_counter() - began}

    def close(self) -> None:
        from annotator.embedded_postgres import embedded_postgres

        super().close()
        embedded_postgres(self.folder / "var").leave(wait=True)


class Matrix(Ranking):
    """The application's own functions through the packed matrix."""

    scan = False

    def pack(self) -> dict[str, float]:
        """Pack the matrix by the command, in a process of its own."""
        began = time.perf_counter()
        command = [sys.executable, "manage.py", "pack_embeddings", "--model", MODEL]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - began
        if self.ranking.ranking_method(self.model) != "matrix":
            raise RuntimeError("The matrix is packed, but doesn't rank.")
        return {"seconds": seconds}

    def many(self, count: int) -> dict[str, float]:
        """The first `count` queries at once."""
        vectors = [self._query(number) for number in range(count)]
        began = time.perf_counter()
        lists = self.ranking.rank_images_many(
            model=self.model, text_vectors=vectors, limit=self.depth
        )
        seconds = time.perf_counter() - began
        for number, rows in enumerate(lists):
            self.keep(f"many-{number}", [row[0] for row in rows], [row[1] for row in rows])
        return {"seconds": seconds}

    def one_by_one(self, count: int) -> dict[str, float]:
        """The first `count` queries one after the other."""
        return {"seconds": sum(self.rank(number)["seconds"] for number in range(count))}


class OnMatrix(Method):
    """What works on the same mapped matrix without the application."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.vectors, self.image_ids = mapped_matrix(self.folder / "var")


class Bare(OnMatrix):
    """The bare product of the matrix with one vector or several: the memory's and the processor's
    own speed.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        import torch

        self.torch = torch
        self.tensor = torch.from_numpy(self.vectors)

    def rank(self, query: int) -> dict[str, float]:
        """All scores in half precision, in no order."""
        vector = self.torch.from_numpy(_padded(self.queries[query], self.vectors.shape[1]))
        began = time.perf_counter()
        self.torch.mv(self.tensor, vector)
        return {"seconds": time.perf_counter() - began}

    def many(self, count: int) -> dict[str, float]:
        """All scores of `count` vectors in single precision, a block of rows at a time."""
        wide = _padded(self.queries[:count].astype(np.float32), self.vectors.shape[1])
        vectors = self.torch.from_numpy(np.ascontiguousarray(wide.T))
        began = time.perf_counter()
        for start in range(0, len(self.tensor), BLOCK_ROWS):
            self.torch.mm(self.tensor[start : start + BLOCK_ROWS].float(), vectors)
        return {"seconds": time.perf_counter() - began}


class Faiss(OnMatrix):
    """FAISS' flat index in half precision over the same vectors."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        import faiss

        quantizer = faiss.ScalarQuantizer
        self.index: Any = faiss.IndexScalarQuantizer(
            self.dimension, quantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        for start in range(0, len(self.vectors), BLOCK_ROWS):
            block = self.vectors[start : start + BLOCK_ROWS, : self.dimension]
            self.index.add(block.astype(np.float32))

    def rank(self, query: int) -> dict[str, float]:
        """The best rows with their scores."""
        vector = self.queries[query : query + 1].astype(np.float32)
        began = time.perf_counter()
        scores, rows = self.index.search(vector, self.depth)
        seconds = time.perf_counter() - began
        self.keep(f"whole-{query}", self.image_ids[rows[0]], scores[0])
        return {"seconds": seconds}


class Numpy(OnMatrix):
    """Brute force as evaluation code does it: single precision in memory."""

    def __init__(self, options: argparse.Namespace) -> None:
        super().__init__(options)
        self.wide = np.empty((len(self.vectors), self.dimension), dtype=np.float32)
        for start in range(0, len(self.vectors), BLOCK_ROWS):
            block = self.vectors[start : start + BLOCK_ROWS, : self.dimension]
            self.wide[start : start + BLOCK_ROWS] = block

    def rank(self, query: int) -> dict[str, float]:
        """The best rows by a partition, then sorted."""
        vector = self.queries[query].astype(np.float32)
        began = time.perf_counter()
        scores = self.wide @ vector
        best = np.argpartition(-scores, self.depth - 1)[: self.depth]
        order = best[np.lexsort((self.image_ids[best], -scores[best]))]
        seconds = time.perf_counter() - began
        self.keep(f"whole-{query}", self.image_ids[order], scores[order])
        return {"seconds": seconds}


def mapped_matrix(var_dir: Path) -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """The vectors (n, width) of the only matrix under a state folder, mapped, and the ids (n,) of
    their images. Raises LookupError where there isn't one of one piece.
    """
    folders = list((var_dir / "matrices").iterdir())
    manifest = Manifest.load(folders[0]) if len(folders) == 1 else None
    if manifest is None or len(manifest.runs) != 1:
        raise LookupError("There is no matrix in one piece.")
    [part] = Mapped.open(folders[0], manifest).parts
    return part.vectors, part.image_ids


def _padded(vectors: NDArray[Any], width: int) -> NDArray[Any]:
    """With zeros up to the width of the matrix's rows."""
    missing = width - vectors.shape[-1]
    return np.pad(vectors, [(0, 0)] * (vectors.ndim - 1) + [(0, missing)])


METHODS: Final[dict[str, Callable[[argparse.Namespace], Any]]] = {
    "database": Database,
    "matrix": Matrix,
    "bare": Bare,
    "faiss": Faiss,
    "numpy": Numpy,
}

if __name__ == "__main__":
    sys.exit(main())
