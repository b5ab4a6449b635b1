"""The text side of CLIP models."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any, Final

import numpy as np

from retrieval.encoding.loading import default_device, load_open_clip
from retrieval.encoding.model_specs import base_of

LOADED_AT_ONCE: Final = 2
"""Models; the text side of the largest takes gigabytes."""


class TextEncoder:
    """A loaded model's text side, in single precision; calls from several threads take turns.

    ``parameters`` is how many numbers the whole model has learned, image side included.
    """

    def __init__(self, model: Any, tokenizer: Any, *, parameters: int, device: str) -> None:
        self.parameters = parameters
        self.device = device
        self._model = model
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    def encode(self, text: str) -> np.ndarray:
        """Return the text's float32 vector (dimension,) of unit length.

        A text is encoded alone: in a batch, matrix products of another shape add in another
        order, and most vectors would differ after rounding to half precision (counted by `python -m
        bench.text_search`). Words beyond the model's context length are cut off.
        """
        import torch

        with self._lock, torch.inference_mode():
            vectors = self._model.encode_text(self._tokenizer([text]).to(self.device)).float()
            found: np.ndarray = torch.nn.functional.normalize(vectors, dim=-1)[0].cpu().numpy()
        return found


_loaded: OrderedDict[tuple[str, str], TextEncoder] = OrderedDict()
_loading = threading.Lock()


def load_text_encoder(spec: str, *, device: str | None = None) -> TextEncoder:
    """Return the text side of the model that ``spec`` names; the two used last stay loaded.

    ``device`` is a torch device name; by default a GPU is used where there is one. A context
    model's is that of its base. Raises as `load_open_clip`.
    """
    with _loading:
        key = (base_of(spec), device or default_device())
        if key not in _loaded:
            _loaded[key] = _load(*key)
        _loaded.move_to_end(key)
        if len(_loaded) > LOADED_AT_ONCE:
            _loaded.popitem(last=False)
        return _loaded[key]


def _load(spec: str, device: str) -> TextEncoder:
    model, _, tokenizer = load_open_clip(spec, device)
    parameters = sum(parameter.numel() for parameter in model.parameters())
    del model.visual
    return TextEncoder(model, tokenizer, parameters=parameters, device=device)
