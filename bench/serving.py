"""How fast the served application finds texts, and how much memory it takes:
`python -m bench.serving`, or with `--models ViT-H-14-378-quickgelu/random` a model of that size.

For each model an application of its own over clustered vectors. The first search comes as soon as
the application says that it is healthy; then texts that it has not seen, the same texts again, and
the texts encoded in a process of their own. Memory is the proportional share (PSS) of all
processes, PostgreSQL included, when nothing is asked for.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import psutil

from bench import harness
from bench.rows import clustered, make_images, make_species, store_vectors
from tests.processes import Served

TITLE: Final = "Searching for texts, and memory"
HEAD: Final = (
    *("Model", "First search", "New text", "Known text", "Encoding", "New text less its encoding"),
    *("All processes", "A web process", "The encoder", "Its processor time until ready"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = harness.parse("serving", __doc__, arguments, models=("demo",), images=1000, texts=40)
    rows = [_row(model, options.images, options.texts) for model in options.models]
    print(harness.section(TITLE, options.command, ("Django", "torch"), harness.table(HEAD, rows)))
    return 0


def _row(model: str, images: int, texts: int) -> list[str]:
    harness.log(f"{model} …")
    words = [f"a bird of the number {number}" for number in range(texts)]
    with harness.temporary_folder("serving") as folder:
        with harness.process(folder / "var", migrate=True) as call:
            token = call(_fill, model, images)
            encoding = call(_encode, model, words)
        served = Served(folder / "var", EMBEDDING_MODEL=model, LOG_LEVEL="WARNING")
        try:
            served.wait_healthy(600)
            [encoder] = served.find("encode_texts")
            start = encoder.cpu_times()
            first = harness.seconds(_search, served.url, token, "a bird")
            new = median(harness.seconds(_search, served.url, token, one) for one in words)
            known = median(harness.seconds(_search, served.url, token, one) for one in words)
            time.sleep(5)
            sizes = (*_memory(served), encoder.memory_info().rss)
        finally:
            served.stop()
    times = (first, new, known, encoding, new - encoding)
    ready = f"{start.user + start.system:.1f} s"
    return [model, *map(harness.ms, times), *map(harness.megabytes, sizes), ready]


def _fill(model: str, images: int) -> str:
    """Embedded images, and the token of a person who may search."""
    from annotator.people.services import user_create
    from annotator.people.tokens import token_create
    from core.access import Role
    from retrieval.embedding.embedding_models import embedding_model_get_or_create

    made = embedding_model_get_or_create(name=model)
    make_species(10)
    make_images(1, images)
    store_vectors(1, clustered(images, made.dimension, seed=8), made.dimension, model=model)
    user = user_create(username="ann", role=Role.ANNOTATOR, password="tawny-owl-at-dusk-7")
    return token_create(user=user, name="bench", days=30)[1]


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
    parts = {process.pid: process for process in served.processes()}
    for process in list(parts.values()):
        parts |= {child.pid: child for child in process.children(recursive=True)}
    web = [one for one in parts.values() if "gunicorn" in " ".join(one.cmdline())]
    whole = sum(_pss(process) for process in parts.values())
    return whole, max(process.memory_info().rss for process in web)


def _pss(process: psutil.Process) -> int:
    rollup = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    return int(rollup.partition("\nPss:")[2].split()[0]) * 1024


if __name__ == "__main__":
    sys.exit(main())
