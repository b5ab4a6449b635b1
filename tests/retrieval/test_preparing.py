"""Pictures resized by torch beside open_clip's own steps, which Pillow does."""

import numpy as np
import pytest
from PIL import Image

from retrieval.encoding.model_specs import open_clip_module
from retrieval.encoding.preparing import preparing

MOST_APART = 2
SHARE_APART = 0.01


def steps_of(size, **options):
    open_clip_module()
    from open_clip.transform import image_transform

    *steps, _, _ = image_transform(size, is_train=False, **options).transforms
    return steps


def through(steps, picture):
    for step in steps:
        picture = step(picture)
    return np.asarray(picture)


def picture(width, height):
    """Noise on a gradient: neither all edges nor none."""
    rng = np.random.default_rng(width)
    across = np.linspace(0, 255, width)[None, :, None]
    pixels = across + rng.normal(0, 60, (height, width, 3))
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


@pytest.mark.parametrize("interpolation", ["bicubic", "bilinear"])
@pytest.mark.parametrize("resize_mode", ["shortest", "squash"])
@pytest.mark.parametrize(
    "size",
    [(500, 375), (375, 500), (96, 96), (97, 301), (301, 97), (137, 268), (40, 50), (40, 500),
     (1536, 2048), (225, 224)],
)  # fmt: skip
def test_resized_bytes_are_open_clips(size, resize_mode, interpolation):
    steps = steps_of(96, resize_mode=resize_mode, interpolation=interpolation)
    source = picture(*size)
    expected = through(steps, source)
    prepared = preparing(steps)(source)
    assert prepared.shape == expected.shape == (96, 96, 3)
    assert prepared.dtype == np.uint8
    apart = np.abs(prepared.astype(int) - expected)
    assert apart.max() <= MOST_APART
    assert (apart > 0).mean() < SHARE_APART


@pytest.mark.parametrize(
    "steps", [{"size": 96, "resize_mode": "longest"}, {"size": (80, 120)}], ids=str
)
def test_what_open_clip_resizes_in_its_own_way_is_left_to_it(steps):
    steps = steps_of(**steps)
    source = picture(300, 200)
    assert np.array_equal(preparing(steps)(source), through(steps, source))


def test_without_code_for_bytes_pillow_resizes(monkeypatch):
    import torch

    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "DEFAULT")
    steps = steps_of(96)
    source = picture(300, 200)
    assert np.array_equal(preparing(steps)(source), through(steps, source))


@pytest.mark.parametrize("size", [(1, 300_000), (300_000, 1)])
def test_of_a_very_long_picture_only_what_is_seen_is_resized(size):
    source = Image.new("RGB", size, "red")
    width, height = size
    source.paste("blue", (width // 2 - 1, height // 2 - 1, width // 2 + 1, height // 2 + 1))
    prepared = preparing(steps_of(96))(source)
    assert prepared.shape == (96, 96, 3)
    assert prepared[48, 48].tolist() == [0, 0, 255]
