"""Vectors of texts: remembered, encoded once for all who wait, given up when nobody does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from retrieval.embedding.text_vectors import Asker, Superseded, TextVectors, warm_up
from retrieval.encoding import encoders
from retrieval.encoding.encoders import Encoder, ModelSpecError, default_device, load_encoder
from retrieval.encoding.unit_vectors import half_rounded
from tests.processes import wait_for


class Gate:
    """Holds a model up, so that others come to wait for it, and notes what it encodes."""

    def __init__(self, encoder: Encoder) -> None:
        self.encoded: list[str] = []
        self.open = threading.Event()
        self._tokenize = encoder._tokenizer
        encoder._tokenizer = self

    def __call__(self, texts: list[str]) -> object:
        self.encoded += texts
        assert self.open.wait(30)
        return self._tokenize(texts)

    def remove(self, encoder: Encoder) -> None:
        """Let the model be as it was."""
        self.open.set()
        encoder._tokenizer = self._tokenize


@pytest.fixture
def gate(tiny_model: str) -> Iterator[Gate]:
    encoder = load_encoder(tiny_model)
    gate = Gate(encoder)
    yield gate
    gate.remove(encoder)


def ask(
    pool: ThreadPoolExecutor, vectors: TextVectors, model: str, text: str, number: int = 0
) -> Future[np.ndarray]:
    asker = Asker("page", number) if number else None
    return pool.submit(vectors.vector, model, text, asker=asker)


def waiting(vectors: TextVectors, *texts: str) -> None:
    """Return when these texts are wanted."""
    wait_for(lambda: set(texts) <= {text for _, text in vectors._wanted}, what="those who ask")


def test_a_vector_is_the_one_of_the_text_alone_in_half_precision(tiny_model: str) -> None:
    vectors = TextVectors()
    alone = load_encoder(tiny_model).encode_texts(["a frog"])[0]
    vector = vectors.vector(tiny_model, "a frog")
    assert vector.dtype == np.float16
    assert vector.tolist() == half_rounded(alone)
    assert not vector.flags.writeable


def test_it_is_encoded_once_also_for_many_who_ask_at_once(tiny_model: str, gate: Gate) -> None:
    vectors = TextVectors()
    with ThreadPoolExecutor(4) as pool:
        asked = [ask(pool, vectors, tiny_model, "a frog") for _ in range(4)]
        waiting(vectors, "a frog")
        gate.open.set()
        answers = [future.result() for future in asked]
    vectors.vector(tiny_model, "a frog")
    assert gate.encoded == ["a frog"]
    assert all(answer is answers[0] for answer in answers)


def test_the_last_used_are_remembered(tiny_model: str, gate: Gate) -> None:
    gate.open.set()
    vectors = TextVectors(size=2)
    for text in ("a", "b", "a", "c", "a", "b"):
        vectors.vector(tiny_model, text)
    assert gate.encoded == ["a", "b", "c", "b"]


def test_a_page_waits_for_its_last_text_alone(tiny_model: str, gate: Gate) -> None:
    vectors = TextVectors()
    with ThreadPoolExecutor(8) as pool:
        begun = ask(pool, vectors, tiny_model, "f", 1)
        wait_for(lambda: gate.encoded == ["f"], what="the first text")
        skipped = [
            ask(pool, vectors, tiny_model, "fr", 2),
            ask(pool, vectors, tiny_model, "fro", 3),
        ]
        waiting(vectors, "fr", "fro")
        last = ask(pool, vectors, tiny_model, "frog", 4)
        waiting(vectors, "frog")
        gate.open.set()
        assert begun.result().shape == last.result().shape
        for future in skipped:
            with pytest.raises(Superseded):
                future.result()
    assert gate.encoded == ["f", "frog"]


def test_a_text_that_somebody_else_waits_for_is_not_given_up(tiny_model: str, gate: Gate) -> None:
    vectors = TextVectors()
    with ThreadPoolExecutor(8) as pool:
        ask(pool, vectors, tiny_model, "f", 1)
        wait_for(lambda: gate.encoded == ["f"], what="the first text")
        typed = ask(pool, vectors, tiny_model, "fr", 2)
        waiting(vectors, "fr")
        other = ask(pool, vectors, tiny_model, "fr")
        wait_for(
            lambda: len(vectors._wanted[tiny_model, "fr"].askers) == 2, what="the other who asks"
        )
        last = ask(pool, vectors, tiny_model, "frog", 3)
        waiting(vectors, "frog")
        gate.open.set()
        assert np.array_equal(typed.result(), other.result())
        assert last.result().shape == (16,)


def test_a_text_that_was_given_up_can_be_asked_for_again(tiny_model: str, gate: Gate) -> None:
    gate.open.set()
    vectors = TextVectors()
    vectors.vector(tiny_model, "frog", asker=Asker("page", 5))
    with pytest.raises(Superseded):
        vectors.vector(tiny_model, "fr", asker=Asker("page", 4))
    assert vectors.vector(tiny_model, "fr", asker=Asker("page", 6)).shape == (16,)
    assert vectors.vector(tiny_model, "f", asker=Asker("another page", 1)).shape == (16,)


def test_an_error_is_told_to_all_and_not_remembered(tiny_model: str) -> None:
    vectors = TextVectors()
    for _ in range(2):
        with pytest.raises(ModelSpecError):
            vectors.vector("/gone/away", "a frog")
    assert vectors.vector(tiny_model, "a frog").shape == (16,)


def test_a_model_is_loaded_ahead_of_the_first_text(tiny_model: str, tmp_path: Path) -> None:
    fresh = shutil.copytree(tiny_model, tmp_path / "fresh")
    warm_up(str(fresh))
    wait_for(lambda: (str(fresh), default_device()) in encoders._encoders, what="the model")
    warm_up("/gone/away")
    with pytest.raises(ModelSpecError):
        TextVectors().vector("/gone/away", "a frog")
