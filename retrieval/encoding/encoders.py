"""The image side of CLIP models; `retrieval.encoding.text` has the text side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.encoding.device_thread import compute
from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.encoding.loading import FAILURES, default_device, load_open_clip, not_loaded
from retrieval.encoding.model_specs import (
    CONFIG_NAME,
    DEMO_MODEL_DIR,
    WEIGHTS_NAME,
    ModelDescription,
    ModelSpecError,
    Source,
    describe,
    model_config,
    resolve,
)

if TYPE_CHECKING:
    from PIL import Image

__all__ = [
    "CONFIG_NAME",
    "DEMO_MODEL_DIR",
    "WEIGHTS_NAME",
    "Encoder",
    "Launched",
    "ModelDescription",
    "ModelSpecError",
    "default_device",
    "describe",
    "load_encoder",
    "load_open_clip",
]

_BATCH = 64


class Encoder:
    """A loaded model; calls from several threads take turns.

    ``dimension`` is the length of its vectors, ``parameters`` how many numbers it has learned,
    image and text side together, and ``precision`` the number format in which it computes the
    vectors of images ("fp32"; on a GPU "bf16", or "fp16" where that is missing). Weights stay in
    single precision.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        preprocess: Any,
        *,
        dimension: int,
        device: str,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.device = device
        self.parameters = sum(parameter.numel() for parameter in model.parameters())
        self.images = ImageTower(model, preprocess, device)
        self._lock = threading.Lock()

    @property
    def precision(self) -> str:
        return self.images.precision

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per picture."""
        rows = []
        for start in range(0, len(images), _BATCH):
            chosen = images[start : start + _BATCH]
            pixels = self.images.buffer(len(chosen))
            for row, image in zip(pixels.numpy(), chosen, strict=True):
                row[:] = self.images.prepare(image)
            rows.append(self.launch(pixels).vectors())
        return self._joined(rows)

    def quicken(self, *, compiled: bool) -> None:
        """Have the image side encode faster here; see `ImageTower.quicken`."""
        with self._lock:
            compute(self.device, lambda: self.images.quicken(compiled=compiled))

    def launch(self, pixels: Any) -> Launched:
        """Have prepared pictures (`images.buffer`) encoded; on a GPU this doesn't wait for it."""
        with self._lock:
            return compute(self.device, lambda: self.images.launch(pixels))

    def _joined(self, rows: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


_encoders: dict[tuple[str, str], Encoder] = {}
_load_lock = threading.Lock()


def load_encoder(spec: str, *, device: str | None = None) -> Encoder:
    """Return the model that ``spec`` names, loaded once per process and device.

    ``device`` is a torch device name; by default a GPU is used where there is one. Raises as
    `load_open_clip`.
    """
    source = resolve(spec)
    with _load_lock:
        chosen = device or default_device()
        key = (spec, chosen)
        if key not in _encoders:
            _encoders[key] = compute(chosen, lambda: _load(source, chosen))
        return _encoders[key]


def _load(source: Source, device: str) -> Encoder:
    model, preprocess, _ = load_open_clip(source.spec, device)
    try:
        dimension = int(model_config(source)["embed_dim"])
        return Encoder(source.name, model, preprocess, dimension=dimension, device=device)
    except FAILURES as error:
        raise not_loaded(source, error) from error
