"""Pictures as a model looks at them: open_clip's resizing and cropping, in bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from PIL import Image

LONGEST_SHAPE: Final = 8
"""How many times longer than wide an image is at most when it is resized to be cropped."""

Prepare = Callable[["Image.Image"], NDArray[np.uint8]]


def preparing(steps: Sequence[Any]) -> Prepare:
    """Return what does open_clip's `steps` up to MaybeToTensor with an RGB picture; its result is
    (height, width, 3) bytes.

    Where torch has code for the processor that resizes bytes, and the steps are the usual ones, it
    resizes in place of Pillow: in a fifth to a third of the time, and fewer than one byte in a
    hundred differs, by 2 at most (tests/retrieval/test_preparing.py).
    """

    def by_pillow(image: Image.Image) -> NDArray[np.uint8]:
        for step in steps:
            image = step(image)
        return np.asarray(image)

    prepare = _by_torch(steps, by_pillow) or by_pillow
    crops = any(type(step).__name__ == "CenterCrop" for step in steps)
    return (lambda image: prepare(_middle(image))) if crops else prepare


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


def _by_torch(steps: Sequence[Any], by_pillow: Prepare) -> Prepare | None:
    import torch
    from torch.nn.functional import interpolate

    kinds = [type(step).__name__ for step in steps]
    if kinds not in (["Resize", "CenterCrop", "MaybeConvertMode"], ["Resize", "MaybeConvertMode"]):
        return None
    resize, crop = steps[0], steps[1].size if "CenterCrop" in kinds else None
    mode = resize.interpolation.value
    if mode not in ("bicubic", "bilinear") or not resize.antialias or resize.max_size is not None:
        return None
    if not torch.backends.cpu.get_cpu_capability().startswith("AVX"):
        return None

    def prepare(image: Image.Image) -> NDArray[np.uint8]:
        size = _resized(image.height, image.width, resize.size)
        # Pillow makes such a picture lower before it makes it narrower, which gives other bytes.
        if image.height - size[0] > 2 * max(0, image.width - size[1]):
            return by_pillow(image)
        # numpy turns the axes, since each step of torch's waits for Python's lock. In this layout
        # torch takes a pixel's three bytes at once.
        pixels = torch.from_numpy(np.array(image)[None].transpose(0, 3, 1, 2))
        resized = interpolate(pixels, size=size, mode=mode, antialias=True)
        prepared: NDArray[np.uint8] = resized.numpy()[0].transpose(1, 2, 0)
        return prepared if crop is None else _cropped(prepared, *crop)

    return prepare


def _resized(height: int, width: int, size: int | Sequence[int]) -> tuple[int, int]:
    """Height and width after torchvision's Resize: both as given, or the shorter side is."""
    if not isinstance(size, int) and len(size) == 2:
        return size[0], size[1]
    short = size if isinstance(size, int) else size[0]
    if height <= width:
        return short, int(short * width / height)
    return int(short * height / width), short


def _cropped(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """The middle, as torchvision's CenterCrop takes it of a picture that isn't smaller."""
    top = round((pixels.shape[0] - height) / 2)
    left = round((pixels.shape[1] - width) / 2)
    return pixels[top : top + height, left : left + width]
