"""How fast the order that learns is: `python -m bench.learning`.

A new revision is a direction fitted to the judgments, the exact score of every image of the pool
and the order by it. Beside each the bare half-precision product, which sorts nothing, in the same
round; the pool's moments are computed once and known before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bench import harness
from labeling.learning.ridge import direction, learned_order, pool_moments, pool_scores

JUDGED: Final = (20, 100, 500)
AIMS: Final = {5_000: 0.3, 200_000: 1.0}
BLOCK: Final = 1 << 14
HEAD: Final = (
    *("Images", "Judged", "Fit", "Scores and order", "Revision", "× bare product", "Bare product"),
    *("Moments, once a pool", "Aim"),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark."""
    options = harness.parse(
        "learning", __doc__, arguments, sizes=tuple(AIMS), dimension=1024, rounds=7
    )
    rows: list[list[str]] = []
    for images in options.sizes:
        harness.log(f"{images:,} images …")
        with harness.temporary_folder("learning") as folder:
            vectors = _mapped(folder / "vectors", images, options.dimension)
            rows += _rows(vectors, options.rounds)
    print(
        harness.section(
            "The order that learns",
            options.command,
            ("numpy", "numkong", "torch"),
            f"{options.dimension:,} dimensions, half precision, mapped from a file; medians of "
            f"{options.rounds} rounds.",
            harness.table(HEAD, rows),
        )
    )
    return 0


def _mapped(path: Path, images: int, dimension: int) -> NDArray[np.float16]:
    """Unit vectors (n, d) around a few centers, in a file."""
    random = np.random.default_rng(3)
    centers = random.normal(size=(50, dimension))
    vectors = np.memmap(path, np.float16, "w+", shape=(images, dimension))
    for start in range(0, images, BLOCK):
        count = min(BLOCK, images - start)
        block = centers[random.integers(50, size=count)] + random.normal(size=(count, dimension))
        vectors[start : start + count] = block / np.linalg.norm(block, axis=1, keepdims=True)
    return vectors


def _rows(vectors: NDArray[np.float16], rounds: int) -> list[list[str]]:
    import torch

    images = len(vectors)
    image_ids = np.arange(images)
    text = vectors[0].copy()
    moments = pool_moments([vectors], text)
    once = harness.seconds(pool_moments, [vectors], text)
    matrix, query = torch.from_numpy(vectors), torch.from_numpy(text)

    def fit(judged: int) -> None:
        direction(moments, text, vectors[1 : judged + 1], np.arange(judged) % 10 == 0)

    ways = {
        "product": lambda _: harness.seconds(torch.mv, matrix, query),
        "order": lambda _: harness.seconds(
            lambda: learned_order(pool_scores(vectors, text), image_ids)
        ),
    } | {f"fit {judged}": partial(_fit_seconds, fit, judged) for judged in JUDGED}
    usual = {
        name: median(spent) for name, spent in harness.in_turn(rounds, ways, warm_up=1).items()
    }
    rows = []
    for judged in JUDGED:
        whole = usual[f"fit {judged}"] + usual["order"]
        aim = AIMS.get(images)
        reached = "" if aim is None else "reached" if whole <= aim else "not reached"
        rows.append(
            [
                f"{images:,}",
                f"{judged}",
                harness.ms(usual[f"fit {judged}"]),
                harness.ms(usual["order"]),
                harness.ms(whole),
                f"{whole / usual['product']:.1f}",
                harness.ms(usual["product"]),
                harness.ms(once),
                f"{harness.ms(aim)}: {reached}" if aim else "",
            ]
        )
    return rows


def _fit_seconds(fit: Callable[[int], None], judged: int, _round: int) -> float:
    return harness.seconds(fit, judged)


if __name__ == "__main__":
    sys.exit(main())
