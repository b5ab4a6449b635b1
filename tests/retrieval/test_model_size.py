"""What encoding takes: counted without numbers, and as others count it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from retrieval.encoding.encoders import load_encoder
from retrieval.encoding.loading import load_open_clip
from retrieval.encoding.model_size import ModelSize
from retrieval.encoding.text import load_text_encoder
from tests.toy_model import CONFIG, toy_model


def one_layer(*, tokens: int, width: int, output: int) -> int:
    """Operations of a transformer's layer, whose hidden layer has four times the width, and of the
    projection of one vector."""
    linear = tokens * (3 + 1 + 4 + 4) * width**2
    attention = 2 * tokens**2 * width
    return 2 * (linear + attention + width * output)


def test_the_toys_operations_are_those_of_its_matrix_products() -> None:
    config: Any = CONFIG
    vision, text, output = config["vision_cfg"], config["text_cfg"], config["embed_dim"]
    width, patch = vision["width"], vision["patch_size"]
    patches = (vision["image_size"] // patch) ** 2
    convolution = 2 * patches * width * 3 * patch**2
    image = convolution + one_layer(tokens=patches + 1, width=width, output=output)
    caption = one_layer(tokens=text["context_length"], width=text["width"], output=output)
    compiler = "torch._dynamo" in sys.modules
    for encoder in (load_encoder(toy_model()), load_text_encoder(toy_model())):
        assert (encoder.size.image_flops, encoder.size.text_flops) == (image, caption)
    assert ("torch._dynamo" in sys.modules) == compiler


@pytest.mark.parametrize(
    ("name", "billions"),
    [("ViT-B-32", (8.82, 5.96)), ("ViT-B-16", (35.13, 5.96)), ("RN50", (12.22, 5.96))],
)
def test_the_operations_are_those_that_openclip_publishes(
    name: str, billions: tuple[float, float]
) -> None:
    """The figures of open_clip's docs/model_profile.csv."""
    import torch

    with torch.device("meta"):
        model, _, tokenizer = load_open_clip(f"{name}/random", "meta")
    size = ModelSize(model, tokenizer)
    counted = [(flops or 0) / 1e9 for flops in (size.image_flops, size.text_flops)]
    assert counted == pytest.approx(billions, abs=0.005)
