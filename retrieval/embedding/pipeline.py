"""From image files to vectors: threads read and prepare images while a device encodes batches.

Threads rather than the processes of PyTorch's DataLoader: Celery's workers may have no children,
and decoding releases the interpreter's lock.
"""

from __future__ import annotations

import traceback
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.conf import settings

from core.cores import cores
from retrieval.encoding.encoders import Encoder, Launched
from retrieval.encoding.unit_rows import Fault, unit_rows
from retrieval.images.decoding import ImageRefused, open_image
from retrieval.images.files import ImageGone, ImageRef, RootUnavailable, source_bytes
from retrieval.images.roots import REQUESTS

BATCHES_AHEAD: Final = 3
DRAFT: Final = 2
"""A JPEG is decoded at least this many times larger than the model's images: then no vector of the
demo scenes and of INQUIRE-like photographs is further than a cosine of 0.999 from that of the whole
image (tests/retrieval/test_embedding_pipeline.py)."""
_IMAGES_EACH: Final = 8
"""Images that a reader takes at a time, at most."""
# What torch, the driver and NVIDIA's libraries say where it is no OutOfMemoryError.
_SHORT: Final = ("can't allocate memory", "out of memory", "_STATUS_ALLOC_FAILED")


@dataclass(slots=True)
class Item:
    """An image to embed."""

    image_id: int
    ref: ImageRef
    range_id: int
    vector: np.ndarray | None = None
    """(d,) float16 of unit length, or None if there is a problem."""
    problem: str = ""
    unavailable: bool = False
    """Its root doesn't answer, so the image itself may be fine."""


def reader_count(*, far: bool) -> int:
    """Return how many threads read and decode: settings.EMBEDDING_READERS, or one per core, and
    more if images are `far` (in a bucket), since most threads then wait.
    """
    if settings.EMBEDDING_READERS:
        return int(settings.EMBEDDING_READERS)
    return max(cores(), REQUESTS) if far else cores()


def encode_batches(
    encoder: Encoder, batches: Iterator[list[Item]], *, readers: int
) -> Generator[list[Item]]:
    """Yield each batch, in order, when each item has a vector or a problem.

    Up to BATCHES_AHEAD batches are taken from `batches` before the first is yielded; closing the
    generator drops them. Raises the model's error if it fails on every image.
    """
    ahead: deque[tuple[_Batch, Future[Launched | None]]] = deque()
    with (
        ThreadPoolExecutor(readers, thread_name_prefix="read") as pool,
        ThreadPoolExecutor(1, thread_name_prefix="encode") as device,
    ):
        try:
            while True:
                while len(ahead) < BATCHES_AHEAD and (items := next(batches, None)):
                    batch = _Batch(encoder, items, pool, readers)
                    ahead.append((batch, device.submit(batch.launch)))
                if not ahead:
                    return
                batch, launched = ahead.popleft()
                batch.finish(launched)
                yield batch.items
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            device.shutdown(wait=False, cancel_futures=True)


class _Batch:
    """Items whose images are prepared in one buffer by the threads of a pool."""

    def __init__(
        self, encoder: Encoder, items: list[Item], pool: ThreadPoolExecutor, readers: int
    ) -> None:
        self.items = items
        self._encoder = encoder
        self._pixels = encoder.images.buffer(len(items))
        rows = self._pixels.numpy()
        count = max(1, min(_IMAGES_EACH, len(items) // (4 * readers)))
        self._reading = [
            pool.submit(self._read, items[at : at + count], rows[at : at + count])
            for at in range(0, len(items), count)
        ]
        self._readable: list[Item] = []

    def _read(self, items: list[Item], rows: np.ndarray) -> None:
        for item, row in zip(items, rows, strict=True):
            try:
                data = source_bytes(item.ref)
                images, most = self._encoder.images, settings.IMAGE_MAX_PIXELS
                with open_image(data, max_pixels=most, at_least=DRAFT * images.side) as image:
                    row[:] = images.prepare(image.pixels)
            except (ImageGone, ImageRefused) as error:
                item.problem = str(error)
                item.unavailable = isinstance(error, RootUnavailable)
            except Exception as error:
                item.problem = f"The image cannot be prepared: {error or type(error).__name__}"

    def launch(self) -> Launched | None:
        """Wait for the images and start encoding those that could be read."""
        for future in self._reading:
            future.result()
        readable = [at for at, item in enumerate(self.items) if not item.problem]
        self._readable = [self.items[at] for at in readable]
        if not readable:
            return None
        if len(readable) < len(self.items):
            self._pixels = self._pixels[readable]
        return self._encoder.launch(self._pixels)

    def finish(self, launched: Future[Launched | None]) -> None:
        """Wait for the vectors, and set them on the items."""
        try:
            encoding = launched.result()
            vectors = list(encoding.vectors()) if encoding is not None else []
        except Exception as error:
            _release(error)
            del launched
            vectors = _encode_again(self._encoder, self._readable, self._pixels, error)
        _set_vectors(self._readable, vectors)
        self._pixels = None


def out_of_memory(error: BaseException) -> bool:
    """Whether a batch failed because the device's memory is too small for it."""
    import torch

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _SHORT)
    )


def _release(error: BaseException) -> None:
    """Free what the frames of a failed call still hold, on a GPU most of its memory (PyTorch,
    frequently asked questions on running out of memory).
    """
    known: list[BaseException] = []
    cause: BaseException | None = error
    # An error can be its own cause.
    while cause is not None and cause not in known:
        traceback.clear_frames(cause.__traceback__)
        known.append(cause)
        cause = cause.__cause__ or cause.__context__


def _encode_again(
    encoder: Encoder, items: Sequence[Item], pixels: Any, error: Exception
) -> list[np.ndarray | None]:
    """Encode a failed batch again: in halves if memory was too small, else one image at a time.

    Raises `error` if the model fails on each image and on a gray one too.
    """
    count = len(items)
    if count > 1 and out_of_memory(error):
        encoder.largest_batch = min(encoder.largest_batch, count // 2)
        vectors: list[np.ndarray | None] = []
        for part in (slice(0, count // 2), slice(count // 2, count)):
            try:
                vectors += list(encoder.launch(pixels[part]).vectors())
            except Exception as second_error:
                _release(second_error)
                vectors += _encode_again(encoder, items[part], pixels[part], second_error)
        return vectors
    vectors = [_encode_alone(encoder, *pair) for pair in zip(items, pixels.split(1), strict=True)]
    if all(vector is None for vector in vectors) and not _can_encode(encoder):
        raise error
    return vectors


def _encode_alone(encoder: Encoder, item: Item, pixels: Any) -> np.ndarray | None:
    try:
        vector: np.ndarray = encoder.launch(pixels).vectors()[0]
    except Exception as error:
        item.problem = f"The model failed on this image: {error}"
        return None
    return vector


def _can_encode(encoder: Encoder) -> bool:
    gray = encoder.images.buffer(1)
    gray[:] = 128
    try:
        encoder.launch(gray).vectors()
    except Exception:
        return False
    return True


def _set_vectors(items: Sequence[Item], vectors: Sequence[np.ndarray | None]) -> None:
    """Set the items' vectors, rounded to half precision."""
    encoded_items = [
        (item, vector)
        for item, vector in zip(items, vectors, strict=True)
        if not item.problem and vector is not None
    ]
    if not encoded_items:
        return
    rows = unit_rows(np.stack([vector for _, vector in encoded_items]), scale=True)
    for (item, _), half, fault in zip(encoded_items, rows.vectors, rows.faults, strict=True):
        if fault == Fault.NONE:
            item.vector = half
        else:
            item.problem = "The model gave no finite vector for this image."
