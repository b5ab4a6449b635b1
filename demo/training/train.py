"""Trains the demo model from scratch: `python -m demo.training.train --minutes 60`.

It writes the weights, their configuration and the byte-pair vocabulary to `demo/model/`, and the
scenes that it drew to `var/demo-training/`. `--resume` starts from the weights that are there.

The model learns from scenes of the training partition only. A caption matches every image of the
batch that shows the facts it states, so the loss is what retrieval needs. Attribute classifiers on
top of the image vector speed up the start and are discarded afterwards.
"""

from __future__ import annotations

import argparse
import copy
import gzip
import itertools
import json
import math
import os
import random
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from demo.drawing import render
from demo.scenes import ATTRIBUTES, Scene, scene
from demo.training.captions import FACTS, Caption, write_caption
from evaluation.scoring.metrics import average_precision_at_k
from retrieval.encoding.model_specs import CONFIG_NAME, DEMO_MODEL_DIR, WEIGHTS_NAME
from retrieval.encoding.open_clip_import import open_clip_module

TRAINING_SEED = 71
SIDE = 96
CONTEXT = 28
"""Pixels and tokens of the model, as its configuration file has them."""
MERGES_NAME = "merges.txt.gz"
MERGE_LIMIT = 1400
CAPTIONS_EACH = 6
HELD_OUT = 3000
"""The last scenes of the training set are kept for validation."""
SHIFT = 5
FEW_SPECIES = 8
"""How many species make up every other batch, so that the model learns their details."""
AUXILIARY_WEIGHT = 0.25
PEAK_RATE = 2e-3
SPECIES_COLUMN = FACTS.index("species")


def training_scene(index: int) -> Scene:
    """Return scene `index` of the training partition."""
    return scene(index, TRAINING_SEED, partition="training")


def _pixels(index: int) -> np.ndarray:
    return np.asarray(render(training_scene(index), SIDE))


def rendered(cache: Path, count: int) -> np.ndarray:
    """Return the pixels of the first training scenes, uint8 (count, SIDE, SIDE, 3).

    They are rendered once, by all processors, into a file under `cache`.
    """
    cache.mkdir(parents=True, exist_ok=True)
    done = cache / f"scenes-{TRAINING_SEED}-{count}-{SIDE}.npy"
    if not done.exists():
        part = done.with_suffix(".part.npy")
        pixels = np.lib.format.open_memmap(
            part, mode="w+", dtype=np.uint8, shape=(count, SIDE, SIDE, 3)
        )
        with ProcessPoolExecutor(os.cpu_count()) as pool:
            for index, image in enumerate(pool.map(_pixels, range(count), chunksize=64)):
                pixels[index] = image
        pixels.flush()
        part.rename(done)
    stored: np.ndarray = np.load(done, mmap_mode="r")
    return stored


def captions_for(scenes: list[Scene], seed: int) -> list[Caption]:
    """Return CAPTIONS_EACH captions for every scene, those of one scene together."""
    rng = random.Random(f"captions:{seed}")
    return [write_caption(scene, rng) for scene in scenes for _ in range(CAPTIONS_EACH)]


def write_merges(texts: list[str], path: Path) -> None:
    """Learn byte-pair merges from `texts` and write them the way open_clip reads them.

    Stops at MERGE_LIMIT merges or when no pair occurs twice.
    """
    counted = Counter(
        word
        for text in texts
        for word in text.lower().replace(",", " , ").replace("-", " - ").split()
    )
    words = {word: [*word[:-1], word[-1] + "</w>"] for word in counted}
    merges: list[tuple[str, str]] = []
    while len(merges) < MERGE_LIMIT:
        pairs: Counter[tuple[str, str]] = Counter()
        for word, parts in words.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += counted[word]
        best = min(pairs, key=lambda pair: (-pairs[pair], pair), default=None)
        if best is None or pairs[best] < 2:
            break
        merges.append(best)
        for word, parts in words.items():
            joined: list[str] = []
            for part in parts:
                if joined and (joined[-1], part) == best:
                    joined[-1] += part
                else:
                    joined.append(part)
            words[word] = joined
    lines = ["#version: 0.2", *(" ".join(pair) for pair in merges)]
    path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))


class TrainingSet:
    """Scenes as pixels, and the tokens of their captions.

    Facts are small integers, -1 for a fact that a caption doesn't state: `scene_codes` (n, facts)
    and `caption_codes` (n * CAPTIONS_EACH, facts), int16. Writes the model's merges file.
    """

    def __init__(self, cache: Path, count: int) -> None:
        self.pixels = rendered(cache, count)
        scenes = [training_scene(index) for index in range(count)]
        captions = captions_for(scenes, 1)
        facts = [{name: scene.fact(name) for name in FACTS} for scene in scenes]
        self.values = [sorted({shown[name] for shown in facts}) for name in FACTS]
        codes = [{value: code for code, value in enumerate(values)} for values in self.values]

        def coded(shown: dict[str, str]) -> list[int]:
            return [codes[k].get(shown.get(name, ""), -1) for k, name in enumerate(FACTS)]

        self.scene_codes = np.array([coded(shown) for shown in facts], np.int16)
        self.caption_codes = np.array(
            [coded(dict(caption.facts)) for caption in captions], np.int16
        )
        merges = DEMO_MODEL_DIR / MERGES_NAME
        write_merges([caption.text for caption in captions], merges)
        tokenizer = open_clip_module().SimpleTokenizer(str(merges), context_length=CONTEXT)
        self.tokens = tokenizer([caption.text for caption in captions])
        self.vocabulary = tokenizer.vocab_size
        self.trained = count - HELD_OUT


def true_pairs(caption_codes: np.ndarray, scene_codes: np.ndarray) -> Tensor:
    """Return bool (captions, scenes): every stated fact holds in the scene."""
    stated = torch.from_numpy(caption_codes)[:, None, :]
    return ((stated < 0) | (stated == torch.from_numpy(scene_codes)[None, :, :])).all(-1)


def contrast(logits: Tensor, truth: Tensor) -> Tensor:
    """Contrast in both directions; all true pairs of a row share the target evenly."""
    total = logits.new_zeros(())
    for scores, pairs in ((logits, truth), (logits.T, truth.T)):
        target = pairs.float()
        target = target / target.sum(1, keepdim=True).clamp(min=1)
        total = total - (target * functional.log_softmax(scores.float(), dim=1)).sum(1).mean()
    return total / 2


def augmented(pixels: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Flip, shift and slightly recolor uint8 (n, side, side, 3) into float (n, 3, side, side)."""
    batch = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
    batch = batch.to(torch.float32, memory_format=torch.channels_last).div_(255)
    flips = torch.from_numpy(rng.random(len(pixels)) < 0.5)
    batch[flips] = batch[flips].flip(-1)
    dx, dy = rng.integers(0, 2 * SHIFT + 1, 2)
    batch = functional.pad(batch, (SHIFT,) * 4, mode="replicate")
    batch = batch[:, :, dy : dy + SIDE, dx : dx + SIDE]
    gain = torch.from_numpy(rng.uniform(0.9, 1.1, (len(pixels), 3, 1, 1)).astype(np.float32))
    lift = torch.from_numpy(rng.uniform(-0.04, 0.04, (len(pixels), 1, 1, 1)).astype(np.float32))
    return (batch * gain + lift - 0.5) / 0.25


def batch_of(step: int, species: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    """Return sorted scene indices (size,), in every other step of FEW_SPECIES species."""
    if step % 2 == 0:
        return np.sort(rng.choice(len(species), size, replace=False))
    kinds = rng.choice(np.unique(species), FEW_SPECIES, replace=False)
    parts = [
        rng.choice(np.flatnonzero(species == kind), size // FEW_SPECIES, replace=False)
        for kind in kinds
    ]
    return np.sort(np.concatenate(parts))


def learning_rate(done: float) -> float:
    """Warm up over the first 4% of the time, then fall along a cosine."""
    if done < 0.04:
        return PEAK_RATE * (0.05 + 0.95 * done / 0.04)
    return PEAK_RATE * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def fit(data: TrainingSet, model: Any, minutes: float, batch: int, seed: int) -> None:
    """Train `model` in place for a fixed time."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    columns = [FACTS.index(name) for name in ATTRIBUTES]
    heads = nn.ModuleList(nn.Linear(256, len(data.values[column])) for column in columns)
    parameters = [*model.parameters(), *heads.parameters()]
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.03},
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=PEAK_RATE, betas=(0.9, 0.98))
    model.train()
    species = data.scene_codes[: data.trained, SPECIES_COLUMN]
    began, step = time.monotonic(), 0
    while (done := (time.monotonic() - began) / (minutes * 60)) < 1:
        chosen = batch_of(step, species, batch, rng)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(done)
        picks = chosen[:, None] * CAPTIONS_EACH + rng.integers(0, CAPTIONS_EACH, (batch, 2))
        picks = picks.ravel()
        facts = torch.from_numpy(data.scene_codes[chosen])
        truth = true_pairs(data.caption_codes[picks], data.scene_codes[chosen])
        images = augmented(data.pixels[chosen], rng)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            image_vectors = model.encode_image(images)
            text_vectors = model.encode_text(data.tokens[picks])
        image_vectors = functional.normalize(image_vectors.float(), dim=-1)
        text_vectors = functional.normalize(text_vectors.float(), dim=-1)
        scale = model.logit_scale.exp().clamp(max=60)
        loss = contrast(scale * text_vectors @ image_vectors.T, truth)
        guesses = [
            functional.cross_entropy(12 * head(image_vectors), facts[:, column].long())
            for head, column in zip(heads, columns, strict=True)
        ]
        optimizer.zero_grad(set_to_none=True)
        (loss + AUXILIARY_WEIGHT * torch.stack(guesses).sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 25 == 0:
            print(f"{step:5d} {done:4.0%} loss {loss.item():.3f}", flush=True)


def validate(data: TrainingSet, model: Any) -> float:
    """Mean AP@50 of held-out captions with 8 to 150 true images among the held-out scenes."""
    model.eval()
    first = data.trained
    facts = data.scene_codes[first:]
    with torch.inference_mode():
        image_vectors = []
        for start in range(first, len(data.pixels), 250):
            batch = torch.from_numpy(np.array(data.pixels[start : start + 250]))
            batch = (batch.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25
            image_vectors.append(functional.normalize(model.encode_image(batch), dim=-1))
        picks = np.arange(first * CAPTIONS_EACH, first * CAPTIONS_EACH + 1500)
        answers = true_pairs(data.caption_codes[picks], facts).sum(1).numpy()
        picks = picks[(answers >= 8) & (answers <= 150)]
        truth = true_pairs(data.caption_codes[picks], facts)
        text_vectors = functional.normalize(model.encode_text(data.tokens[picks]), dim=-1)
        ranked = (text_vectors @ torch.cat(image_vectors).T).argsort(dim=1, descending=True)[:, :50]
    hits = torch.gather(truth, 1, ranked).numpy()
    return float(average_precision_at_k(hits, truth.sum(1).numpy(), 50).mean())


def save(model: nn.Module, config: dict[str, Any]) -> None:
    """Write open_clip's description of the model, and the weights in half precision."""
    from safetensors.torch import save_file

    halves = {
        name: value.detach().to(torch.float16).contiguous() if value.is_floating_point() else value
        for name, value in model.state_dict().items()
    }
    save_file(halves, DEMO_MODEL_DIR / WEIGHTS_NAME)
    text = json.dumps(config, indent=2) + "\n"
    (DEMO_MODEL_DIR / CONFIG_NAME).write_text(text, encoding="utf-8")


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Train the demo model from scratch.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--scenes", type=int, default=48000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--cache", type=Path, default=Path("var") / "demo-training")
    parser.add_argument("--resume", action="store_true", help="start from the saved weights")
    options = parser.parse_args()
    open_clip = open_clip_module()
    data = TrainingSet(options.cache, options.scenes)
    config = json.loads((DEMO_MODEL_DIR / CONFIG_NAME).read_text(encoding="utf-8"))
    config["model_cfg"]["text_cfg"]["vocab_size"] = data.vocabulary
    torch.manual_seed(5)
    model = open_clip.CLIP(**copy.deepcopy(config["model_cfg"]))
    model = model.to(memory_format=torch.channels_last)
    if options.resume:
        open_clip.load_checkpoint(model, str(DEMO_MODEL_DIR / WEIGHTS_NAME))
    fit(data, model, options.minutes, options.batch, 6 if options.resume else 5)
    print(f"validation mAP@50 {validate(data, model):.3f}")
    save(model, config)


if __name__ == "__main__":
    main()
