"""Linear layers with weights packed for oneDNN's kernels, for models on the processor.

PyTorch multiplies by Intel's MKL, which doesn't use all of other makers' processors. The functions
are those that torch.compile puts into a frozen program. ViT-B-32's image side takes 0.66 times as
long with them (`python -m bench.embedding`, AMD EPYC).
"""

from __future__ import annotations

from typing import Final

import torch

_TOLERANCE: Final = 1e-4
"""The results' mean difference, relative to their mean size."""


class PackedLinear(torch.nn.Module):
    """Computes what `linear` does; differs by rounding."""

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

    None where the network, called with `example`, needs a layer's weights themselves or gives
    another result.
    """
    linears = {
        name: module
        for name, module in network.named_modules()
        # Not its subclasses, of which other modules use the weights.
        if type(module) is torch.nn.Linear and module.weight.dtype is torch.float32
    }
    if not linears or not torch.backends.mkldnn.is_available():
        return 0
    expected = network(example)
    for name, linear in linears.items():
        network.set_submodule(name, PackedLinear(linear))
    try:
        difference = (network(example) - expected).abs().mean()
        same = bool(difference <= _TOLERANCE * expected.abs().mean())
    except Exception:
        # A model's code may fail in any way without a layer's weights.
        same = False
    if same:
        return len(linears)
    for name, linear in linears.items():
        network.set_submodule(name, linear)
    return 0
