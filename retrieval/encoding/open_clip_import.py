"""Imports open_clip, beside a torchvision without operators too, and without what is not needed.

The registry's torchvision wheel is built for CUDA. Beside the CPU build of torch its compiled
part does not load, and then ``import torchvision`` stops at ``operator torchvision::nms does not
exist``, because it registers shape functions for operators that nobody declared. CLIP needs
only torchvision's image transforms and none of those operators, so it is enough to declare
them. Calling one still fails, with torch's own message that it has no implementation.

torchvision and timm import ``torch._dynamo``, for functions that they want compiled or left alone
by ``torch.compile``. Nothing is compiled here; without it the process that encodes texts is ready
after 4.2 s of processor time instead of 5.7, and takes 68 MB less (`python -m bench.serving`).
open_clip also imports ``transformers``, for text sides that are not its own: seven of its 115
architectures. It is imported when such a model is loaded, by ``import_transformers``.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_SCHEMAS = {
    "nms": "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}
_COMPILER = "torch._dynamo"
_TEXT_MODELS = "transformers"
_lock = threading.Lock()
_libraries: list[Any] = []
"""The declarations; torch withdraws them when the object that made them is collected."""


def open_clip_module() -> Any:
    """Return the module open_clip, which is slow to import."""
    with _lock:
        if "open_clip" not in sys.modules:
            # Without transformers an import of it fails, as open_clip expects.
            with without_compiler(), _in_place_of({_TEXT_MODELS: None}):
                _ensure_torchvision()
                importlib.import_module("open_clip")
        return sys.modules["open_clip"]


def import_transformers() -> None:
    """Import transformers, and give it to open_clip's text sides. Without it open_clip refuses them
    with a RuntimeError."""
    open_clip_module()
    with _lock:
        text_sides = importlib.import_module("open_clip.hf_model")
        if text_sides.transformers is None:
            with without_compiler():
                importlib.reload(text_sides)


@contextmanager
def without_compiler() -> Iterator[None]:
    """Put what is imported of the compiler in its place, unless it has been imported."""
    compiler, utils = ModuleType(_COMPILER), ModuleType(f"{_COMPILER}.utils")
    compiler.__path__ = []
    compiler.disable = lambda function, *_, **__: function  # type: ignore[attr-defined]
    utils.is_compile_supported = lambda device: False  # type: ignore[attr-defined]
    with _in_place_of({module.__name__: module for module in (compiler, utils)}):
        yield


@contextmanager
def _in_place_of(instead: Mapping[str, ModuleType | None]) -> Iterator[None]:
    """Have imports find these modules, or nothing (None), unless the first has been imported."""
    if next(iter(instead)) in sys.modules:
        yield
        return
    sys.modules.update(instead)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in instead:
            del sys.modules[name]


def _ensure_torchvision() -> None:
    """Make ``import torchvision`` work. A torchvision that imports is left untouched.

    ImportError or RuntimeError as torchvision raised it when its import fails for another reason.
    """
    try:
        importlib.import_module("torchvision")
    except RuntimeError as error:
        if "torchvision::" not in str(error):
            raise
        _forget_partial_import()
        _declare_missing()
        importlib.import_module("torchvision")


def _forget_partial_import() -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
        del sys.modules[name]


def _declare_missing() -> None:
    import torch

    library = torch.library.Library("torchvision", "FRAGMENT")
    for name, schema in _SCHEMAS.items():
        if not hasattr(torch.ops.torchvision, name):
            library.define(schema)
    _libraries.append(library)
