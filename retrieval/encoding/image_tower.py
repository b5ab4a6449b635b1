"""The image side of a CLIP model: images are prepared in any thread and encoded on one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from PIL import Image

LONGEST_SHAPE: Final = 8
"""How many times longer than wide an image is at most when it is resized to be cropped."""


@dataclass(frozen=True, slots=True)
class Launched:
    """A batch that a device has encoded or is encoding."""

    _vectors: Any
    _arrived: Any = None
    """On a GPU: the event of the vectors' arrival in the machine's memory."""

    def vectors(self) -> np.ndarray:
        """Wait for the batch; float32 (n, dimension), of unit length."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return np.asarray(self._vectors.numpy(), dtype=np.float32)


class ImageTower:
    """Prepares images as open_clip does and encodes batches of them.

    Preparing is open_clip's resizing and cropping, whose result stays in bytes; the steps after it
    (to 0..1, minus mean, by standard deviation) are done on the device. On the processor linear
    layers are packed (`packed_linears`). `precision` is the number format of the computation:
    "fp32", on a GPU "bf16", or "fp16" where that is missing. Raises ValueError for a preparation
    that is not open_clip's.
    """

    def __init__(self, model: Any, preprocess: Any, device: str) -> None:
        import torch

        *self._steps, to_tensor, normalize = preprocess.transforms
        if type(to_tensor).__name__ != "MaybeToTensor" or type(normalize).__name__ != "Normalize":
            raise ValueError("the preparation of its images is not open_clip's")
        self._crops = any(type(step).__name__ == "CenterCrop" for step in self._steps)
        self._encode = model.encode_image
        self._compiled_by = ""
        self._cuda = device.startswith("cuda")
        self._device = torch.device(device)
        self._mean = torch.tensor(normalize.mean, device=device).mul(255).view(1, 3, 1, 1)
        self._scale = torch.tensor(normalize.std, device=device).mul(255).reciprocal()
        self._scale = self._scale.view(1, 3, 1, 1)
        self.precision = "fp32"
        self._type = torch.float32
        size = model.visual.image_size
        sides: Sequence[int] = size if isinstance(size, tuple | list) else (size, size)
        self.height, self.width = sides
        if self._cuda:
            bf16 = torch.cuda.is_bf16_supported(including_emulation=False)
            self.precision = "bf16" if bf16 else "fp16"
            self._type = torch.bfloat16 if bf16 else torch.float16
        elif device == "cpu":
            from retrieval.encoding.packed_linears import pack_linears

            noise = torch.Generator().manual_seed(0)
            pack_linears(model.visual, torch.randn(1, 3, self.height, self.width, generator=noise))

    def compile(self, backend: str) -> None:
        """Encode by `torch.compile` from now on, with one of its backends."""
        import torch

        if self._compiled_by != backend:
            self._encode, self._compiled_by = torch.compile(self._encode, backend=backend), backend

    @property
    def side(self) -> int:
        """The longer side of a prepared image in pixels."""
        return max(self.height, self.width)

    def prepare(self, image: Image.Image) -> np.ndarray:
        """Return an image resized and cropped for the model: (height, width, 3) bytes, RGB."""
        if image.mode != "RGB":
            image = image.convert("RGB")
        if self._crops:
            image = _middle(image)
        for step in self._steps:
            image = step(image)
        return np.asarray(image)

    def buffer(self, count: int) -> Any:
        """Return room for prepared images, (count, height, width, 3) bytes as a torch tensor; for a
        GPU in pinned memory.
        """
        import torch

        shape = (count, self.height, self.width, 3)
        return torch.empty(shape, dtype=torch.uint8, pin_memory=self._cuda)

    def launch(self, pixels: Any) -> Launched:
        """Begin to encode prepared images (n, height, width, 3); on a GPU this doesn't wait."""
        import torch

        with (
            torch.inference_mode(),
            torch.autocast(self._device.type, dtype=self._type, enabled=self._cuda),
        ):
            on_device = pixels.to(self._device, non_blocking=True).permute(0, 3, 1, 2)
            vectors = self._encode((on_device - self._mean).mul_(self._scale))
            vectors = torch.nn.functional.normalize(vectors.float(), dim=-1)
            if not self._cuda:
                return Launched(vectors)
            returned = torch.empty(vectors.shape, dtype=vectors.dtype, pin_memory=True)
            returned.copy_(vectors, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            return Launched(returned, arrived)


def _middle(image: Image.Image) -> Image.Image:
    """Of a very long image the part that a crop of its middle can show: the rest would be resized
    to be thrown away, to many times its size where the image is thin.
    """
    width, height = image.size
    longest = LONGEST_SHAPE * min(image.size)
    if max(image.size) <= longest:
        return image
    left, top = max(0, (width - longest) // 2), max(0, (height - longest) // 2)
    return image.crop((left, top, width - left, height - top))
