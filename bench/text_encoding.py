"""How long a text's vector takes: `python -m bench.text_encoding MODEL TEXTS`, for
`bench.text_search`; prints one JSON object, times in seconds a text.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

import numpy as np

from bench.figures import percentile

AT_ONCE: Final = 4
"""As many as a web process has threads."""
_WORDS: Final = (
    ("two", "three", "many", "several"),
    ("small", "brown", "young", "sleeping", "wet", "old"),
    ("frogs", "birds", "bears", "spiders", "fish", "foxes", "snails"),
    ("at night", "in the snow", "under water", "on a leaf", "in flight", "by a river"),
)


def texts(count: int) -> list[str]:
    """`count` different texts of three to eight words."""
    made = []
    for number in range(count):
        rest, words = number, []
        for choices in _WORDS:
            rest, place = divmod(rest, len(choices))
            words.append(choices[place])
        made.append(" ".join(words) + (f" number {rest}" if rest else ""))
    return made


def main(arguments: Sequence[str]) -> int:
    """Measure one model."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    import django

    django.setup()
    name, count = arguments[0], int(arguments[1])
    print(json.dumps(measure(name, texts(3 * count + 1))))
    return 0


def measure(name: str, asked: Sequence[str]) -> dict[str, Any]:
    """What one model takes; a third of the texts for each way, after one that doesn't count."""
    from retrieval.embedding.text_vectors import TextVectors
    from retrieval.encoding.encoders import load_encoder

    encoder, vectors = load_encoder(name), TextVectors()
    vectors.vector(name, asked[0])
    count = (len(asked) - 1) // 3
    one, four, batched = (asked[1 + part * count :][:count] for part in range(3))
    alone = [_seconds(partial(vectors.vector, name, text)) for text in one]
    again = [_seconds(partial(vectors.vector, name, text)) for text in one]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        at_once = _seconds(lambda: list(pool.map(lambda text: vectors.vector(name, text), four)))
    batches = [batched[start : start + AT_ONCE] for start in range(0, count, AT_ONCE)]
    found: list[np.ndarray] = []
    _in_one_pass(encoder, batches[-1])
    in_batches = _seconds(lambda: found.extend(_in_one_pass(encoder, batch) for batch in batches))
    equal = [
        np.array_equal(row, vectors.vector(name, text))
        for text, row in zip(batched, np.concatenate(found), strict=True)
    ]
    return {
        "alone": percentile(alone, 0.5),
        "remembered": percentile(again, 0.5),
        "at once": at_once / count,
        "batched": in_batches / count,
        "equal": sum(equal),
        "texts": count,
    }


def _in_one_pass(encoder: Any, batch: Sequence[str]) -> np.ndarray:
    """The batch's vectors (n, d) by one forward pass, rounded as they would be used."""
    import torch

    from retrieval.encoding.unit_vectors import half_rounded

    with torch.inference_mode():
        encoded = encoder._model.encode_text(encoder._tokenizer(batch).to(encoder.device))
    rows = torch.nn.functional.normalize(encoded.float(), dim=-1).cpu().numpy()
    return np.array([half_rounded(row) for row in rows], dtype=np.float16)


def _seconds(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    run()
    return time.perf_counter() - began


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
