"""Trains the demo model from scratch: ``python -m demo.train --minutes 30``.

The model learns from scenes of the training partition only. A caption is a true answer for
every picture of the batch that shows the facts it states, so that the loss asks for exactly
what retrieval needs. Attribute classifiers on top of the picture vector speed up the start and
are thrown away afterwards.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from demo.attributes import ATTRIBUTE_NAMES
from demo.captions import FACTS
from demo.training_data import (
    FactCodes,
    captions_for,
    rendered,
    training_scene,
    write_merges,
)
from retrieval.encoders import CONFIG_NAME, DEMO_MODEL_DIR, WEIGHTS_NAME
from retrieval.torchvision_compat import ensure_torchvision

MODEL_DIR = DEMO_MODEL_DIR
MERGES_NAME = "merges.txt.gz"
SIDE = 96
CONTEXT = 28
MERGE_LIMIT = 1400
CAPTIONS_EACH = 6
HELD_OUT = 3000
"""The last scenes of the training set are kept for validation."""
_SHIFT = 5
_NARROW_KINDS = 8
_AUXILIARY_WEIGHT = 0.25
_PEAK_RATE = 2e-3


def model_config(vocabulary: int) -> dict[str, Any]:
    """Return open_clip's description of the model, as its configuration file holds it."""
    return {
        "model_cfg": {
            "embed_dim": 256,
            "vision_cfg": {
                "image_size": SIDE,
                "layers": [1, 2, 2, 1],
                "width": 20,
                "patch_size": None,
            },
            "text_cfg": {
                "context_length": CONTEXT,
                "vocab_size": vocabulary,
                "width": 128,
                "heads": 4,
                "layers": 2,
                "tokenizer_kwargs": {"bpe_path": MERGES_NAME},
            },
        },
        "preprocess_cfg": {
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
            "interpolation": "bicubic",
            "resize_mode": "squash",
        },
    }


@dataclass
class TrainingSet:
    """Scenes as pixels, fact codes and tokenised captions with the facts these state."""

    pixels: np.ndarray
    scene_codes: np.ndarray
    tokens: Tensor
    caption_codes: np.ndarray


def prepare(cache: Path, count: int) -> tuple[TrainingSet, FactCodes, int]:
    """Render scenes, write captions and the merges file; returns the vocabulary size last."""
    pixels = rendered(cache, count, SIDE)
    scenes = [training_scene(index) for index in range(count)]
    captions = captions_for(scenes, 1, CAPTIONS_EACH)
    MODEL_DIR.mkdir(exist_ok=True)
    write_merges([caption.text for caption in captions], MODEL_DIR / MERGES_NAME, MERGE_LIMIT)
    import open_clip

    tokenizer = open_clip.SimpleTokenizer(str(MODEL_DIR / MERGES_NAME), context_length=CONTEXT)
    codes = FactCodes(scenes)
    tokens = tokenizer([caption.text for caption in captions])
    stated = np.stack([codes.of_caption(caption) for caption in captions])
    facts = codes.of_scenes(scenes)
    return TrainingSet(pixels, facts, tokens, stated), codes, tokenizer.vocab_size


def true_pairs(caption_codes: Tensor, scene_codes: Tensor) -> Tensor:
    """Return bool (captions, scenes): every stated fact holds in the scene."""
    stated = caption_codes[:, None, :]
    return ((stated < 0) | (stated == scene_codes[None, :, :])).all(-1)


def contrast(logits: Tensor, truth: Tensor) -> Tensor:
    """Contrast in both directions; all true pairs of a row share the target evenly."""
    total = logits.new_zeros(())
    for scores, pairs in ((logits, truth), (logits.T, truth.T)):
        target = pairs.float()
        target = target / target.sum(1, keepdim=True).clamp(min=1)
        total = total - (target * functional.log_softmax(scores.float(), dim=1)).sum(1).mean()
    return total / 2


def augmented(pixels: np.ndarray, rng: np.random.Generator) -> Tensor:
    """Flip, shift and slightly recolour uint8 (n, side, side, 3) into float (n, 3, side, side)."""
    batch = torch.from_numpy(np.ascontiguousarray(pixels)).permute(0, 3, 1, 2)
    batch = batch.to(torch.float32, memory_format=torch.channels_last).div_(255)
    flips = torch.from_numpy(rng.random(len(pixels)) < 0.5)
    batch[flips] = batch[flips].flip(-1)
    dx, dy = rng.integers(-_SHIFT, _SHIFT + 1, 2)
    batch = functional.pad(batch, (_SHIFT,) * 4, mode="replicate")
    batch = batch[:, :, _SHIFT + dy : _SHIFT + dy + SIDE, _SHIFT + dx : _SHIFT + dx + SIDE]
    gain = torch.from_numpy(rng.uniform(0.9, 1.1, (len(pixels), 3, 1, 1)).astype(np.float32))
    lift = torch.from_numpy(rng.uniform(-0.04, 0.04, (len(pixels), 1, 1, 1)).astype(np.float32))
    return (batch * gain + lift - 0.5) / 0.25


class Batches:
    """Draws batches, every other one from a few species, whose details must be told apart."""

    def __init__(self, scene_codes: np.ndarray, size: int, rng: np.random.Generator) -> None:
        self._rng = rng
        self._size = size
        self._order = np.empty(0, dtype=np.int64)
        self._count = len(scene_codes)
        kinds = scene_codes[:, FACTS.index("species")]
        self._pools = [np.flatnonzero(kinds == kind) for kind in np.unique(kinds)]

    def draw(self, narrow: bool) -> np.ndarray:
        """Return sorted scene indices, int64 (size,)."""
        if narrow:
            kinds = self._rng.choice(len(self._pools), _NARROW_KINDS, replace=False)
            each = self._size // _NARROW_KINDS
            parts = [self._rng.choice(self._pools[kind], each, replace=False) for kind in kinds]
            return np.sort(np.concatenate(parts))
        if len(self._order) < self._size:
            self._order = self._rng.permutation(self._count)
        chosen, self._order = self._order[: self._size], self._order[self._size :]
        return np.sort(chosen)


def learning_rate(done: float) -> float:
    """Warm up over the first 4% of the time, then fall along a cosine."""
    if done < 0.04:
        return _PEAK_RATE * (0.05 + 0.95 * done / 0.04)
    return _PEAK_RATE * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def parameter_groups(model: nn.Module, heads: nn.Module) -> list[dict[str, Any]]:
    """Weight decay on matrices only."""
    named = [*model.named_parameters(), *heads.named_parameters()]
    decayed = [value for _, value in named if value.ndim > 1]
    others = [value for _, value in named if value.ndim <= 1]
    return [{"params": decayed, "weight_decay": 0.03}, {"params": others, "weight_decay": 0.0}]


def fit(
    data: TrainingSet, codes: FactCodes, model: Any, minutes: float, batch: int, seed: int
) -> None:
    """Train ``model`` in place for a fixed time."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    columns = [FACTS.index(name) for name in ATTRIBUTE_NAMES]
    heads = nn.ModuleList(nn.Linear(256, len(codes.values[column])) for column in columns)
    optimizer = torch.optim.AdamW(parameter_groups(model, heads), lr=_PEAK_RATE, betas=(0.9, 0.98))
    model.train()
    trained = len(data.pixels) - HELD_OUT
    batches = Batches(data.scene_codes[:trained], batch, rng)
    began, step = time.monotonic(), 0
    while (done := (time.monotonic() - began) / (minutes * 60)) < 1:
        chosen = batches.draw(narrow=step % 2 == 1)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(done)
        picks = (
            chosen[:, None] * CAPTIONS_EACH + rng.integers(0, CAPTIONS_EACH, (batch, 2))
        ).ravel()
        facts = torch.from_numpy(data.scene_codes[chosen])
        truth = true_pairs(torch.from_numpy(data.caption_codes[picks]), facts)
        images = augmented(data.pixels[chosen], rng)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen = model.encode_image(images)
            said = model.encode_text(data.tokens[picks])
        seen = functional.normalize(seen.float(), dim=-1)
        said = functional.normalize(said.float(), dim=-1)
        scale = model.logit_scale.exp().clamp(max=60)
        loss = contrast(scale * said @ seen.T, truth)
        guesses = torch.stack(
            [
                functional.cross_entropy(12 * head(seen), facts[:, column].long())
                for head, column in zip(heads, columns, strict=True)
            ]
        )
        optimizer.zero_grad(set_to_none=True)
        (loss + _AUXILIARY_WEIGHT * guesses.sum()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        if step % 25 == 0:
            shown = " ".join(
                f"{name[:6]} {value:.2f}"
                for name, value in zip(ATTRIBUTE_NAMES, guesses.tolist(), strict=True)
            )
            print(
                f"{step:5d} {done:4.0%} loss {loss.item():.3f} scale {scale.item():.1f} | {shown}",
                flush=True,
            )


def validate(data: TrainingSet, model: Any) -> float:
    """Mean AP@50 of held-out captions with 8 to 150 true pictures among the held-out scenes."""
    model.eval()
    first = len(data.pixels) - HELD_OUT
    facts = torch.from_numpy(data.scene_codes[first:])
    with torch.inference_mode():
        seen = []
        for start in range(first, len(data.pixels), 250):
            batch = torch.from_numpy(np.array(data.pixels[start : start + 250]))
            batch = (batch.permute(0, 3, 1, 2).float() / 255 - 0.5) / 0.25
            seen.append(functional.normalize(model.encode_image(batch), dim=-1))
        pictures = torch.cat(seen)
        picks = torch.arange(first * CAPTIONS_EACH, first * CAPTIONS_EACH + 1500)
        truth = true_pairs(torch.from_numpy(data.caption_codes[picks]), facts)
        kept = picks[(truth.sum(1) >= 8) & (truth.sum(1) <= 150)]
        truth = true_pairs(torch.from_numpy(data.caption_codes[kept]), facts)
        said = functional.normalize(model.encode_text(data.tokens[kept]), dim=-1)
        ranked = (said @ pictures.T).argsort(dim=1, descending=True)[:, :50]
    hits = torch.gather(truth, 1, ranked).float()
    precision = hits.cumsum(1) / torch.arange(1, 51)
    limits = truth.sum(1).clamp(max=50)
    return float(((precision * hits).sum(1) / limits).mean())


def save(model: nn.Module, config: dict[str, Any]) -> None:
    """Write the configuration and the weights in half precision."""
    from safetensors.torch import save_file

    halves = {
        name: value.detach().to(torch.float16).contiguous() if value.is_floating_point() else value
        for name, value in model.state_dict().items()
    }
    save_file(halves, MODEL_DIR / WEIGHTS_NAME)
    text = json.dumps(config, indent=2) + "\n"
    (MODEL_DIR / CONFIG_NAME).write_text(text, encoding="utf-8")


def main() -> None:
    """Command line entry."""
    parser = argparse.ArgumentParser(description="Train the demo model from scratch.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--scenes", type=int, default=48000)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--cache", type=Path, default=Path("var") / "demo-training")
    parser.add_argument("--go-on", action="store_true", help="start from the saved weights")
    options = parser.parse_args()
    ensure_torchvision()
    import open_clip

    data, codes, vocabulary = prepare(options.cache, options.scenes)
    config = model_config(vocabulary)
    described = json.loads(json.dumps(config["model_cfg"]))
    torch.manual_seed(5)
    model = open_clip.CLIP(**described).to(memory_format=torch.channels_last)
    print(f"{sum(value.numel() for value in model.parameters()):,} parameters, {vocabulary} tokens")
    if options.go_on:
        open_clip.load_checkpoint(model, str(MODEL_DIR / WEIGHTS_NAME))
    fit(data, codes, model, options.minutes, options.batch, 6 if options.go_on else 5)
    print(f"validation mAP@50 {validate(data, model):.3f}")
    save(model, config)


if __name__ == "__main__":
    main()
