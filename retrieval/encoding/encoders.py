"""The image side of CLIP models; `retrieval.encoding.text` has the text side."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.encoding.loading import FAILURES, default_device, load_open_clip, not_loaded
from retrieval.encoding.model_size import ModelSize
from retrieval.encoding.model_specs import (
    CONFIG_NAME,
    DEMO_MODEL_DIR,
    WEIGHTS_NAME,
    ModelDescription,
    ModelSpecError,
    Source,
    describe,
    fetched,
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
RELEASE_SECONDS = 60.0
_LARGEST_BATCH = 4096


class Encoder:
    """A loaded model's image side; calls from several threads take turns.

    ``dimension`` is the length of its vectors, ``size`` that of the whole model, text side
    included, and ``precision`` the number format in which it computes the vectors of images
    ("fp32"; on a GPU "bf16", or "fp16" where that is missing). Weights stay in single precision.
    ``largest_batch`` is lowered where a batch was too large for the device.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        preprocess: Any,
        tokenizer: Any,
        *,
        dimension: int,
        device: str,
    ) -> None:
        self.name = name
        self.dimension = dimension
        self.device = device
        # Before the text side goes and the image side's layers are packed.
        self.size = ModelSize(model, tokenizer)
        for part, _ in list(model.named_children()):
            if part != "visual":
                delattr(model, part)
        self.images = ImageTower(model, preprocess, device)
        self.largest_batch = _LARGEST_BATCH
        self._lock = threading.Lock()

    @property
    def precision(self) -> str:
        return self.images.precision

    def encode_images(self, images: Sequence[Image.Image]) -> np.ndarray:
        """Return float32 (n, dimension) vectors of unit length, one per image."""
        rows = []
        for start in range(0, len(images), _BATCH):
            chosen = images[start : start + _BATCH]
            pixels = self.images.buffer(len(chosen))
            for row, image in zip(pixels.numpy(), chosen, strict=True):
                row[:] = self.images.prepare(image)
            rows.append(self.launch(pixels).vectors())
        return self._joined(rows)

    def launch(self, pixels: Any) -> Launched:
        """Begin to encode prepared images (`images.buffer`); on a GPU this doesn't wait."""
        with self._lock:
            return self.images.launch(pixels)

    def _joined(self, rows: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(rows) if rows else np.zeros((0, self.dimension), dtype=np.float32)


_encoders: dict[tuple[str, str], Encoder] = {}
_load_lock = threading.Lock()
_release_timer: threading.Timer | None = None


def load_encoder(spec: str, *, device: str | None = None) -> Encoder:
    """Return the model that ``spec`` names, loaded once per process and device.

    ``device`` is a torch device name; by default a GPU is used where there is one. Raises as
    `load_open_clip`.
    """
    source = fetched(resolve(spec))
    with _load_lock:
        chosen = device or default_device()
        key = (spec, chosen)
        if key not in _encoders:
            _encoders[key] = _load(source, chosen)
        return _encoders[key]


@contextmanager
def encoder_in_use(spec: str) -> Iterator[Encoder]:
    """Load the model that ``spec`` names, for the block; a minute after the last block in this
    process its memory is freed. Raises as `load_encoder`.
    """
    global _release_timer
    if _release_timer is not None:
        _release_timer.cancel()
    try:
        yield load_encoder(spec)
    finally:
        _release_timer = threading.Timer(RELEASE_SECONDS, _encoders.clear)
        _release_timer.daemon = True
        _release_timer.start()


def _load(source: Source, device: str) -> Encoder:
    model, preprocess, tokenizer = load_open_clip(source.spec, device)
    try:
        dimension = int(model_config(source)["embed_dim"])
        return Encoder(
            source.name, model, preprocess, tokenizer, dimension=dimension, device=device
        )
    except FAILURES as error:
        raise not_loaded(source, error) from error
