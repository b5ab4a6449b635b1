"""A model whose linear layers are packed gives the same vectors, or is left as it was."""

import copy

import numpy as np
import torch
from torch import nn

from retrieval.encoding.encoders import load_open_clip
from retrieval.encoding.image_tower import ImageTower
from retrieval.encoding.packed_linears import PackedLinear, pack_linears


def kinds(network, kind):
    return sum(type(module) is kind for module in network.modules())


@torch.inference_mode()
def outputs(network, example):
    return network(example).numpy()


def test_linear_layers_are_packed():
    model, preprocess, _ = load_open_clip("ViT-B-32/random", "cpu")
    example = torch.randn(2, 3, 224, 224)
    before = outputs(model.visual, example)
    ImageTower(model, preprocess, "cpu")
    assert kinds(model.visual, PackedLinear) == 24
    assert kinds(model.transformer, PackedLinear) == 0
    np.testing.assert_allclose(outputs(model.visual, example), before, atol=1e-4)


class Peeking(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = nn.Linear(64, 64)
        self.other = nn.Linear(64, 64)

    def forward(self, rows):
        return self.other(rows @ self.seen.weight)


def test_a_network_that_needs_its_weights_keeps_them():
    network, example = Peeking().eval(), torch.randn(2, 64)
    before = outputs(network, example)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)


def test_packed_layers_that_give_something_else_are_not_kept(monkeypatch):
    network = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).eval()
    example = torch.randn(2, 64)
    before = outputs(network, example)
    whole = copy.deepcopy(network)
    assert pack_linears(whole, example) == 2
    np.testing.assert_allclose(outputs(whole, example), before, atol=1e-5)
    monkeypatch.setattr(PackedLinear, "forward", lambda layer, rows: rows[:, :8] * 0)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)
