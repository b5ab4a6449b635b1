"""How fast the exact order is found: `python -m bench.ranking`.

For each size a database of its own with clustered unit vectors in half precision. The first images
for a query's vector come from the application through its packed matrix, from pgvector's scan (the
same function without the matrix), from FAISS' flat index in half precision, and from single
precision in NumPy; beside them a bare half-precision product, which sorts nothing. Each is a
process of its own. The application's lists must be the same bit for bit, else the exit status is 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import psutil
from numpy.typing import NDArray

from bench import harness
from bench.rows import MODEL, SPECIES_OF_A_GENUS, fill_clustered, query_vectors

BLOCK: Final = 4096
SIMILAR: Final = 201
NAMES: Final = {
    "matrix": "the application's matrix",
    "scan": "pgvector's scan",
    "faiss": "FAISS",
    "bare": "the bare product",
    "numpy": "NumPy",
}
#: What each holds of memory, in matrices of halves.
HELD: Final = {"scan": 1.4, "matrix": 1, "bare": 0, "faiss": 1, "numpy": 2}
KINDS: Final = {
    "One species, 500 images": 1,
    "A genus, 2,500 images": SPECIES_OF_A_GENUS,
    "The 200 images most like one": 0,
}
WHOLE: Final = (
    *("Images", "First", "Application", "pgvector's scan", "FAISS fp16 flat", "Bare product"),
    *("NumPy float32", "× FAISS", "× bare product"),
)
LISTS: Final = ("Images", "Same as the database's", "Images that FAISS has too", "At FAISS' rank")
OTHERS: Final = ("Images", "What", "Application", "Reference", "Which", "× reference")
COSTS: Final = (
    *("Images", "Packed a second", "× bare COPY", "Time for an image × smallest size's"),
    *("Memory before", "After single queries", "After many at once"),
)

Ranked = tuple[float, NDArray[np.int64], NDArray[Any]]
"""Seconds, image ids (k,) and their scores (k,)."""
Call = Callable[..., Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the matrix's lists are not the database's."""
    options = harness.parse(
        "ranking",
        __doc__,
        arguments,
        sizes=(200_000, 1_000_000, 5_000_000),
        dimension=1024,
        depth=5000,
        rounds=7,
        vectors=250,
    )
    tables: dict[Sequence[str], list[list[str]]] = {WHOLE: [], LISTS: [], OTHERS: [], COSTS: []}
    notes: list[str] = []
    same, each = True, []
    for images in options.sizes:
        with harness.temporary_folder("ranking") as folder:
            if shutil.disk_usage(folder).free < 6 * images * options.dimension + 2**31:
                notes.append(f"- {images:,} images are left out: the disk has no room for them.")
                continue
            whole, bitwise = _measure(folder, images, options, tables, notes)
        same &= bitwise
        each.append(whole / images)
        tables[COSTS][-1][3] = f"{each[-1] / each[0]:.2f}"
    texts = (
        "The first images of the whole corpus for one query, median of the rounds. The "
        "application's time is that of the whole function with all of its SQL; the bare product "
        "gives scores in half precision and no order.",
        "The lists through the matrix compared with the database's and FAISS's.",
        "With filters, and many queries at once.",
        "Packing the matrix from the database, how time grows with the corpus, and the anonymous "
        "memory of the process that ranks.",
    )
    parts = [
        part
        for text, (head, rows) in zip(texts, tables.items(), strict=True)
        for part in (text, harness.table(head, rows))
    ]
    packages = ("numpy", "numkong", "torch", "faiss-cpu", "pgvector")
    print(harness.section("Ranking", options.command, packages, *parts, *notes))
    return 0 if same and each else 1


def _measure(
    folder: Path, images: int, options: Any, tables: Mapping[Any, list[list[str]]], notes: list[str]
) -> tuple[float, bool]:
    """Add rows of one size to the tables; the median seconds of the application for one query, and
    whether its lists are all the same.
    """
    depth, size = min(options.depth, images), f"{images:,}"
    queries = query_vectors(max(options.rounds + 1, options.vectors), options.dimension)
    many = queries[: options.vectors]
    with (
        harness.process(folder / "var", migrate=True) as scan,
        harness.process(folder / "var") as matrix,
    ):
        harness.log(f"{size} images: filling a database and packing the matrix …")
        scan(fill_clustered, images, options.dimension)
        copied, packed = scan(_copy), matrix(pack)
        memory = [matrix(harness.anonymous_bytes)]

        def ranked(call: Call, by_scan: bool, species: int | None, number: int) -> Ranked:
            found: Ranked
            if species is None:
                found = call(_ranked, queries[number], depth, by_scan, 0)
            elif species:
                found = call(_ranked, queries[number], images, by_scan, species)
            else:
                found = call(_ranked, number + 1, min(SIMILAR, images), by_scan, 0)
            return found

        def both(species: int | None) -> dict[str, Callable[[int], Ranked]]:
            return {
                "matrix": partial(ranked, matrix, False, species),
                "scan": partial(ranked, scan, True, species),
            }

        lists: dict[str, list[Ranked]] = {}
        for group in _groups(images * options.dimension * 2, size, notes):
            harness.log(f"{size} images: ranking by {', '.join(group)} …")
            with ExitStack() as others:
                ways = {}
                for name in group:
                    if name in ("matrix", "scan"):
                        ways[name] = both(None)[name]
                        continue
                    call = others.enter_context(harness.process(folder / "var"))
                    ways[name] = lambda number, call=call, run=_OUTSIDE[name]: call(  # type: ignore[misc]
                        run, queries[number], depth
                    )
                lists |= harness.in_turn(options.rounds, ways, warm_up=1)
        memory.append(matrix(harness.anonymous_bytes))
        usual = {name: median(one[0] for one in found) for name, found in lists.items()}
        same = _same(lists["matrix"], lists["scan"])
        harness.log(f"{size} images: filters and {len(many)} queries at once …")
        for what, species in KINDS.items():
            found = harness.in_turn(options.rounds, both(species), warm_up=1)
            same &= _same(found["matrix"], found["scan"])
            own, other = (median(one[0] for one in found[name]) for name in ("matrix", "scan"))
            tables[OTHERS].append([size, what, *_beside(own, other, NAMES["scan"])])
        spent, at_once = matrix(_many, many, depth)
        memory.append(matrix(harness.anonymous_bytes))
        singly = [ranked(matrix, False, None, number) for number in range(len(many))]
        same &= _same(at_once, singly)
        with harness.process(folder / "var") as bare:
            product = bare(_bare_many, many)
    one_by_one = sum(one[0] for one in singly)
    for which, other in (
        ("one by one", one_by_one),
        ("the bare product in single precision", product),
    ):
        tables[OTHERS].append([size, f"{len(many)} queries at once", *_beside(spent, other, which)])
    times = [_text(usual.get(name)) for name in ("matrix", "scan", "faiss", "bare", "numpy")]
    ratios = [
        f"{usual['matrix'] / usual[name]:.2f}" if name in usual else "–"
        for name in ("faiss", "bare")
    ]
    tables[WHOLE].append([size, f"{depth:,}", *times, *ratios])
    shared = _agreement(lists["matrix"], lists["faiss"]) if "faiss" in lists else ["–", "–"]
    tables[LISTS].append([size, "bit for bit" if same else "**no**", *shared])
    cost = [size, f"{images / packed:,.0f} rows", f"{packed / copied:.2f}", ""]
    tables[COSTS].append([*cost, *map(harness.megabytes, memory)])
    return usual["matrix"], same


def _groups(matrix: int, size: str, notes: list[str]) -> list[list[str]]:
    """The methods that are measured in turn with each other: all, or where the memory doesn't hold
    them together one after another, which is noted.
    """
    room = 0.8 * psutil.virtual_memory().available / matrix
    if sum(HELD.values()) <= room:
        return [list(HELD)]
    groups = [["scan"], ["matrix", "bare"], ["faiss"], ["numpy"]]
    fit = [group for group in groups if HELD[group[0]] <= room]
    in_order = ", then ".join(" with ".join(NAMES[name] for name in group) for group in fit)
    notes.append(f"- {size} images: the memory doesn't hold all methods' vectors: {in_order}.")
    return fit


def _same(one: Sequence[Ranked], other: Sequence[Ranked]) -> bool:
    """Whether lists are the same bit for bit, images and scores."""
    return all(
        np.array_equal(left[1], right[1]) and left[2].tobytes() == right[2].tobytes()
        for left, right in zip(one, other, strict=True)
    )


def _agreement(own: Sequence[Ranked], other: Sequence[Ranked]) -> list[str]:
    """The share of images that both lists have, and of ranks at which they have the same one."""
    pairs = [(left[1], right[1]) for left, right in zip(own, other, strict=True)]
    images = np.mean([np.isin(left, right).mean() for left, right in pairs])
    ranks = np.mean([(left == right).mean() for left, right in pairs])
    return [f"{images:.2%}", f"{ranks:.2%}"]


def _beside(own: float, other: float, which: str) -> list[str]:
    return [_text(own), _text(other), which, f"{own / other:.2f}"]


def _text(spent: float | None) -> str:
    return "–" if spent is None else harness.ms(spent)


def _model() -> Any:
    from retrieval.embedding.models import EmbeddingModel

    return EmbeddingModel.objects.get(name=MODEL)


def _arrays(spent: float, rows: Sequence[tuple[int, float]]) -> Ranked:
    ids, scores = zip(*rows, strict=True)
    return spent, np.array(ids, dtype=np.int64), np.array(scores)


def _ranked(query: NDArray[np.float16] | int, limit: int, scan: bool, species: int) -> Ranked:
    """The application's own function, all of its SQL included, for a vector or the stored one of an
    image, within the first `species` or the whole corpus (0).
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
    began = time.perf_counter()
    rows = rank_images(model=model, text_vector=vector, limit=limit, scan=scan, species_ids=picked)
    return _arrays(time.perf_counter() - began, rows)


def _many(queries: NDArray[np.float16], limit: int) -> tuple[float, list[Ranked]]:
    """All queries at once, by the application."""
    from retrieval.ranking.selectors import rank_images_many

    model, vectors = _model(), queries.astype(float).tolist()
    began = time.perf_counter()
    lists = rank_images_many(model=model, text_vectors=vectors, limit=limit)
    spent = time.perf_counter() - began
    return spent, [_arrays(0, rows) for rows in lists]


def _copy() -> float:
    """Seconds of a bare binary COPY of what a packed matrix is made of."""
    from django.db import connection

    statement = (
        "COPY (SELECT image_id, created_at, vector FROM retrieval_embedding"
        f" WHERE model_id = {_model().pk}) TO STDOUT (FORMAT binary)"
    )
    with connection.cursor() as cursor, open(os.devnull, "wb") as nowhere:
        return harness.seconds(cursor.copy_expert, statement, nowhere)


def pack() -> float:
    """Seconds of packing the matrix by the command. Raises RuntimeError where it doesn't rank."""
    from retrieval.ranking.selectors import ranking_method

    command = [sys.executable, "manage.py", "pack_embeddings", "--model", MODEL]
    spent = harness.seconds(partial(subprocess.run, command, check=True, stdout=sys.stderr))
    if ranking_method(_model()) != "matrix":
        raise RuntimeError("The matrix is packed, but doesn't rank.")
    return spent


@cache
def _mapped() -> tuple[NDArray[np.float16], NDArray[np.int64]]:
    """The vectors (n, d) of the only packed matrix, and the ids (n,) of their images."""
    from django.conf import settings

    from retrieval.ranking.files import Manifest, Mapped

    [folder] = (settings.VAR_DIR / "matrices").iterdir()
    manifest = Manifest.load(folder)
    assert manifest is not None
    [part] = Mapped.open(folder, manifest).parts
    return part.vectors, part.image_ids


def _bare(query: NDArray[np.float16], _depth: int) -> Ranked:
    import torch

    matrix, vector = torch.from_numpy(_mapped()[0]), torch.from_numpy(query)
    return harness.seconds(torch.mv, matrix, vector), np.empty(0, np.int64), np.empty(0)


def _bare_many(queries: NDArray[np.float16]) -> float:
    """Seconds of all scores in single precision, a block of rows at a time."""
    import torch

    matrix = torch.from_numpy(_mapped()[0])
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
    vectors = _mapped()[0]
    for start in range(0, len(vectors), BLOCK):
        index.add(vectors[start : start + BLOCK].astype(np.float32))
    return index


def _faiss(query: NDArray[np.float16], depth: int) -> Ranked:
    index, vector = _faiss_index(len(query)), query[None].astype(np.float32)
    began = time.perf_counter()
    scores, rows = index.search(vector, depth)
    spent = time.perf_counter() - began
    return spent, _mapped()[1][rows[0]], scores[0]


@cache
def _wide(dimension: int) -> NDArray[np.float32]:
    return _mapped()[0].astype(np.float32)


def _numpy(query: NDArray[np.float16], depth: int) -> Ranked:
    """Brute force as evaluation code does it: a partition, then sorted."""
    wide, ids, vector = _wide(len(query)), _mapped()[1], query.astype(np.float32)
    began = time.perf_counter()
    scores = wide @ vector
    best = np.argpartition(-scores, depth - 1)[:depth]
    order = best[np.lexsort((ids[best], -scores[best]))]
    spent = time.perf_counter() - began
    return spent, ids[order], scores[order]


_OUTSIDE: Final = {"bare": _bare, "faiss": _faiss, "numpy": _numpy}


if __name__ == "__main__":
    sys.exit(main())
