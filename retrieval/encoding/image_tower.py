"""The image side of a CLIP model: pictures are prepared anywhere, and encoded on one device."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from retrieval.encoding.batch_norms import fold_batch_norms
from retrieval.encoding.preparing import preparing

if TYPE_CHECKING:
    from PIL import Image


@dataclass(frozen=True, slots=True)
class Launched:
    """A batch that a device has encoded or is encoding."""

    _vectors: Any
    _count: int
    _seconds: float
    _events: tuple[Any, Any, Any] | None = None
    """On a GPU: when it began and ended to encode, and when the vectors had come back."""

    def vectors(self) -> np.ndarray:
        """Wait for the batch; float32 (n, dimension), of unit length."""
        if self._events is not None:
            self._events[2].synchronize()
        return np.asarray(self._vectors[: self._count].numpy(), dtype=np.float32)

    def seconds(self) -> float:
        """How long the device worked on it; call it after `vectors`."""
        if self._events is None:
            return self._seconds
        began, ended, _ = self._events
        return float(began.elapsed_time(ended) / 1000)


class ImageTower:
    """Prepares pictures as open_clip does and encodes batches of them.

    Preparing is open_clip's resizing and cropping, whose result stays in bytes; the steps after it
    (to 0..1, minus mean, by standard deviation) are done on the device, in channels-last layout.
    """

    def __init__(self, model: Any, preprocess: Any, device: str) -> None:
        import torch

        *steps, to_tensor, normalize = preprocess.transforms
        if type(to_tensor).__name__ != "MaybeToTensor" or type(normalize).__name__ != "Normalize":
            raise ValueError("the preparation of its images is not open_clip's")
        self._prepare = preparing(steps)
        self._encode = model.encode_image
        self._cuda = device.startswith("cuda")
        self._device = torch.device(device)
        self._visual = model.visual
        self._quick = self._compiled = False
        self._mean = torch.tensor(normalize.mean, device=device).mul(255).view(1, 3, 1, 1)
        self._scale = torch.tensor(normalize.std, device=device).mul(255).reciprocal()
        self._scale = self._scale.view(1, 3, 1, 1)
        self.precision = "fp32"
        self._type = torch.float32
        if self._cuda:
            self._copies = torch.cuda.Stream(self._device)
            bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
            self.precision = "bf16" if bf16 else "fp16"
            self._type = torch.bfloat16 if bf16 else torch.float16
        size = model.visual.image_size
        self.height, self.width = size if isinstance(size, tuple | list) else (size, size)

    @property
    def side(self) -> int:
        """The longer side in pixels of what the model looks at."""
        return max(self.height, self.width)

    @property
    def bytes_each(self) -> int:
        """Bytes of one prepared picture."""
        return self.height * self.width * 3

    def prepare(self, image: Image.Image) -> np.ndarray:
        """Return a picture as the model looks at it: (height, width, 3) bytes, RGB."""
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self._prepare(image)

    def buffer(self, count: int) -> Any:
        """Return room for prepared pictures, (count, height, width, 3) bytes as a torch tensor; for
        a GPU in memory that it reads by itself.
        """
        import torch

        shape = (count, self.height, self.width, 3)
        return torch.empty(shape, dtype=torch.uint8, pin_memory=self._cuda)

    def example(self) -> Any:
        """Return a prepared picture of noise, always the same: (1, height, width, 3) bytes."""
        pixels = self.buffer(1)
        rng = np.random.default_rng(0)
        pixels.numpy()[:] = rng.integers(0, 256, tuple(pixels.shape), dtype=np.uint8)
        return pixels.to(self._device)

    def quicken(self, *, compiled: bool) -> None:
        """Rearrange the model, once, so that it encodes faster; its vectors differ by rounding.

        Batch norms go into convolutions; on the processor linear layers are packed where that
        helps. With `compiled` torch.compile makes a program of it instead of packing; batches are
        then filled up to a power of two, so that few are made.
        """
        import torch

        from retrieval.encoding.packed_linears import pack_linears

        if self._quick:
            return
        self._quick = True
        fold_batch_norms(self._visual)
        if compiled:
            self._encode = torch.compile(self._encode)
            self._compiled = True
        elif self._device.type == "cpu":
            pack_linears(self._visual, self.floats(self.example()))

    def floats(self, pixels: Any) -> Any:
        """Return what the model sees of prepared pictures on the device: (n, 3, height, width)."""
        return (pixels.permute(0, 3, 1, 2) - self._mean).mul_(self._scale)

    def encode(self, floats: Any) -> Any:
        """Return the model's vectors (n, dimension) of `floats`, of any length, on the device."""
        import torch

        mixed = self._type is not torch.float32
        with (
            torch.inference_mode(),
            torch.autocast(self._device.type, dtype=self._type, enabled=mixed),
        ):
            return self._encode(floats)

    def launch(self, pixels: Any) -> Launched:
        """Begin to encode prepared pictures (n, height, width, 3); see `Launched`."""
        import torch

        with torch.inference_mode():
            if not self._cuda:
                started = time.perf_counter()
                vectors = self._encoded(pixels)
                return Launched(vectors, len(pixels), time.perf_counter() - started)
            with torch.cuda.stream(self._copies):
                there = pixels.to(self._device, non_blocking=True)
            began, ended, returned = (torch.cuda.Event(enable_timing=True) for _ in range(3))
            stream = torch.cuda.current_stream(self._device)
            stream.wait_stream(self._copies)
            there.record_stream(stream)
            began.record(stream)
            vectors = self._encoded(there)
            ended.record(stream)
            back = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
            back.copy_(vectors, non_blocking=True)
            returned.record(stream)
            return Launched(back, len(pixels), 0.0, (began, ended, returned))

    def _encoded(self, pixels: Any) -> Any:
        """Unit vectors (n, dimension) of bytes (n, height, width, 3) on the device."""
        import torch

        if self._compiled:
            room = 1 << (len(pixels) - 1).bit_length()
            pixels = torch.nn.functional.pad(pixels, (0, 0) * 3 + (0, room - len(pixels)))
        vectors = self.encode(self.floats(pixels))
        return torch.nn.functional.normalize(vectors.float(), dim=-1)
