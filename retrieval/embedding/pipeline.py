"""From files to vectors with the device kept busy: reading, encoding and storing go on at once.

A pool of threads reads, decodes and prepares pictures, one thread encodes what is ready, and the
caller, who alone speaks to the database, chooses what comes next and stores what came out. Where
the model computes on the processor itself, files are read ahead, but pictures are decoded between
its batches, on all cores: the model's threads wait for each other, so that a core taken from one of
them idles all.
"""

from __future__ import annotations

import queue
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final

import numpy as np
from django.conf import settings

from core.cores import cores
from retrieval.encoding.batch_size import BatchSize
from retrieval.encoding.encoders import Encoder, Launched
from retrieval.encoding.unit_rows import Fault, unit_rows
from retrieval.images.decoding import ImageRefused, open_picture
from retrieval.images.gates import Turns
from retrieval.images.root_files import REQUESTS
from retrieval.images.stored import PictureGone, PictureRef, RootUnavailable, source_bytes

PREFETCH_BYTES: Final = 512 * 2**20
"""Prepared pictures that wait or are encoded, at most (two batches are always allowed)."""
DECODED_PIXELS: Final = 64_000_000
"""Decoded pictures at any time, 200 MB; a larger one is decoded alone."""
DRAFT: Final = 2
"""An image is decoded at least this many times larger than the model looks at it: then no vector of
the demo scenes and of INQUIRE-like photographs is further than a cosine of 0.999 from that of the
whole picture (tests/retrieval/test_embedding_pipeline.py)."""
TOGETHER: Final = 8
"""A reader takes so many pictures at a time, at most, of so many pixels together: what it asks and
tells other threads, and Python's lock with it, would cost as much as to decode a small picture."""
TOGETHER_PIXELS: Final = 4_000_000
BATCHES_AHEAD: Final = 3
LARGEST: Final = {"cuda": 1024, "cpu": 64}
FIRST: Final = {"cuda": 16, "cpu": 1}
# What torch, the driver and NVIDIA's libraries say where it is no OutOfMemoryError.
_SHORT: Final = ("can't allocate memory", "out of memory", "_STATUS_ALLOC_FAILED")

_tuned: dict[tuple[str, str], Tuning] = {}


@dataclass(slots=True)
class Item:
    """One image on its way from the disk to the database."""

    image_id: int
    ref: PictureRef
    pixels: int
    share_id: int
    vector: np.ndarray | None = None
    """(d,) float16 of unit length, or None where there is a problem."""
    problem: str = ""
    unavailable: bool = False
    """Its place doesn't answer, so that nothing is known of the image itself."""


@dataclass(slots=True)
class Tuning:
    """What a process has found out about a model on its device."""

    size: BatchSize
    rate: float | None = None
    """Images a second of the whole pipeline, lately."""


def tuning_of(encoder: Encoder, name: str) -> Tuning:
    """Return what this process knows of a model; settings.EMBEDDING_BATCH_SIZE forces the size."""
    forced = settings.EMBEDDING_BATCH_SIZE
    if forced:
        return Tuning(BatchSize.fixed(forced))
    kind = encoder.device.partition(":")[0]
    fitting = PREFETCH_BYTES // (BATCHES_AHEAD * encoder.images.bytes_each)
    largest = max(1, min(LARGEST.get(kind, 64), fitting))
    tuning = Tuning(BatchSize(first=min(FIRST.get(kind, 1), largest), largest=largest))
    return _tuned.setdefault((name, encoder.device), tuning)


def readers_wanted(*, far: bool) -> int:
    """Return how many threads read and decode: settings.EMBEDDING_READERS, or one a core, and more
    where most of them wait for files that are far away.
    """
    if settings.EMBEDDING_READERS:
        return int(settings.EMBEDDING_READERS)
    return max(cores(), REQUESTS) if far else cores()


def out_of_memory(error: BaseException) -> bool:
    """Tell whether a batch failed since the device's memory is too small for it."""
    import torch

    return isinstance(error, torch.OutOfMemoryError | MemoryError) or (
        isinstance(error, RuntimeError) and any(words in str(error) for words in _SHORT)
    )


def _let_go(error: BaseException) -> None:
    """Free what the frames of a call that failed still hold, on a GPU most of its memory: what is
    tried next needs it (PyTorch, frequently asked questions on running out of memory).
    """
    known: list[BaseException] = []
    cause: BaseException | None = error
    # An error can be its own cause.
    while cause is not None and cause not in known:
        traceback.clear_frames(cause.__traceback__)
        known.append(cause)
        cause = cause.__cause__ or cause.__context__


@dataclass(slots=True)
class _Batch:
    number: int
    items: list[Item]
    pixels: Any
    """Prepared pictures (n, height, width, 3), a torch tensor of bytes."""
    reading: list[Future[None]] = field(default_factory=list)
    readable: list[int] = field(default_factory=list)
    launched: Launched | Exception | None = None


class Pipeline:
    """Batches of items go in by `feed` and come out by `next`, in that order, each item with its
    vector or its problem.

    Used as a context: what is still on its way when it ends is dropped.
    """

    def __init__(self, encoder: Encoder, tuning: Tuning, *, readers: int) -> None:
        self._encoder = encoder
        self._tuning = tuning
        self._readers = readers
        self._stop = threading.Event()
        self._on_cpu = encoder.device == "cpu"
        self._width = cores() if self._on_cpu else readers
        self._turns = Turns(self._width)
        if not self._on_cpu:
            self._turns.open()
        self._fed: queue.SimpleQueue[_Batch | None] = queue.SimpleQueue()
        self._done: queue.SimpleQueue[_Batch | BaseException] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(readers, thread_name_prefix="read")
        self._thread = threading.Thread(target=self._encode_all, name="encode", daemon=True)
        self._fed_batches = 0
        self._batches = 0
        self._images = 0
        self._came = time.monotonic()

    def __enter__(self) -> Pipeline:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._turns.open()
        self._fed.put(None)
        self._pool.shutdown()
        self._thread.join()

    @property
    def batch_size(self) -> int:
        return self._tuning.size.now

    @property
    def in_flight(self) -> int:
        """Batches fed that have not come out."""
        return self._batches

    @property
    def seconds_ahead(self) -> float:
        """How long what is in flight will take, as far as that is known."""
        return self._images / self._tuning.rate if self._tuning.rate else 0.0

    def has_room(self) -> bool:
        """Tell whether another batch would keep the device busy rather than lie about."""
        if self._batches < 2:
            return True
        after = (self._images + self.batch_size) * self._encoder.images.bytes_each
        few = self._batches < BATCHES_AHEAD or self._images < 4 * self._readers
        return few and after <= PREFETCH_BYTES

    def feed(self, items: list[Item]) -> None:
        """Have a batch read and encoded."""
        if not self._batches:
            self._came = time.monotonic()
        self._fed_batches += 1
        batch = _Batch(self._fed_batches, items, self._encoder.images.buffer(len(items)))
        rows = batch.pixels.numpy()
        # Several turns for each reader, so that all end at about the same time.
        most = max(1, min(TOGETHER, len(items) // (4 * self._width)))
        batch.reading = [
            self._pool.submit(self._read, batch.number, items[part], rows[part])
            for part in _parts(items, most)
        ]
        self._batches += 1
        self._images += len(items)
        self._fed.put(batch)

    def next(self) -> list[Item]:
        """Wait for the batch fed first; raises what the model raised if it fails on everything."""
        batch = self._done.get()
        if isinstance(batch, BaseException):
            raise batch
        self._batches -= 1
        self._images -= len(batch.items)
        now = time.monotonic()
        rate = len(batch.items) / max(now - self._came, 1e-6)
        before = self._tuning.rate
        self._tuning.rate = rate if before is None else 0.7 * before + 0.3 * rate
        self._came = now
        return batch.items

    def _read(self, number: int, items: list[Item], rows: np.ndarray) -> None:
        """Bring prepared pictures (n, height, width, 3) to their places in the batch."""
        read = [self._source(item) for item in items]
        with self._turns.held(number):
            for item, data, row in zip(items, read, rows, strict=True):
                if data is not None and not self._stop.is_set():
                    self._prepare(item, data, row)

    def _source(self, item: Item) -> bytes | None:
        """The file's bytes, or None where there is a problem."""
        if self._stop.is_set():
            return None
        try:
            return source_bytes(item.ref)
        except RootUnavailable as error:
            item.problem, item.unavailable = str(error), True
        except PictureGone as error:
            item.problem = str(error)
        except Exception as error:
            item.problem = _unprepared(error)
        return None

    def _prepare(self, item: Item, data: bytes, row: np.ndarray) -> None:
        images = self._encoder.images
        try:
            with open_picture(
                data, max_pixels=settings.IMAGE_MAX_PIXELS, at_least=DRAFT * images.side
            ) as picture:
                row[:] = images.prepare(picture.pixels)
        except ImageRefused as error:
            item.problem = str(error)
        except Exception as error:
            item.problem = _unprepared(error)

    def _encode_all(self) -> None:
        """The thread of the device: launches a batch, and only then looks after the one before."""
        ahead: _Batch | None = None
        try:
            while not self._stop.is_set():
                if ahead is not None and self._fed.empty():
                    self._finish(ahead)
                    ahead = None
                batch = self._fed.get()
                if batch is None:
                    break
                if ahead is not None and not all(future.done() for future in batch.reading):
                    self._finish(ahead)
                    ahead = None
                if self._on_cpu:
                    self._turns.begin(batch.number)
                wait(batch.reading)
                if self._stop.is_set():
                    break
                self._launch(batch)
                if ahead is not None:
                    self._finish(ahead)
                ahead = batch
                if self._on_cpu:
                    self._finish(batch)
                    ahead = None
        except BaseException as error:
            self._done.put(error)

    def _launch(self, batch: _Batch) -> None:
        batch.readable = [at for at, item in enumerate(batch.items) if not item.problem]
        if not batch.readable:
            return
        if len(batch.readable) < len(batch.items):
            batch.pixels = batch.pixels[batch.readable]
        try:
            batch.launched = self._encoder.launch(batch.pixels)
        except Exception as error:
            _let_go(error)
            batch.launched = error

    def _finish(self, batch: _Batch) -> None:
        items = [batch.items[at] for at in batch.readable]
        vectors: Sequence[np.ndarray | None] = []
        if items:
            try:
                if isinstance(batch.launched, Exception):
                    raise batch.launched
                assert batch.launched is not None
                vectors = list(batch.launched.vectors())
                self._tuning.size.measured(len(items), batch.launched.seconds())
            except Exception as error:
                _let_go(error)
                batch.launched = None
                vectors = self._after_failure(items, batch.pixels, error)
        _keep_halves(items, vectors)
        batch.pixels = None
        self._done.put(batch)

    def _after_failure(
        self, items: list[Item], pixels: Any, error: Exception
    ) -> list[np.ndarray | None]:
        """Encode in halves what was too much for the memory, and one by one what failed otherwise.

        Raises `error` where the model fails on each image and on a grey one too: then it is the
        model that is at fault.
        """
        count = len(items)
        if count > 1 and out_of_memory(error):
            self._tuning.size.short_of_memory(count)
            vectors: list[np.ndarray | None] = []
            for part in (slice(0, count // 2), slice(count // 2, count)):
                try:
                    vectors += list(self._encoder.launch(pixels[part]).vectors())
                except Exception as again:
                    _let_go(again)
                    vectors += self._after_failure(items[part], pixels[part], again)
            return vectors
        vectors = [self._alone(item, one) for item, one in zip(items, pixels.split(1), strict=True)]
        if all(vector is None for vector in vectors) and not self._works():
            raise error
        return vectors

    def _alone(self, item: Item, pixels: Any) -> np.ndarray | None:
        try:
            vector: np.ndarray = self._encoder.launch(pixels).vectors()[0]
        except Exception as error:
            item.problem = f"The model failed on this image: {error}"
            return None
        return vector

    def _works(self) -> bool:
        grey = self._encoder.images.buffer(1)
        grey[:] = 128
        try:
            self._encoder.launch(grey).vectors()
        except Exception:
            return False
        return True


def _parts(items: Sequence[Item], most: int) -> Iterator[slice]:
    """Divide a batch into parts of at most `most` pictures, or TOGETHER_PIXELS, or one."""
    begin, pixels = 0, 0
    for at, item in enumerate(items):
        if at > begin and (at == begin + most or pixels + item.pixels > TOGETHER_PIXELS):
            yield slice(begin, at)
            begin, pixels = at, 0
        pixels += item.pixels
    yield slice(begin, len(items))


def _unprepared(error: Exception) -> str:
    return f"The image cannot be prepared: {error or type(error).__name__}"


def _keep_halves(items: list[Item], vectors: Sequence[np.ndarray | None]) -> None:
    """Give items their vectors as they are stored, in half precision."""
    there = [
        (item, vector) for item, vector in zip(items, vectors, strict=True) if not item.problem
    ]
    if not there:
        return
    rows = unit_rows(np.stack([vector for _, vector in there if vector is not None]), scale=True)
    for (item, _), half, fault in zip(there, rows.vectors, rows.faults, strict=True):
        if fault == Fault.NONE:
            item.vector = half
        else:
            item.problem = "The model gave no finite vector for this image."
