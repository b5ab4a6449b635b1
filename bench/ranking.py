"""How fast the exact order is found: `python -m bench.ranking`.

For each size there is a database with clustered unit vectors in half precision. The first images
for a query's vector come from the application through its packed matrix, from pgvector's scan (the
same function without the matrix) and from FAISS's flat index in half precision; for comparison
there is a bare half-precision product, which sorts nothing. Each has its own process; the memory
should hold the vectors three times. The application's lists must be the same bit for bit, else the
exit status is 1.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from bench.rows import MODEL, SPECIES_OF_A_GENUS, fill_clustered, query_vectors

BLOCK: Final = 4096
SIMILAR: Final = 201
MANY_ROUNDS: Final = 3
CORPUS: Final = "The whole corpus"
ALIKE: Final = "The 200 images most like one"
#: What is ranked, and within how many species (0 for all).
KINDS: Final = {
    CORPUS: 0,
    "One species, 500 images": 1,
    "A genus, 2,500 images": SPECIES_OF_A_GENUS,
    ALIKE: 0,
}
WHOLE: Final = (
    "Images | First | Application | pgvector's scan | FAISS fp16 flat | Bare product"
    " | × FAISS | × bare product"
)
LISTS: Final = "Images | Same as the database's | Images that FAISS has too | At FAISS' rank"
OTHERS: Final = "Images | What | Application | Reference | Which | × reference"
COSTS: Final = (
    "Images | Packed a second | × bare COPY | Time for an image × smallest size's"
    " | Memory before | After single queries | After many at once"
)
TEXTS: Final = {
    WHOLE: "The first images of the whole corpus for one query, median of the rounds. The "
    "application's time is that of the whole function with all of its SQL; the bare product gives "
    "scores in half precision and no order.",
    LISTS: "The lists through the matrix compared with the database's and FAISS's.",
    OTHERS: "With filters, and many queries at once.",
    COSTS: "Packing the matrix from the database, how time grows with the corpus, and the "
    "anonymous memory of the process that ranks.",
}

Ranked = tuple[float, NDArray[np.int64], NDArray[Any]]
"""Seconds, image ids (k,) and their scores (k,)."""


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the matrix's lists are the same as the database's, and how fast all are."""
    tables: dict[str, list[list[Any]]] = {head: [] for head in TEXTS}
    right, each = True, []
    for images in options.sizes:
        same, whole = _measure(images, options, tables)
        right &= same
        each.append(whole / images)
        tables[COSTS][-1][3] = each[-1] / each[0]
    sections = [(TEXTS[head], harness.table(head, rows)) for head, rows in tables.items()]
    return right, [part for pair in sections for part in pair]


def _measure(images: int, options: Any, tables: dict[str, list[list[Any]]]) -> tuple[bool, float]:
    """Add rows of one size to the tables; returns whether all lists are the same, and the median
    seconds of the application for one query.
    """
    depth = min(options.depth, images)
    queries = query_vectors(max(options.rounds + 1, options.vectors), options.dimension)
    many = queries[: options.vectors]
    with (
        harness.database() as (folder, scan),
        harness.process(folder) as matrix,
        harness.process(folder) as faiss,
        harness.process(folder) as bare,
    ):
        harness.log(f"{images:,} images: filling a database and packing the matrix …")
        scan(fill_clustered, images, options.dimension)
        copied, packed = scan(_copy), matrix(pack)
        memory = [matrix(harness.anonymous_bytes)]

        def ranked(what: str, call: harness.Call, by_scan: bool, number: int) -> Ranked:
            query: Any = number + 1 if what == ALIKE else queries[number]
            limit = {CORPUS: depth, ALIKE: min(SIMILAR, images)}.get(what, images)
            result: Ranked = call(_ranked, query, limit, by_scan, KINDS[what])
            return result

        lists: dict[str, dict[str, list[Ranked]]] = {}
        for what in KINDS:
            harness.log(f"{images:,} images: {what} …")
            ways: dict[str, Callable[[int], Ranked]] = {
                "own": partial(ranked, what, matrix, False),
                "scan": partial(ranked, what, scan, True),
            }
            if what == CORPUS:
                ways["faiss"] = lambda n: faiss(_faiss, queries[n], depth)
                ways["bare"] = lambda n: bare(bare_product, queries[n])
            lists[what] = harness.in_turn(options.rounds, ways, warm_up=1)
        memory.append(matrix(harness.anonymous_bytes))
        harness.log(f"{images:,} images: {len(many)} queries at once …")
        many_ways = {
            "own": lambda _: matrix(_many, many, depth),
            "bare": lambda _: bare(_bare_many, many),
        }
        at_once = harness.in_turn(MANY_ROUNDS, many_ways)
        memory.append(matrix(harness.anonymous_bytes))
        singly = [ranked(CORPUS, matrix, False, number) for number in range(len(many))]
    whole = lists[CORPUS]
    own, by_scan, by_faiss, alone = map(usual, whole.values())
    shown = map(harness.ms, (own, by_scan, by_faiss, alone))
    tables[WHOLE].append([images, depth, *shown, own / by_faiss, own / alone])
    spent, product = median(run[0] for run in at_once["own"]), median(at_once["bare"])
    same = all(same_lists(run[1], singly) for run in at_once["own"]) and all(
        same_lists(by_way["own"], by_way["scan"]) for by_way in lists.values()
    )
    shared = _agreement(whole["own"], whole["faiss"])
    tables[LISTS].append([images, "bit for bit" if same else "**no**", *shared])
    at_once_name = f"{len(many)} queries at once"
    for what, ours, reference, which in (
        *((w, usual(f["own"]), usual(f["scan"]), "pgvector's scan") for w, f in lists.items()),
        (at_once_name, spent, sum(single[0] for single in singly), "one by one"),
        (at_once_name, spent, product, "the bare product in single precision"),
    ):
        row = [images, what, harness.ms(ours), harness.ms(reference), which, ours / reference]
        tables[OTHERS].append(row)
    cost = [images, f"{images / packed:,.0f} rows", packed / copied, None]
    tables[COSTS].append([*cost, *map(harness.megabytes, memory)])
    return same, own


def usual(lists: Sequence[Ranked]) -> float:
    """The median of the seconds."""
    return median(ranked[0] for ranked in lists)


def same_lists(first: Sequence[Ranked], second: Sequence[Ranked]) -> bool:
    """Whether lists are the same bit for bit, images and scores."""
    return all(
        np.array_equal(left[1], right[1]) and left[2].tobytes() == right[2].tobytes()
        for left, right in zip(first, second, strict=True)
    )


def _agreement(own: Sequence[Ranked], other: Sequence[Ranked]) -> list[str]:
    """The share of images that both lists have, and of ranks with the same image in both."""
    pairs = [(left[1], right[1]) for left, right in zip(own, other, strict=True)]
    images = np.mean([np.isin(left, right).mean() for left, right in pairs])
    return [f"{images:.2%}", f"{np.mean([(left == right).mean() for left, right in pairs]):.2%}"]


def _model() -> Any:
    from retrieval.embedding.models import EmbeddingModel

    return EmbeddingModel.objects.get(name=MODEL)


def as_arrays(spent: float, rows: Sequence[tuple[int, float]]) -> Ranked:
    """A list that the application returns, as arrays."""
    ids, scores = zip(*rows, strict=True)
    return spent, np.array(ids, dtype=np.int64), np.array(scores)


def _ranked(query: NDArray[np.float16] | int, limit: int, scan: bool, species: int) -> Ranked:
    """The list from the application's function, with all of its SQL, for a vector or an image's
    stored one, within the first `species` or the whole corpus (0).
    """
    from retrieval.corpus.models import Species
    from retrieval.embedding.models import Embedding
    from retrieval.ranking.selectors import rank_images

    model = _model()
    if isinstance(query, int):
        vector = list(Embedding.objects.get(model=model, image=query).vector)
    else:
        vector = query.astype(float).tolist()
    picked = list(Species.objects.order_by("pk").values_list("pk", flat=True)[:species])
    where = {"model": model, "limit": limit, "scan": scan, "species_ids": picked}
    return as_arrays(*harness.timed(rank_images, text_vector=vector, **where))


def _many(queries: NDArray[np.float16], limit: int) -> tuple[float, list[Ranked]]:
    """All queries at once, by the application."""
    from retrieval.ranking.selectors import rank_images_many

    vectors = queries.astype(float).tolist()
    spent, lists = harness.timed(
        rank_images_many, model=_model(), text_vectors=vectors, limit=limit
    )
    return spent, [as_arrays(0, rows) for rows in lists]


def _copy() -> float:
    """Seconds of a bare binary COPY of the rows of a packed matrix."""
    columns = "image_id, created_at, vector"
    rows = f"SELECT {columns} FROM retrieval_embedding WHERE model_id = {_model().pk}"
    return harness.copy(f"COPY ({rows}) TO STDOUT (FORMAT binary)", Path(os.devnull))


def pack() -> float:
    """Seconds of packing the matrix by the command. Raises RuntimeError if it isn't used."""
    from retrieval.ranking.selectors import ranking_method

    command = [sys.executable, "manage.py", "pack_embeddings", "--model", MODEL]
    spent = harness.seconds(partial(subprocess.run, command, check=True, stdout=sys.stderr))
    if ranking_method(_model()) != "matrix":
        raise RuntimeError("The matrix is packed, but doesn't rank.")
    return spent


@cache
def mapped() -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """The vectors (n, d) of the only packed matrix, and the ids (n,) of their images."""
    from django.conf import settings

    from retrieval.ranking.files import Manifest, MappedMatrix

    [folder] = (settings.VAR_DIR / "matrices").iterdir()
    manifest = Manifest.load(folder)
    assert manifest is not None
    [part] = MappedMatrix.open(folder, manifest).parts
    return part.vectors, part.image_ids


def bare_product(query: NDArray[np.float16]) -> Ranked:
    """The half-precision product of the packed matrix alone."""
    import torch

    matrix, vector = torch.from_numpy(mapped()[0]), torch.from_numpy(query)
    return harness.seconds(torch.mv, matrix, vector), np.empty(0, np.int64), np.empty(0)


def _bare_many(queries: NDArray[np.float16]) -> float:
    """Seconds of all scores in single precision, a block of rows at a time."""
    import torch

    matrix = torch.from_numpy(mapped()[0])
    wide = torch.from_numpy(np.ascontiguousarray(queries.T.astype(np.float32)))

    def product() -> None:
        for start in range(0, len(matrix), BLOCK):
            torch.mm(matrix[start : start + BLOCK].float(), wide)

    return harness.seconds(product)


@cache
def _faiss_index(dimension: int) -> Any:
    import faiss

    halves, product = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    index = faiss.IndexScalarQuantizer(dimension, halves, product)
    vectors = mapped()[0]
    for start in range(0, len(vectors), BLOCK):
        index.add(vectors[start : start + BLOCK].astype(np.float32))
    return index


def _faiss(query: NDArray[np.float16], depth: int) -> Ranked:
    index, vector = _faiss_index(len(query)), query[None].astype(np.float32)
    spent, (scores, rows) = harness.timed(index.search, vector, depth)
    return spent, mapped()[1][rows[0]], scores[0]


if __name__ == "__main__":
    packages = ("numpy", "numkong", "torch", "faiss-cpu", "pgvector")
    sizes = {"sizes": (200_000, 1_000_000, 5_000_000), "dimension": 1024, "depth": 5000}
    harness.run(main, "Ranking", packages, **sizes, rounds=7, vectors=250)
