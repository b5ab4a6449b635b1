"""The text side of CLIP models."""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import OrderedDict
from typing import Any, Final

import numpy as np

from retrieval.encoding.loading import default_device, load_open_clip
from retrieval.encoding.model_size import ModelSize
from retrieval.encoding.model_specs import base_of

LOADED_AT_ONCE: Final = 2
"""Models; the text side of the largest takes gigabytes."""


class TextEncoder:
    """A loaded model's text side, in single precision; calls from several threads take turns.

    ``size`` is that of the whole model, image side included.
    """

    def __init__(self, model: Any, tokenizer: Any, *, size: ModelSize, device: str) -> None:
        self.size = size
        self.device = device
        self._model = model
        self._tokenizer = tokenizer
        self._lock = threading.Lock()

    def encode(self, text: str) -> np.ndarray:
        """Return the text's float32 vector (dimension,) of unit length.

        A text is encoded alone: in a batch, matrix products of another shape add in another
        order, and most vectors would differ after rounding to half precision (counted by `python -m
        bench.text_search`). What `unread` gives is cut off.
        """
        import torch

        with self._lock, torch.inference_mode():
            vectors = self._model.encode_text(self._tokenizer([text]).to(self.device)).float()
            vector: np.ndarray = torch.nn.functional.normalize(vectors, dim=-1)[0].cpu().numpy()
        return vector

    def unread(self, text: str) -> str:
        """The words at the text's end that don't reach the model, since it reads no more tokens
        than its context length; empty where it reads all."""
        import torch

        ends = [word.end() for word in re.finditer(r"\S+", text)]
        whole = self._tokenizer([text])

        def is_whole(words: int) -> bool:
            return torch.equal(self._tokenizer([text[: ends[words - 1]]]), whole)

        if len(ends) < 2 or not is_whole(len(ends) - 1):
            return ""
        read = bisect_left(range(1, len(ends)), True, key=is_whole) + 1
        return text[ends[read - 1] :].strip()


_loaded: OrderedDict[tuple[str, str], TextEncoder] = OrderedDict()
_loading = threading.Lock()


def load_text_encoder(spec: str, *, device: str | None = None) -> TextEncoder:
    """Return the text side of the model that ``spec`` names; the two used last stay loaded.

    ``device`` is a torch device name; by default a GPU is used where there is one. A model that
    has a base has its texts. Raises as `load_open_clip`.
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
    size = ModelSize(model, tokenizer)
    del model.visual
    return TextEncoder(model, tokenizer, size=size, device=device)
