"""How fast free-text search answers: `python -m bench.text_search`.

What a text's vector takes: alone, four asked for at once, and four in one forward pass, which the
application doesn't use, since its vectors are not those of the texts alone; how many are, after
rounding to half precision, is counted. Then, over clustered vectors: the best images by the packed
matrix, by PostgreSQL's scan and by an approximate index of each kind, what the index finds of the
exact best, what it takes to build, and how much longer embeddings take to store while it is there;
and the whole request of the page.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product
from statistics import median
from typing import Any, Final

import numpy as np

from bench import harness
from bench.rows import (
    MODEL,
    clustered,
    fill_clustered,
    make_images,
    query_vectors,
    store_vectors,
)

AT_ONCE: Final = 4
"""As many as a web process has threads."""
STORED: Final = 1000
"""Embeddings that are stored with and without an index."""
TEXT_MODEL: Final = "demo"
TEXT_HEAD: Final = (
    *("Model", "Alone", f"{AT_ONCE} at once, each", f"{AT_ONCE} in one pass, each"),
    "of these the same in half precision",
)
HEAD: Final = (
    *("Images", "Found by", "Median", "95 %", "× packed matrix", "Recall", "Built in", "Size"),
    f"Storing {STORED:,} more, × without index",
)
INDEXES: Final = {
    "halfvec": "HNSW of the vectors",
    "binary": "HNSW of the signs, 10 × re-ranked",
}
_WORDS: Final = (
    ("two", "three", "many", "several"),
    ("small", "brown", "young", "sleeping", "wet", "old"),
    ("frogs", "birds", "bears", "spiders", "fish", "foxes", "snails"),
    ("at night", "in the snow", "under water", "on a leaf", "in flight", "by a river"),
)
Hits = list[tuple[int, float]]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; 1 if the matrix's lists are not the database's."""
    options = harness.parse(
        "text_search",
        __doc__,
        arguments,
        images=(100_000,),
        dimension=256,
        searches=50,
        depth=50,
        models=(TEXT_MODEL, "ViT-B-32/random"),
        texts=40,
    )
    texts, rows, requests, same = [], [], [], True
    with harness.temporary_folder("text-search") as folder:
        for model in options.models:
            harness.log(f"{model}: texts …")
            with harness.process(folder / "texts") as call:
                alone, at_once, batched, equal = call(_encoding, model, options.texts)
            times = map(harness.ms, (alone, at_once, batched))
            texts.append([f"`{model}`", *times, f"{equal} of {options.texts}"])
        for images in options.images:
            with harness.process(folder / str(images), migrate=True) as call:
                found, equal_lists, line = call(_searching, images, options)
            rows += found
            requests.append(line)
            same &= equal_lists
    compared = "the same bit for bit" if same else "**not the same**"
    print(
        harness.section(
            "Text search",
            options.command,
            ("torch", "open-clip-torch", "pgvector", "numpy"),
            "What a text's vector takes:",
            harness.table(TEXT_HEAD, texts),
            f"The best {options.depth} of clustered vectors of {options.dimension:,} dimensions, "
            "one search after another; recall is the share of the exact best that is found:",
            harness.table(HEAD, rows),
            *requests,
            f"The lists of the packed matrix and of PostgreSQL's scan are {compared}.",
        )
    )
    return 0 if same else 1


def _texts(count: int) -> list[str]:
    """Different texts of three to eight words."""
    words = [" ".join(words) for words in product(*_WORDS)]
    return [
        words[number % len(words)] + f" number {number}" * (number >= len(words))
        for number in range(count)
    ]


def _encoding(name: str, count: int) -> tuple[float, float, float, int]:
    """Seconds a text alone, several at once and in one pass, and how many of the last are equal; a
    third of the texts for each way.
    """
    import torch

    from retrieval.encoding.loading import load_open_clip
    from retrieval.encoding.text import load_text_encoder

    encoder = load_text_encoder(name)
    model, _, tokenizer = load_open_clip(name, encoder.device)
    first, *texts = _texts(3 * count + 1)

    def one(text: str) -> np.ndarray:
        return encoder.encode(text).astype(np.float16)

    def batch(texts: Sequence[str]) -> np.ndarray:
        with torch.inference_mode():
            vectors = model.encode_text(tokenizer(texts).to(encoder.device)).float()
        return torch.nn.functional.normalize(vectors, dim=-1).cpu().numpy().astype(np.float16)

    one(first), batch([first])
    alone = median(harness.seconds(one, text) for text in texts[:count])
    with ThreadPoolExecutor(AT_ONCE) as pool:
        at_once = harness.seconds(lambda: list(pool.map(one, texts[count : 2 * count])))
    rest = texts[2 * count :]
    began = time.perf_counter()
    found = [batch(rest[start : start + AT_ONCE]) for start in range(0, count, AT_ONCE)]
    batched = time.perf_counter() - began
    equal = map(np.array_equal, np.concatenate(found), map(one, rest))
    return alone, at_once / count, batched / count, sum(equal)


def _searching(images: int, options: Any) -> tuple[list[list[str]], bool, str]:
    """A row for each way of searching a corpus of one size, whether the exact ones find the same,
    and what is said of whole requests.
    """
    from django.core.management import call_command

    from core.jobs.services import Slice, job_slice_run
    from retrieval.embedding.models import EmbeddingModel
    from retrieval.ranking.selectors import rank_images, ranking_method
    from retrieval.search.approximate import rank_by_index
    from retrieval.search.index_build import index_drop
    from retrieval.search.indexing import index_job_create
    from retrieval.search.vector_indexes import vector_index

    harness.log(f"{images:,} images: filling a database …")
    fill_clustered(images, options.dimension)
    model = EmbeddingModel.objects.get(name=MODEL)
    depth = min(options.depth, images)
    queries = query_vectors(options.searches + 1, options.dimension).astype(float).tolist()
    exact: list[Hits] = []
    rows: list[list[str]] = []

    def search(name: str, rank: Callable[..., Hits], *about: str) -> list[Hits]:
        """Add the row of a way, whose first search doesn't count; returns its lists."""
        lists, spent = [], []
        for query in queries:
            began = time.perf_counter()
            lists.append(rank(model=model, text_vector=query, limit=depth))
            spent.append(time.perf_counter() - began)
        usual, late = median(spent[1:]), float(np.percentile(spent[1:], 95))
        usuals.append(usual)
        pairs = zip(lists, exact or lists, strict=True)
        recall = np.mean([len({i for i, _ in one} & {i for i, _ in best}) for one, best in pairs])
        times = [harness.ms(usual), harness.ms(late), f"{usual / usuals[0]:.2f}"]
        rows.append([f"{images:,}", name, *times, f"{recall / depth:.3f}", *about])
        return lists

    usuals: list[float] = []
    without = _storing(images, options.dimension)
    packing = harness.seconds(partial(call_command, "pack_embeddings", model=model.name))
    if ranking_method(model) != "matrix":
        raise RuntimeError("The matrix is packed, but doesn't rank.")
    by_matrix = search("packed matrix, exact", rank_images, f"{packing:.1f} s", "", "")
    exact = search("PostgreSQL's scan, exact", partial(rank_images, scan=True), "", "", "")
    for kind, name in INDEXES.items():
        harness.log(f"{images:,} images: an index of kind {kind} …")
        job = index_job_create(model_name=model.name, kind=kind)  # type: ignore[arg-type]
        began = time.perf_counter()
        while job_slice_run(job_id=job.pk) is Slice.MORE:
            pass
        built = time.perf_counter() - began
        index = vector_index(model)
        if index is None or not index.ready or index.kind != kind:
            raise RuntimeError(f"No index of kind {kind} was built.")
        storing = _storing(images, options.dimension)
        about = (f"{built:.1f} s", f"{index.size_bytes / 2**20:,.0f} MiB")
        by_index: Callable[..., Hits] = partial(rank_by_index, index=index)
        search(name, by_index, *about, f"{storing / without:.1f}")
    index_drop(model=model)
    return rows, by_matrix == exact, _requests(model, images, options)


def _storing(images: int, dimension: int) -> float:
    """Seconds to store STORED embeddings of new images, which are taken out again."""
    from django.db import transaction

    with transaction.atomic():
        make_images(images + 1, images + STORED)
        new = clustered(STORED, dimension, seed=10)
        spent = harness.seconds(store_vectors, images + 1, new, dimension)
        transaction.set_rollback(True)
    return spent


def _requests(model: Any, images: int, options: Any) -> str:
    """What whole requests of a page that types take: each text for the first time, and again."""
    from django.conf import settings
    from django.contrib.auth import get_user_model
    from django.test import Client

    from retrieval.encoding.model_specs import describe

    if describe(TEXT_MODEL).dimension != options.dimension:
        return f"{images:,} images: no whole request, `{TEXT_MODEL}` has another dimension."
    harness.log(f"{images:,} images: whole requests …")
    # The made-up vectors pass for those of the text model's images.
    model.name = settings.EMBEDDING_MODEL = TEXT_MODEL
    model.save(update_fields=["name"])
    client = Client(headers={"host": "127.0.0.1"}, REMOTE_ADDR="127.0.0.1")
    client.force_login(get_user_model().objects.create(username="bench", role="annotator"))

    def request(text: str) -> None:
        answer = client.get("/search/", {"text": text, "part": "results"})
        if answer.status_code != 200 or b"<figure>" not in answer.content:
            raise RuntimeError(f"The search was answered {answer.status_code}.")

    new, known = (
        median([harness.seconds(request, text) for text in _texts(options.searches + 1)][1:])
        for _ in range(2)
    )
    return (
        f"{images:,} images: the page's whole request for 60 results through the packed matrix, "
        f"text and model `{TEXT_MODEL}` included, takes {harness.ms(new)} for a new text and "
        f"{harness.ms(known)} for a known one (medians)."
    )


if __name__ == "__main__":
    sys.exit(main())
