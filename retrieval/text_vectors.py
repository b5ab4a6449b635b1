"""The vectors of texts: encoded once, remembered, and shared by everybody who asks for the same.

A text is always encoded alone. A batch would give other bits: matrix products of other shapes add
in another order, and after rounding to half precision most vectors differ somewhere
(`python -m bench.text_search` counts them), while a labelling list must come out the same for any
neighbours that its text may have. On processors a batch is no faster either.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from retrieval.encoders import load_encoder
from retrieval.models import EmbeddingModel
from retrieval.unit_vectors import half_rounded

REMEMBERED: Final = 4096
"""Texts; at 1,024 dimensions that is 8 MB a process."""


class Superseded(Exception):
    """Its asker has asked for another text meanwhile, so that nobody waits for this one."""


@dataclass
class _Wanted:
    """A text that is to be encoded, and the turns of those who wait for it."""

    vector: Future[np.ndarray] = field(default_factory=Future)
    turns: list[tuple[str, int]] = field(default_factory=list)


class TextVectors:
    """Remembers the `size` vectors that were used last; safe with threads.

    Several threads that ask for one text have it encoded once. An `asker` (anything that types,
    such as a page) waits for its last text only: earlier ones that have not begun are given up.
    """

    def __init__(self, size: int = REMEMBERED) -> None:
        self._size = size
        self._known: OrderedDict[tuple[str, str], np.ndarray] = OrderedDict()
        self._wanted: dict[tuple[str, str], _Wanted] = {}
        self._last: OrderedDict[str, int] = OrderedDict()
        self._turns = 0
        self._state = threading.Lock()
        self._encoding = threading.Lock()

    def vector(self, model_name: str, text: str, *, asker: str = "") -> np.ndarray:
        """Return the text's vector (d,) under the model: float16, unit length before rounding.

        Raises Superseded for an asker that has asked for another text before this one's turn came,
        and what `retrieval.encoders.load_encoder` raises for a model that cannot be loaded.
        """
        key = (model_name, text)
        with self._state:
            turn = self._turn_of(asker)
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
            wanted = self._wanted.get(key)
            first = wanted is None
            if wanted is None:
                wanted = self._wanted[key] = _Wanted()
            wanted.turns.append((asker, turn))
        if first:
            self._fulfil(key, wanted)
        return wanted.vector.result()

    def _turn_of(self, asker: str) -> int:
        self._turns += 1
        if asker:
            self._last[asker] = self._turns
            self._last.move_to_end(asker)
            if len(self._last) > self._size:
                self._last.popitem(last=False)
        return self._turns

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
                self._wanted.pop(key, None)
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
            if not any(self._last.get(asker, turn) <= turn for asker, turn in wanted.turns):
                # Whoever asks for it from here on has it encoded anew.
                del self._wanted[key]
                raise Superseded


_vectors = TextVectors()


def text_vector(model: EmbeddingModel, text: str, *, asker: str = "") -> list[float]:
    """Return the text's vector (d,) under the model, unit length, rounded to half precision.

    The same bits in every process of a machine. The model is loaded by the first call in a process;
    the last texts are remembered. Raises what `TextVectors.vector` raises.
    """
    vector: list[float] = _vectors.vector(model.name, text, asker=asker).tolist()
    return vector
