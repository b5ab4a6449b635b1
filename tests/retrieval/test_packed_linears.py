"""A model whose linear layers are packed gives the same vectors, or is left as it was."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from retrieval.encoding.encoders import load_open_clip
from retrieval.encoding.image_tower import ImageTower
from retrieval.encoding.packed_linears import PackedLinear, pack_linears

pytestmark = pytest.mark.pure


def packed(network: nn.Module) -> int:
    return sum(type(module) is PackedLinear for module in network.modules())


@torch.inference_mode()
def outputs(network: nn.Module, example: torch.Tensor) -> np.ndarray:
    return np.asarray(network(example).numpy())


def test_the_linear_layers_of_the_image_side_are_packed(tiny_model: str) -> None:
    model, preprocess, _ = load_open_clip(tiny_model, "cpu")
    example = torch.randn(2, 3, 32, 32)
    before = outputs(model.visual, example)
    ImageTower(model, preprocess, "cpu")
    assert packed(model.visual) == 2
    assert packed(model.transformer) == 0
    np.testing.assert_allclose(outputs(model.visual, example), before, atol=1e-4)


class Peeking(nn.Module):
    """A network that reads the weights of its first layer."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = nn.Linear(64, 64)
        self.other = nn.Linear(64, 64)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return self.other(rows @ self.seen.weight)


def test_a_network_that_needs_its_weights_keeps_them() -> None:
    network, example = Peeking().eval(), torch.randn(2, 64)
    before = outputs(network, example)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)


def test_packed_layers_that_give_something_else_are_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    network = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).eval()
    example = torch.randn(2, 64)
    before = outputs(network, example)
    good = copy.deepcopy(network)
    assert pack_linears(good, example) == 2
    np.testing.assert_allclose(outputs(good, example), before, atol=1e-5)
    monkeypatch.setattr(PackedLinear, "forward", lambda layer, rows: rows[:, :8] * 0)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)
