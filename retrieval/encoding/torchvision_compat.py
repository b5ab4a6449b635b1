"""Lets torchvision be imported beside a torch build that lacks its compiled operators.

The registry's torchvision wheel is built for CUDA. Beside the CPU build of torch its compiled
part does not load, and then ``import torchvision`` stops at ``operator torchvision::nms does not
exist``, because it registers shape functions for operators that nobody declared. CLIP needs
only torchvision's image transforms and none of those operators, so it is enough to declare
them. Calling one still fails, with torch's own message that it has no implementation.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any

_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_lock = threading.Lock()
_libraries: list[Any] = []
"""The declarations; torch withdraws them when the object that made them is collected."""


def _forget_partial_import() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]


def ensure_torchvision() -> bool:
    """Make ``import torchvision`` work; return True when operators had to be declared.

    A torchvision that imports is left untouched. ImportError or RuntimeError as torchvision
    raised it when its import fails for another reason.
    """
    with _lock:
        if "torchvision" in sys.modules and not _libraries:
            return False
        if _libraries:
            return True
        try:
            importlib.import_module("torchvision")
        except RuntimeError as error:
            if "torchvision::" not in str(error):
                raise
        else:
            return False
        _forget_partial_import()
        _declare_missing()
        importlib.import_module("torchvision")
        return True


def _declare_missing() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _libraries.append(library)
