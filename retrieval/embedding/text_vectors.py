"""The vectors of texts: encoded once, remembered, and shared by everybody who asks for the same.

A text is always encoded alone. A batch would give other bits: matrix products of other shapes add
in another order, and after rounding to half precision most vectors differ somewhere
(`python -m bench.text_search` counts them), while a labelling list must come out the same for any
neighbours that its text may have. On processors a batch is no faster either.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.encoders import ModelSpecError, load_encoder
from retrieval.encoding.unit_vectors import half_rounded

REMEMBERED: Final = 4096
"""Texts; at 1,024 dimensions that is 8 MB a process."""


class Superseded(Exception):
    """Its asker has asked for something else meanwhile, so that nobody waits for this."""


@dataclass(frozen=True, slots=True)
class Asker:
    """A page on which somebody types, by an id of its own, and which of its searches this is."""

    page: str
    number: int


@dataclass
class _Wanted:
    """A text that is to be encoded, and those who wait for it."""

    vector: Future[np.ndarray] = field(default_factory=Future)
    askers: list[Asker | None] = field(default_factory=list)


class TextVectors:
    """Remembers the `size` vectors that were used last; safe with threads.

    Several threads that ask for one text have it encoded once. A page that types waits for its last
    text only: earlier ones that have not begun are given up.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._wanted: dict[tuple[str, str], _Wanted] = {}
        self._last: OrderedDict[str, int] = OrderedDict()
        self._state = threading.Lock()
        self._encoding = threading.Lock()

    def vector(self, model_name: str, text: str, *, asker: Asker | None = None) -> np.ndarray:
        """Return the text's vector (d,) under the model: float16, unit length before rounding.

        Raises Superseded for an asker whose page asks for something later before this text's turn
        comes, and what `load_encoder` raises for a model that can't be loaded.
        """
        key = (model_name, text)
        with self._state:
            self._note(asker)
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            wanted = self._wanted.get(key)
            first = wanted is None
            if wanted is None:
                wanted = self._wanted[key] = _Wanted()
            wanted.askers.append(asker)
        if first:
            self._fulfil(key, wanted)
        return wanted.vector.result()

    def _note(self, asker: Asker | None) -> None:
        if asker is None:
            return
        self._last[asker.page] = max(asker.number, self._last.get(asker.page, asker.number))
        self._last.move_to_end(asker.page)
        if len(self._last) > self._size:
            self._last.popitem(last=False)

    def _fulfil(self, key: tuple[str, str], wanted: _Wanted) -> None:
        try:
            with self._encoding:
                self._give_up_unless_awaited(key, wanted)
                model_name, text = key
                encoded = load_encoder(model_name).encode_texts([text])[0]
            vector = np.asarray(half_rounded(encoded), dtype=np.float16)
            vector.flags.writeable = False
        except BaseException as error:
            with self._state:
                if self._wanted.get(key) is wanted:
                    del self._wanted[key]
            wanted.vector.set_exception(error)
            return
        with self._state:
            self._wanted.pop(key, None)
            self._known[key] = vector
            if len(self._known) > self._size:
                self._known.popitem(last=False)
        wanted.vector.set_result(vector)

    def _give_up_unless_awaited(self, key: tuple[str, str], wanted: _Wanted) -> None:
        with self._state:
            if not any(self._awaited(asker) for asker in wanted.askers):
                # Whoever asks for it from here on has it encoded anew.
                del self._wanted[key]
                raise Superseded

    def _awaited(self, asker: Asker | None) -> bool:
        return asker is None or self._last.get(asker.page, asker.number) <= asker.number


_vectors = TextVectors()
_warmed: set[str] = set()


def warm_up(model_name: str) -> None:
    """Have the model loaded in a thread, so that the first text needn't wait for it."""
    if model_name not in _warmed:
        _warmed.add(model_name)
        threading.Thread(target=_load, args=(model_name,), daemon=True).start()


def _load(model_name: str) -> None:
    # A model that can't be loaded says so to who searches.
    with contextlib.suppress(ModelSpecError):
        load_encoder(model_name)


def text_vector(model: EmbeddingModel, text: str, *, asker: Asker | None = None) -> list[float]:
    """Return the text's vector (d,) under the model, unit length, rounded to half precision.

    The same bits in every process of a machine. The model is loaded by the first call in a process;
    the last texts are remembered. Raises what `TextVectors.vector` raises.
    """
    vector: list[float] = _vectors.vector(model.name, text, asker=asker).tolist()
    return vector
