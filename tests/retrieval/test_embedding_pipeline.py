"""Files become vectors in batches; what is wrong with one picture or one batch stops no other."""

import copy
import threading
import time
import weakref

import numpy as np
import pytest
import torch
from PIL import Image as PillowImage

from demo.corpus import corpus_scene
from demo.drawing import render
from retrieval.embedding import pipeline as embedding_pipeline
from retrieval.embedding.pipeline import (
    DRAFT,
    Item,
    Pipeline,
    Tuning,
    out_of_memory,
    readers_wanted,
    tuning_of,
)
from retrieval.encoding.batch_size import BatchSize
from retrieval.encoding.encoders import load_encoder, load_open_clip
from retrieval.encoding.image_tower import ImageTower, Launched
from retrieval.images import decoding as imaging
from retrieval.images.decoding import open_picture
from retrieval.images.gates import Budget
from retrieval.images.root_files import REQUESTS
from retrieval.images.storage import picture_store
from retrieval.images.stored import PictureRef, source_bytes
from tests.retrieval.making import decoded, encoded, jpeg

LEAST_COSINE = 0.999


@pytest.fixture
def encoder(tiny_model):
    return load_encoder(tiny_model)


@pytest.fixture
def items(store):
    """Makes items of stored pictures of different colours."""

    def make(count, first=0):
        made = []
        for number in range(first, first + count):
            data = jpeg((7 * number % 256, 90, 40), (60, 40))
            ref = PictureRef(picture_store(data).sha256, None, f"{number}.jpg")
            made.append(Item(number, ref, 2400, share_id=1))
        return made

    return make


def through(encoder, batches, *, size=12, readers=2):
    """All items as they come out, in order, and what the pipeline learnt."""
    tuning = Tuning(BatchSize.fixed(size))
    came = []
    with Pipeline(encoder, tuning, readers=readers) as pipeline:
        for batch in batches:
            pipeline.feed(batch)
        while pipeline.in_flight:
            came += pipeline.next()
    return came, tuning


def whole(data):
    return decoded(data, max_pixels=10**9).pixels


def assert_near(items, encoder, pictures):
    expected = encoder.encode_images(pictures)
    assert [item.problem for item in items] == [""] * len(pictures)
    cosines = (np.stack([item.vector for item in items]) * expected).sum(axis=1)
    assert cosines.min() > LEAST_COSINE


def test_what_goes_in_comes_out_in_order_with_the_encoders_vectors(encoder, items):
    batches = [items(5), items(1, 5), items(4, 6)]
    came, tuning = through(encoder, batches)
    assert [item.image_id for item in came] == list(range(10))
    assert_near(came, encoder, [whole(jpeg((7 * n % 256, 90, 40), (60, 40))) for n in range(10)])
    assert {item.vector.dtype for item in came} == {np.dtype(np.float16)}
    assert tuning.rate > 0


def test_a_device_that_works_by_itself_is_given_the_next_batch_at_once(encoder, items, monkeypatch):
    # Like a GPU's: the vectors of a batch are asked for after the next was launched.
    device = copy.copy(encoder)
    device.device = "device"
    order = []
    launch, vectors = ImageTower.launch, Launched.vectors
    monkeypatch.setattr(
        ImageTower, "launch", lambda self, pixels: order.append("launch") or launch(self, pixels)
    )
    monkeypatch.setattr(Launched, "vectors", lambda self: order.append("vectors") or vectors(self))
    read = threading.Event()
    waiting = embedding_pipeline.wait

    def wait_for_all(futures):
        read.wait(10)
        return waiting(futures)

    monkeypatch.setattr(embedding_pipeline, "wait", wait_for_all)
    with Pipeline(device, Tuning(BatchSize.fixed(2)), readers=2) as pipeline:
        batches = [items(2, 2 * n) for n in range(3)]
        for batch in batches:
            pipeline.feed(batch)
        pipeline._pool.shutdown(wait=True)
        read.set()
        came = [item.image_id for _ in batches for item in pipeline.next()]
    assert came == list(range(6))
    assert order == ["launch", "launch", "vectors", "launch", "vectors", "vectors"]


def test_too_little_memory_halves_the_batch_until_it_fits(encoder, items, monkeypatch):
    launch = ImageTower.launch

    def small_device(self, pixels):
        if len(pixels) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return launch(self, pixels)

    monkeypatch.setattr(ImageTower, "launch", small_device)
    came, tuning = through(encoder, [items(12)])
    assert [item.problem for item in came] == [""] * 12
    assert tuning.size.now == 3


def test_memory_that_runs_out_while_the_device_works_is_met_too(encoder, items, monkeypatch):
    vectors, failed = Launched.vectors, []

    def late(self):
        if not failed:
            failed.append(True)
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return vectors(self)

    monkeypatch.setattr(Launched, "vectors", late)
    came, tuning = through(encoder, [items(8)], size=8)
    assert [item.problem for item in came] == [""] * 8
    assert tuning.size.now == 4


def test_what_a_failed_batch_held_is_free_before_its_halves_are_tried(encoder, items, monkeypatch):
    launch, made, held = ImageTower.launch, [], []

    def small_device(self, pixels):
        held.append(sum(one() is not None for one in made))
        activations = torch.empty(len(pixels))
        made.append(weakref.ref(activations))
        if len(pixels) > 2:
            error = torch.OutOfMemoryError("CUDA out of memory.")
            raise error from error
        return launch(self, pixels)

    monkeypatch.setattr(ImageTower, "launch", small_device)
    came, tuning = through(encoder, [items(12)])
    assert [item.problem for item in came] == [""] * 12
    assert tuning.size.now == 1
    assert len(held) == 15
    assert not any(held)


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
    came, _ = through(encoder, [items(8)])
    problems = {item.image_id: item.problem for item in came if item.problem}
    assert problems == {3: "The model failed on this image: CUDA out of memory."}


def test_broken_and_missing_files_leave_the_rest_of_their_batch(encoder, items, store):
    fed = items(6)
    (source,) = store.rglob(f"{fed[1].ref.sha256}.source")
    source.unlink()
    (source,) = store.rglob(f"{fed[4].ref.sha256}.source")
    source.write_bytes(b"no picture")
    came, _ = through(encoder, [fed, items(1, 6)])
    assert [item.image_id for item in came if item.problem] == [1, 4]
    good = [item for item in came if not item.problem]
    pictures = [whole(jpeg((7 * item.image_id % 256, 90, 40), (60, 40))) for item in good]
    assert_near(good, encoder, pictures)


def test_a_jpeg_decoded_smaller_keeps_its_vector(encoder, store):
    demo = load_encoder("demo")
    pictures = [render(corpus_scene(number), side) for number, side in enumerate((400, 610, 800))]
    data = [encoded(picture, "JPEG", quality=90) for picture in pictures]
    side = decoded(data[0], max_pixels=10**9, at_least=DRAFT * demo.images.side).pixels.width
    assert side == 200
    fed = [
        Item(n, PictureRef(picture_store(one).sha256, None, ""), 10**6, share_id=1)
        for n, one in enumerate(data)
    ]
    came, _ = through(demo, [fed])
    assert_near(came, demo, [whole(one) for one in data])


def test_photographs_decoded_smaller_keep_their_vectors(encoder, store, shared_dir):
    data = [path.read_bytes() for path in sorted((shared_dir / "photos").rglob("*.jpg"))[:40]]
    smaller = decoded(data[0], max_pixels=10**9, at_least=DRAFT * encoder.images.side)
    assert smaller.pixels.width < smaller.width
    fed = [
        Item(n, PictureRef(picture_store(one).sha256, None, ""), 10**6, share_id=1)
        for n, one in enumerate(data)
    ]
    came, _ = through(encoder, [fed], size=40)
    assert_near(came, encoder, [whole(one) for one in data])


def test_few_large_pictures_are_decoded_at_once(encoder, store, monkeypatch):
    monkeypatch.setattr(imaging, "_decoded", Budget(2_500_000))
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
    large = encoded(PillowImage.new("L", (1100, 1000)), "PNG")
    ref = PictureRef(picture_store(large).sha256, None, "large.png")
    # What the database says of their size doesn't count.
    fed = [Item(number, ref, 2400, share_id=1) for number in range(12)]
    came, _ = through(encoder, [fed], readers=6)
    assert max(most) == 2
    assert [item.problem for item in came] == [""] * 12


@pytest.mark.parametrize(("pixels", "together"), [(2400, 8), (1_500_000, 2), (10**8, 1)])
def test_few_pictures_or_pixels_are_read_together(encoder, items, monkeypatch, pixels, together):
    monkeypatch.setattr(embedding_pipeline, "cores", lambda: 1)
    steps = []

    def noted(kind, function):
        def step(*args, **options):
            steps.append(kind)
            return function(*args, **options)

        return step

    monkeypatch.setattr(embedding_pipeline, "source_bytes", noted("read", source_bytes))
    monkeypatch.setattr(embedding_pipeline, "open_picture", noted("decode", open_picture))
    fed = items(32)
    for item in fed:
        item.pixels = pixels
    came, _ = through(encoder, [fed], readers=1)
    assert steps == (["read"] * together + ["decode"] * together) * (32 // together)
    assert [item.problem for item in came] == [""] * 32


def test_there_are_more_readers_where_files_are_far_unless_somebody_chose(monkeypatch, settings):
    monkeypatch.setattr(embedding_pipeline, "cores", lambda: 4)
    assert readers_wanted(far=False) == 4
    assert readers_wanted(far=True) == REQUESTS
    monkeypatch.setattr(embedding_pipeline, "cores", lambda: 64)
    assert readers_wanted(far=True) == 64
    settings.EMBEDDING_READERS = 3
    assert readers_wanted(far=True) == readers_wanted(far=False) == 3


def test_prefetching_is_bounded_in_bytes_and_batches(encoder, items, monkeypatch):
    with Pipeline(encoder, Tuning(BatchSize.fixed(4)), readers=1) as pipeline:
        for _ in range(3):
            assert pipeline.has_room()
            pipeline.feed(items(4))
        assert not pipeline.has_room()
    monkeypatch.setattr(embedding_pipeline, "PREFETCH_BYTES", 11 * encoder.images.bytes_each)
    with Pipeline(encoder, Tuning(BatchSize.fixed(4)), readers=1) as pipeline:
        for _ in range(2):
            assert pipeline.has_room()
            pipeline.feed(items(4))
        assert not pipeline.has_room()


def test_what_is_on_its_way_when_it_ends_is_dropped_and_no_thread_stays(encoder, items):
    before = set(threading.enumerate())
    with Pipeline(encoder, Tuning(BatchSize.fixed(4)), readers=3) as pipeline:
        pipeline.feed(items(4))
        pipeline.feed(items(4, 4))
        pipeline.next()
    assert set(threading.enumerate()) <= before


def test_the_size_that_somebody_chose_is_used_and_else_one_is_remembered(encoder, settings):
    settings.EMBEDDING_BATCH_SIZE = 5
    assert tuning_of(encoder, "chosen").size.now == 5
    settings.EMBEDDING_BATCH_SIZE = 0
    found = tuning_of(encoder, "found")
    assert not found.size.settled
    assert tuning_of(encoder, "found") is found


def test_a_compiled_model_sees_few_sizes_and_gives_the_same(tiny_model, monkeypatch):
    sizes = []

    def program(function):
        return lambda floats: sizes.append(len(floats)) or function(floats)

    pixels = torch.randint(0, 256, (11, 32, 32, 3), dtype=torch.uint8)
    model, preprocess, _ = load_open_clip(tiny_model, "cpu")
    compiled = ImageTower(model, preprocess, "cpu")
    expected = compiled.launch(pixels).vectors()
    monkeypatch.setattr(torch, "compile", program)
    compiled.quicken(compiled=True)
    compiled.quicken(compiled=True)
    for count in (1, 3, 5, 11):
        found = compiled.launch(pixels[:count]).vectors()
        np.testing.assert_allclose(found, expected[:count], atol=1e-5)
    assert sizes == [1, 4, 8, 16]
