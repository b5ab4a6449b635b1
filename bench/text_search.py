"""How fast free-text search answers: `python -m bench.text_search`.

First the time of a text's vector: alone, four at once, and four in one forward pass. The
application doesn't use the last, since its vectors differ from those of single texts; the section
counts how many are equal after rounding to half precision. Then, over clustered vectors: the best
images by the packed matrix, by PostgreSQL's scan and by an approximate index of each kind, the
index's recall of the exact best, its time to build, and how much longer storing embeddings takes
with it. Whole requests are in `bench.serving`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any, Final

import numpy as np

from bench import harness
from bench.ranking import pack
from bench.rows import MODEL, clustered, fill_clustered, make_images, query_vectors, store_vectors

AT_ONCE: Final = 4
"""The number of threads of a web process."""
STORED: Final = 1000
"""Embeddings that are stored with and without an index."""
DIMENSION: Final = 256
TEXT_HEAD: Final = (
    f"Model | Alone | {AT_ONCE} at once, each | {AT_ONCE} in one pass, each"
    " | of these the same in half precision"
)
HEAD: Final = (
    "Images | Found by | Median | 95 % | × packed matrix | Recall | Built in | Size"
    f" | Storing {STORED:,} more, × without index"
)
INDEXES: Final = {
    "halfvec": "HNSW of the vectors",
    "binary": "HNSW of the signs, 10 × re-ranked",
}
Hits = list[tuple[int, float]]


def main(options: Any) -> tuple[bool, list[str]]:
    """Whether the matrix's lists are the database's, and how fast all are."""
    texts, rows, same = [], [], True
    for model in options.models:
        harness.log(f"{model}: texts …")
        with harness.temporary_folder() as folder, harness.process(folder) as call:
            *times, equal = call(_encoding, model, options.texts)
        texts.append([f"`{model}`", *map(harness.ms, times), f"{equal} of {options.texts}"])
    for images in options.images:
        with harness.database() as (_, call):
            size_rows, equal_lists = call(_searching, images, options.searches, options.depth)
        rows += size_rows
        same &= equal_lists
    compared = "the same bit for bit" if same else "**not the same**"
    return same, [
        "What a text's vector takes:",
        harness.table(TEXT_HEAD, texts),
        f"The best {options.depth} of clustered vectors of {DIMENSION} dimensions, one search "
        "after another; recall is the share of the exact best that is found:",
        harness.table(HEAD, rows),
        f"The lists of the packed matrix and of PostgreSQL's scan are {compared}.",
    ]


def _encoding(name: str, count: int) -> tuple[float, float, float, int]:
    """Seconds per text alone, several at once and in one pass, and how many of the last are equal;
    each way takes a third of the texts.
    """
    import torch

    from retrieval.encoding.loading import load_open_clip
    from retrieval.encoding.text import load_text_encoder

    encoder = load_text_encoder(name)
    model, _, tokenizer = load_open_clip(name, encoder.device)
    first, *texts = [f"several brown foxes at night by river {n}" for n in range(3 * count + 1)]

    def encode(text: str) -> np.ndarray:
        return encoder.encode(text).astype(np.float16)

    def batch(texts: Sequence[str]) -> np.ndarray:
        with torch.inference_mode():
            vectors = model.encode_text(tokenizer(texts).to(encoder.device)).float()
        return torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy().astype(np.float16)

    encode(first), batch([first])
    alone = median(harness.seconds(encode, text) for text in texts[:count])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        at_once = harness.seconds(lambda: list(pool.map(encode, texts[count : 2 * count])))
    rest = texts[2 * count :]
    parts = [rest[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]
    batched, vectors = harness.timed(lambda: np.concatenate([batch(part) for part in parts]))
    equal = sum(map(np.array_equal, vectors, map(encode, rest)))
    return alone, at_once / count, batched / count, equal


def _searching(images: int, searches: int, depth: int) -> tuple[list[list[Any]], bool]:
    """A row for each way of searching a corpus of one size, and whether the exact ways agree."""
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images
    from retrieval.search.approximate import rank_by_index
    from retrieval.search.indexing import index_build, index_drop

    harness.log(f"{images:,} images: filling a database …")
    fill_clustered(images, DIMENSION)
    model = EmbeddingModel.objects.get(name=MODEL)
    queries = query_vectors(searches + 1, DIMENSION).astype(float).tolist()
    lists: list[list[Hits]] = []
    usuals: list[float] = []
    rows: list[list[Any]] = []

    def search(name: str, rank: Callable[..., Hits], *about: str | None) -> None:
        """Add the row of a way of searching; its first search doesn't count."""
        where = {"model": model, "limit": min(depth, images)}
        searches = [harness.timed(rank, text_vector=query, **where) for query in queries]
        spent = [seconds for seconds, _ in searches[1:]]
        lists.append([hits for _, hits in searches])
        usuals.append(median(spent))
        pairs = zip(lists[0], lists[-1], strict=True)
        recall = np.mean([len(dict(best).keys() & dict(hits)) / len(best) for best, hits in pairs])
        times = map(harness.ms, (usuals[-1], float(np.percentile(spent, 95))))
        rows.append([images, name, *times, usuals[-1] / usuals[0], f"{recall:.3f}", *about])

    without = _storing(images)
    packing = pack()
    search("packed matrix, exact", rank_images, f"{packing:.1f} s", None, None)
    search("PostgreSQL's scan, exact", partial(rank_images, scan=True), None, None, None)
    for kind, name in INDEXES.items():
        harness.log(f"{images:,} images: an index of kind {kind} …")
        build: Any = partial(index_build, model_name=model.name)
        built, index = harness.timed(build, kind=kind)
        about = (f"{built:.1f} s", f"{index.size_bytes / 2**20:,.0f} MiB")
        storing = f"{_storing(images) / without:.1f}"
        search(name, partial(rank_by_index, index=index), *about, storing)
    index_drop(model_name=model.name)
    return rows, lists[0] == lists[1]


def _storing(images: int) -> float:
    """Seconds to store STORED embeddings of new images, which are removed again."""
    from django.db import transaction

    with transaction.atomic():
        make_images(images + 1, images + STORED)
        new = clustered(STORED, DIMENSION, seed=10)
        spent = harness.seconds(store_vectors, images + 1, new, DIMENSION)
        transaction.set_rollback(True)
    return spent


if __name__ == "__main__":
    packages = ("torch", "open-clip-torch", "pgvector", "numpy")
    sizes = {"images": (100_000,), "searches": 50, "depth": 50, "texts": 40}
    models = ("demo", "ViT-B-32/random")
    harness.run(main, "Text search", packages, **sizes, models=models)
