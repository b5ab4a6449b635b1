"""What the demo model learns from: rendered training scenes, their facts and their captions."""

from __future__ import annotations

import gzip
import itertools
import os
import random
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from demo.attributes import Scene, scene
from demo.captions import FACTS, Caption, write_caption
from demo.draw.compose import render
from demo.queries import FORBIDDEN_CAPTIONS

TRAINING_SEED = 71
_CHUNK = 256


def training_scene(index: int) -> Scene:
    """Return scene ``index`` of the training partition."""
    return scene(index, TRAINING_SEED, partition="training")


def _render_chunk(task: tuple[str, int, int, int, int]) -> int:
    path, start, stop, count, side = task
    pixels = np.lib.format.open_memmap(
        path, mode="r+", shape=(count, side, side, 3), dtype=np.uint8
    )
    for index in range(start, stop):
        pixels[index] = np.asarray(render(training_scene(index), side))
    pixels.flush()
    return stop


def rendered(cache: Path, count: int, side: int) -> np.ndarray:
    """Return the pixels of the first ``count`` training scenes, uint8 (count, side, side, 3).

    They are rendered once, by all processors, into a file under ``cache``.
    """
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"scenes-{TRAINING_SEED}-{count}-{side}.npy"
    if not done.exists():
        part = done.with_suffix(".part.npy")
        np.lib.format.open_memmap(part, mode="w+", dtype=np.uint8, shape=(count, side, side, 3))
        tasks = [
            (str(part), start, min(start + _CHUNK, count), count, side)
            for start in range(0, count, _CHUNK)
        ]
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for number, stop in enumerate(pool.map(_render_chunk, tasks)):
                if number % 10 == 0:
                    print(f"rendered {stop} of {count} scenes", flush=True)
        part.rename(done)
    return np.load(done, mmap_mode="r")


class FactCodes:
    """Turns facts into small integers, so that captions and scenes compare as arrays."""

    def __init__(self, scenes: list[Scene]) -> None:
        self.values: list[dict[str, int]] = []
        for name in FACTS:
            seen = sorted({one.fact(name) for one in scenes})
            self.values.append({value: code for code, value in enumerate(seen)})

    def of_scenes(self, scenes: list[Scene]) -> np.ndarray:
        """Return int16 (n, facts)."""
        rows = [[self.values[k][one.fact(name)] for k, name in enumerate(FACTS)] for one in scenes]
        return np.array(rows, dtype=np.int16)

    def of_caption(self, caption: Caption) -> np.ndarray:
        """Return int16 (facts,) with -1 for everything the caption leaves open."""
        row = np.full(len(FACTS), -1, dtype=np.int16)
        for name, value in caption.facts:
            place = FACTS.index(name)
            row[place] = self.values[place][value]
        return row


def captions_for(scenes: list[Scene], seed: int, each: int) -> list[Caption]:
    """Return ``each`` captions for every scene, those of one scene together."""
    rng = random.Random(f"captions:{seed}")
    return [write_caption(one, rng, FORBIDDEN_CAPTIONS) for one in scenes for _ in range(each)]


def write_merges(texts: list[str], path: Path, limit: int) -> int:
    """Learn byte-pair merges from ``texts`` and write them the way open_clip reads them.

    Stops at ``limit`` merges or when no pair occurs twice; returns the number of merges.
    """
    counted = Counter(
        word
        for text in texts
        for word in text.lower().replace(",", " , ").replace("-", " - ").split()
    )
    words = {word: [*word[:-1], word[-1] + "</w>"] for word in counted}
    merges: list[tuple[str, str]] = []
    while len(merges) < limit:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in words.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += counted[word]
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < 2:
            break
        merges.append(best)
        for word, parts in words.items():
            words[word] = _merged(parts, best)
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    with (
        path.open("wb") as raw,
        gzip.GzipFile(fileobj=raw, mode="wb", mtime=0, filename="") as packed,
    ):
        packed.write("\n".join(lines).encode())
    return len(merges)


def _merged(parts: list[str], pair: tuple[str, str]) -> list[str]:
    joined: list[str] = []
    for part in parts:
        if joined and (joined[-1], part) == pair:
            joined[-1] += part
        else:
            joined.append(part)
    return joined
