"""Linear layers whose weights lie as oneDNN's kernels read them, for models on the processor.

PyTorch multiplies by Intel's MKL, which doesn't use all of other makers' processors, and arranges
the weights anew at each call. The functions are those that torch.compile puts into a frozen
program.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

import torch

# A packed layer must be so many times as fast as torch's own.
_GAIN: Final = 1.1
_ROWS: Final = 256
_TRIES: Final = 10
# The results' mean difference, beside their mean size.
_NEAR: Final = 1e-4


class PackedLinear(torch.nn.Module):
    """What `linear` computes; differs by rounding."""

    def __init__(self, linear: torch.nn.Linear) -> None:
        super().__init__()
        self._packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.detach(), None)
        self._bias = linear.bias

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """(…, in) to (…, out)."""
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(
            rows, self._packed, self._bias, "none", [], ""
        )
        return product


@torch.inference_mode()
def pack_linears(network: torch.nn.Module, example: torch.Tensor) -> int:
    """Pack, in place, the linear layers of a network in evaluation mode on the processor; return
    how many.

    None where that isn't faster here, which its largest layer tells, or where the network, asked
    with an example, needs a layer's weights themselves or gives another result.
    """
    linears = {
        name: module
        for name, module in network.named_modules()
        # Not its subclasses, of which other modules use the weights.
        if type(module) is torch.nn.Linear and module.weight.dtype is torch.float32
    }
    if not linears or not torch.backends.mkldnn.is_available():
        return 0
    largest = max(linears.values(), key=lambda linear: linear.weight.numel())
    rows = torch.randn(_ROWS, largest.in_features)
    own, packed = _seconds((largest, PackedLinear(largest)), rows)
    if own < _GAIN * packed:
        return 0
    wanted = network(example)
    for name, linear in linears.items():
        network.set_submodule(name, PackedLinear(linear))
    try:
        near = bool((network(example) - wanted).abs().mean() <= _NEAR * wanted.abs().mean())
    except Exception:
        # What a model's code does without a layer's weights may be anything.
        near = False
    if near:
        return len(linears)
    for name, linear in linears.items():
        network.set_submodule(name, linear)
    return 0


def _seconds(layers: Sequence[torch.nn.Module], rows: torch.Tensor) -> list[float]:
    """The shortest call of each, in turns, so that a slow moment of the machine is one for all; the
    first turn doesn't count.
    """
    found: list[list[float]] = []
    for _ in range(1 + _TRIES):
        turn = []
        for layer in layers:
            began = time.perf_counter()
            layer(rows)
            turn.append(time.perf_counter() - began)
        found.append(turn)
    return [min(one) for one in zip(*found[1:], strict=True)]
