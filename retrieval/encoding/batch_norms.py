"""Batch norms folded into the convolutions before them: the same function in fewer steps."""

from __future__ import annotations

from collections import Counter
from typing import Any


def fold_batch_norms(network: Any) -> int:
    """Fold, in place, each batch norm of a torch module in evaluation mode that sees nothing but
    one convolution's output, which nothing else sees; return how many.

    Results differ by rounding. A network whose graph torch.fx can't trace is left as it is.
    """
    import torch

    modules = dict(network.named_modules())
    if not any(isinstance(module, torch.nn.BatchNorm2d) for module in modules.values()):
        return 0
    try:
        graph = torch.fx.symbolic_trace(network).graph
    except Exception:
        # What it meets in a model's code may be anything.
        return 0
    calls = Counter(node.target for node in graph.nodes if node.op == "call_module")

    def called(node: Any, kind: type) -> bool:
        once = isinstance(node, torch.fx.Node) and node.op == "call_module"
        return once and calls[node.target] == 1 and type(modules[node.target]) is kind

    folded = 0
    for node in graph.nodes:
        if not called(node, torch.nn.BatchNorm2d):
            continue
        before = node.args[0]
        if called(before, torch.nn.Conv2d) and len(before.users) == 1:
            convolution, norm = modules[before.target], modules[node.target]
            fused = torch.nn.utils.fuse_conv_bn_eval(convolution, norm)
            network.set_submodule(before.target, fused)
            network.set_submodule(node.target, torch.nn.Identity())
            folded += 1
    return folded
