"""A model that was rearranged to be faster gives the same vectors, or is left as it was."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from retrieval.encoding import packed_linears
from retrieval.encoding.batch_norms import fold_batch_norms
from retrieval.encoding.encoders import load_open_clip
from retrieval.encoding.image_tower import ImageTower
from retrieval.encoding.packed_linears import PackedLinear, pack_linears


@pytest.fixture
def packing(monkeypatch):
    """Packing is worthwhile on whatever machine this is."""
    monkeypatch.setattr(packed_linears, "_GAIN", 0.0)


def kinds(network, kind):
    return sum(type(module) is kind for module in network.modules())


@torch.inference_mode()
def outputs(network, example):
    return network(example).numpy()


def test_the_demo_models_batch_norms_are_folded():
    model, preprocess, _ = load_open_clip("demo", "cpu")
    tower = ImageTower(model, preprocess, "cpu")
    pixels = torch.randint(0, 256, (5, 96, 96, 3), dtype=torch.uint8)
    before = tower.launch(pixels).vectors()
    norms = kinds(model.visual, nn.BatchNorm2d)
    assert norms > 10
    tower.quicken(compiled=False)
    assert kinds(model.visual, nn.BatchNorm2d) == 0
    np.testing.assert_allclose(tower.launch(pixels).vectors(), before, atol=1e-4)


class Branches(nn.Module):
    """Only the first of its batch norms can be folded."""

    def __init__(self):
        super().__init__()
        self.one, self.two, self.twice = (nn.Conv2d(3, 3, 1) for _ in range(3))
        self.norm_one, self.norm_two, self.norm_three = (nn.BatchNorm2d(3) for _ in range(3))

    def forward(self, pixels):
        first = self.norm_one(self.one(pixels))
        second = self.two(first)
        return self.norm_two(second) + second + self.norm_three(self.twice(self.twice(first)))


def trained(network):
    """Not as it was made, where a norm does next to nothing."""
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for values in (module.running_mean, module.running_var, module.weight, module.bias):
                nn.init.uniform_(values, 0.5, 2)
    return network.eval().requires_grad_(False)


def test_a_norm_of_what_others_see_too_is_not_folded():
    network = trained(Branches())
    example = torch.randn(2, 3, 8, 8)
    before = outputs(network, example)
    assert fold_batch_norms(network) == 1
    assert kinds(network, nn.BatchNorm2d) == 2
    np.testing.assert_allclose(outputs(network, example), before, rtol=1e-4, atol=1e-4)


def test_a_network_that_cannot_be_traced_is_left():
    class Deciding(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Branches()

        def forward(self, pixels):
            return self.inner(pixels) if pixels.sum() > 0 else pixels

    network = trained(Deciding())
    assert fold_batch_norms(network) == 0
    assert kinds(network, nn.BatchNorm2d) == 3


def test_linear_layers_are_packed(packing):
    model, preprocess, _ = load_open_clip("ViT-B-32/random", "cpu")
    tower = ImageTower(model, preprocess, "cpu")
    pixels = torch.cat([tower.example(), 255 - tower.example()])
    before = tower.launch(pixels).vectors()
    tower.quicken(compiled=False)
    assert kinds(model.visual, PackedLinear) == 24
    assert kinds(model.transformer, PackedLinear) == 0
    np.testing.assert_allclose(tower.launch(pixels).vectors(), before, atol=1e-5)


def test_layers_that_gain_nothing_are_left(monkeypatch):
    monkeypatch.setattr(packed_linears, "_GAIN", 1e9)
    network = nn.Sequential(nn.Linear(64, 64))
    assert pack_linears(network.eval(), torch.randn(2, 64)) == 0
    assert kinds(network, nn.Linear) == 1


class Peeking(nn.Module):
    def __init__(self):
        super().__init__()
        self.seen = nn.Linear(64, 64)
        self.other = nn.Linear(64, 64)

    def forward(self, rows):
        return self.other(rows @ self.seen.weight)


def test_a_network_that_needs_its_weights_keeps_them(packing):
    network, example = Peeking().eval(), torch.randn(2, 64)
    before = outputs(network, example)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)


def test_packed_layers_that_give_something_else_are_not_kept(packing, monkeypatch):
    network = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 8)).eval()
    example = torch.randn(2, 64)
    before = outputs(network, example)
    whole = copy.deepcopy(network)
    assert pack_linears(whole, example) == 2
    np.testing.assert_allclose(outputs(whole, example), before, atol=1e-5)
    monkeypatch.setattr(PackedLinear, "forward", lambda layer, rows: rows[:, :8] * 0)
    assert pack_linears(network, example) == 0
    assert np.array_equal(outputs(network, example), before)
