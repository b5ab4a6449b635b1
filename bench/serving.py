"""How fast the served application finds texts, and how much memory it takes:
`python -m bench.serving`, or with `--models ViT-H-14-378-quickgelu/random` a model of that size.

For each model there is an application over clustered vectors. The first search comes as soon as the
application reports that it is healthy; then new texts, the same texts again, and the texts encoded
in a separate process. Memory is the proportional set size (PSS) of all processes, PostgreSQL
included, when idle.
"""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from statistics import median
from typing import Any, Final

from bench import harness
from bench.rows import clustered, make_images, make_species, store_vectors
from tests.people import make_people
from tests.processes import Served

HEAD: Final = (
    "Model | First search | New text | Known text | Encoding | New text less its encoding"
    " | All processes | A web process | The encoder | Its processor time until ready"
)


def main(options: Any) -> tuple[bool, list[str]]:
    """The times and the memory of each model."""
    rows = [_row(model, options.images, options.texts) for model in options.models]
    return True, [harness.table(HEAD, rows)]


def _row(model: str, images: int, texts: int) -> list[str]:
    harness.log(f"{model} …")
    words = [f"a bird of the number {number}" for number in range(texts)]
    with harness.temporary_folder() as folder:
        with harness.process(folder, migrate=True) as call:
            token = call(_fill, model, images)
            encoding = call(_encode, model, words)
        served = Served(folder / "var", EMBEDDING_MODEL=model, LOG_LEVEL="WARNING")
        try:
            served.wait_healthy(600)
            [encoder] = served.find("encode_texts")
            start = encoder.cpu_times()
            first = harness.seconds(_search, served.url, token, "a bird")
            new, known = (
                median(harness.seconds(_search, served.url, token, text) for text in words)
                for _ in range(2)
            )
            time.sleep(5)
            sizes = (*_memory(served), encoder.memory_info().rss)
        finally:
            served.stop()
    times = (first, new, known, encoding, new - encoding)
    ready = f"{start.user + start.system:.1f} s"
    return [model, *map(harness.ms, times), *map(harness.megabytes, sizes), ready]


def _fill(model: str, images: int) -> str:
    """Embedded images, and the token of a person who may search."""
    from retrieval.embedding.embedding_models import embedding_model_get_or_create

    embedding_model = embedding_model_get_or_create(name=model)
    make_species(10)
    make_images(1, images)
    store_vectors(
        1,
        clustered(images, embedding_model.dimension, seed=8),
        embedding_model.dimension,
        model=model,
    )
    return make_people({"ann": "annotator"})["ann"]["token"]


def _encode(model: str, texts: Sequence[str]) -> float:
    from retrieval.encoding.text import load_text_encoder

    encoder = load_text_encoder(model)
    encoder.encode("a bird")
    return median(harness.seconds(encoder.encode, text) for text in texts)


def _search(url: str, token: str, text: str) -> None:
    address = f"{url}/api/search/?{urllib.parse.urlencode({'text': text})}"
    request = urllib.request.Request(address, headers={"Authorization": f"Token {token}"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.load(answer)["results"]


def _memory(served: Served) -> tuple[int, int]:
    """Bytes of all processes together, and the resident bytes of the largest web process."""
    parents = served.processes()
    processes = {
        process for parent in parents for process in (parent, *parent.children(recursive=True))
    }
    web = [process.memory_info().rss for process in served.find("gunicorn")]
    return sum(process.memory_full_info().pss for process in processes), max(web)


if __name__ == "__main__":
    title, packages = "Searching for texts, and memory", ("Django", "torch")
    harness.run(main, title, packages, models=("demo",), images=1000, texts=40)
