"""Files become vectors in batches; what is wrong with one image or one batch stops no other."""

import copy
import threading
import time

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from retrieval.embedding import pipeline as embedding_pipeline
from retrieval.embedding.pipeline import DRAFT, Item, encode_batches, out_of_memory
from retrieval.encoding.encoders import load_encoder
from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.images import decoding
from retrieval.images.decoding import Budget
from retrieval.images.files import ImageRef, source_bytes
from retrieval.images.storage import image_store
from tests.retrieval.making import decoded, jpeg
from tests.retrieval.making import encoded as image_file

LEAST_COSINE = 0.999


@pytest.fixture
def encoder(tiny_model):
    """Tests may change what it has learned of its device."""
    return copy.copy(load_encoder(tiny_model))


@pytest.fixture
def items(store):
    """Makes items of stored images of different colours."""

    def make(count, first=0):
        made = []
        for number in range(first, first + count):
            data = jpeg((7 * number % 256, 90, 40), (60, 40))
            ref = ImageRef(image_store(data).sha256, None, f"{number}.jpg")
            made.append(Item(number, ref, range_id=1))
        return made

    return make


def through(encoder, batches, *, readers=2):
    """All items as they come out, in order."""
    return [
        item for batch in encode_batches(encoder, iter(batches), readers=readers) for item in batch
    ]


def whole(data):
    return decoded(data, max_pixels=10**9).pixels


def assert_near(items, encoder, images):
    expected = encoder.encode_images(images)
    assert [item.problem for item in items] == [""] * len(images)
    cosines = (np.stack([item.vector for item in items]) * expected).sum(axis=1)
    assert cosines.min() > LEAST_COSINE


def test_what_goes_in_comes_out_in_order_with_the_encoders_vectors(encoder, items):
    batches = [items(5), items(1, 5), items(4, 6)]
    came = through(encoder, batches)
    assert [item.image_id for item in came] == list(range(10))
    assert_near(came, encoder, [whole(jpeg((7 * n % 256, 90, 40), (60, 40))) for n in range(10)])
    assert {item.vector.dtype for item in came} == {np.dtype(np.float16)}


def test_the_next_batch_is_launched_before_the_vectors_of_the_one_before_are_awaited(
    encoder, items, monkeypatch
):
    order, launched = [], threading.Semaphore(0)
    launch, vectors = ImageTower.launch, Launched.vectors

    def noted_launch(self, pixels):
        order.append("launch")
        launched.release()
        return launch(self, pixels)

    def noted_vectors(self):
        if "vectors" not in order:
            assert all(launched.acquire(timeout=30) for _ in range(2))
        order.append("vectors")
        return vectors(self)

    monkeypatch.setattr(ImageTower, "launch", noted_launch)
    monkeypatch.setattr(Launched, "vectors", noted_vectors)
    came = through(encoder, [items(2, 2 * n) for n in range(4)])
    assert [item.image_id for item in came] == list(range(8))
    assert order[:2] == ["launch"] * 2
    assert sorted(order) == ["launch"] * 4 + ["vectors"] * 4


def test_too_little_memory_halves_the_batch_until_it_fits(encoder, items, monkeypatch):
    launch = ImageTower.launch

    def small_device(self, pixels):
        if len(pixels) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return launch(self, pixels)

    monkeypatch.setattr(ImageTower, "launch", small_device)
    came = through(encoder, [items(12)])
    assert [item.problem for item in came] == [""] * 12
    assert encoder.largest_batch == 3


@pytest.mark.parametrize(
    "words",
    [
        "CUDA error: out of memory",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes.",
    ],
)
def test_a_lack_of_memory_is_known_by_its_words_too(words):
    assert out_of_memory(RuntimeError(words))
    assert not out_of_memory(ValueError(words))
    assert not out_of_memory(RuntimeError("CUDA error: an illegal memory access was encountered"))


def test_an_image_too_large_for_the_device_alone_is_its_own_error(encoder, items, monkeypatch):
    launch = ImageTower.launch

    def full(self, pixels):
        if (pixels[:, 0, 0, 0].float() - 7 * 3).abs().min() < 3:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return launch(self, pixels)

    monkeypatch.setattr(ImageTower, "launch", full)
    came = through(encoder, [items(8)])
    problems = {item.image_id: item.problem for item in came if item.problem}
    assert problems == {3: "The model failed on this image: CUDA out of memory."}


def test_broken_and_missing_files_leave_the_rest_of_their_batch(encoder, items, store):
    fed = items(6)
    (source,) = store.rglob(f"{fed[1].ref.sha256}.source")
    source.unlink()
    (source,) = store.rglob(f"{fed[4].ref.sha256}.source")
    source.write_bytes(b"no image")
    came = through(encoder, [fed, items(1, 6)])
    assert [item.image_id for item in came if item.problem] == [1, 4]
    good = [item for item in came if not item.problem]
    images = [whole(jpeg((7 * item.image_id % 256, 90, 40), (60, 40))) for item in good]
    assert_near(good, encoder, images)


def test_photographs_decoded_smaller_keep_their_vectors(encoder, store, shared_dir):
    data = [path.read_bytes() for path in sorted((shared_dir / "photos").rglob("*.jpg"))[:40]]
    smaller = decoded(data[0], max_pixels=10**9, at_least=DRAFT * encoder.images.side)
    assert smaller.pixels.width < smaller.width
    fed = [
        Item(n, ImageRef(image_store(one).sha256, None, ""), range_id=1)
        for n, one in enumerate(data)
    ]
    came = through(encoder, [fed])
    assert_near(came, encoder, [whole(one) for one in data])


def test_few_large_images_are_decoded_at_once(encoder, store, monkeypatch):
    monkeypatch.setattr(decoding, "decoded_at_once", Budget(2_500_000))
    now, most = [], []
    prepare = ImageTower.prepare

    def watched(*args):
        now.append(True)
        most.append(len(now))
        time.sleep(0.01)
        try:
            return prepare(*args)
        finally:
            now.pop()

    monkeypatch.setattr(ImageTower, "prepare", watched)
    large = image_file(PillowImage.new("L", (1100, 1000)), "PNG")
    ref = ImageRef(image_store(large).sha256, None, "large.png")
    # What the database says of their size doesn't count.
    fed = [Item(number, ref, range_id=1) for number in range(12)]
    came = through(encoder, [fed], readers=6)
    assert max(most) <= 2
    assert [item.problem for item in came] == [""] * 12


def test_few_batches_are_taken_ahead(encoder, items):
    taken = []

    def batches():
        for number in range(10):
            taken.append(number)
            yield items(2, 2 * number)

    for number, _ in enumerate(encode_batches(encoder, batches(), readers=1)):
        assert len(taken) <= number + embedding_pipeline.BATCHES_AHEAD
    assert taken == list(range(10))


def test_what_is_on_its_way_when_it_ends_is_dropped_and_no_thread_stays(
    encoder, items, monkeypatch
):
    def slow(ref):
        time.sleep(0.05)
        return source_bytes(ref)

    monkeypatch.setattr(embedding_pipeline, "source_bytes", slow)
    before = set(threading.enumerate())
    running = encode_batches(encoder, iter([items(4), items(40, 4), items(40, 44)]), readers=3)
    assert [item.image_id for item in next(running)] == [0, 1, 2, 3]
    running.close()
    assert set(threading.enumerate()) <= before


def test_a_thin_image_is_not_enlarged_to_be_cropped(encoder):
    thin = PillowImage.new("RGB", (60_000, 2), (9, 90, 40))
    assert (encoder.images.prepare(thin) == (9, 90, 40)).all()
