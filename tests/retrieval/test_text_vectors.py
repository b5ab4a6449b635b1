"""Vectors of texts: stored once, encoded here or by the process that encodes for all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, connections

from core.jobs.kinds import HANDLERS
from core.jobs.models import Job
from core.jobs.services import Slice, job_create, job_slice_run
from core.locks import lock_key
from core.sql import repeatable_read
from retrieval.embedding import text_vectors as module
from retrieval.embedding.embedding_models import embedding_model_get_or_create, model_use
from retrieval.embedding.models import EmbeddingModel, TextVector
from retrieval.embedding.text_vectors import (
    TextsUnavailable,
    text_vector,
    text_vectors,
)
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.encoding.text import TextEncoder, load_text_encoder
from retrieval.encoding.unit_rows import half_rounded
from tests.processes import wait_for
from tests.retrieval.making import embed_rows, image_row
from tests.threads import at_once


@pytest.fixture
def model(db: None, tiny_model: str) -> EmbeddingModel:
    return embedding_model_get_or_create(name=tiny_model)


def expected(model: EmbeddingModel, text: str) -> list[float]:
    return half_rounded(load_text_encoder(model.name).encode(text))


def test_a_vector_is_that_of_the_text_alone_in_half_precision(model: EmbeddingModel) -> None:
    texts = ["a frog", "two frogs", "a frog", ""]
    assert text_vectors(model, texts) == [expected(model, text) for text in texts]
    # Also as it comes back from the database.
    assert text_vectors(model, texts) == [expected(model, text) for text in texts]
    assert TextVector.objects.count() == 3
    assert text_vectors(model, []) == []


def test_a_stored_vector_is_taken_whatever_became_of_the_model(model: EmbeddingModel) -> None:
    vector = text_vector(model, "a frog")
    EmbeddingModel.objects.update(name="/gone/away")
    model.refresh_from_db()
    assert text_vector(model, "a frog") == vector
    for _ in range(2):
        with pytest.raises(ModelSpecError, match="no directory /gone/away"):
            text_vector(model, "a toad")


def test_the_first_text_tells_how_large_the_model_is(model: EmbeddingModel) -> None:
    assert model.millions_of_parameters is None
    text_vector(model, "a frog")
    model.refresh_from_db()
    size = load_text_encoder(model.name).size
    assert model.millions_of_parameters == size.parameters / 1e6 > 0
    assert (model.image_flops, model.text_flops) == (size.image_flops, size.text_flops)
    assert size.image_flops
    assert size.text_flops
    # A model whose texts were encoded before operations were counted is counted later.
    EmbeddingModel.objects.update(image_flops=None)
    text_vector(EmbeddingModel.objects.get(), "a toad")
    assert EmbeddingModel.objects.get().image_flops == size.image_flops


class Ended(BaseException):
    """Ends a thread that would encode texts for ever."""


class Encoding:
    """What encodes texts for other processes, here in a thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: list[str] = []
        self.backend = 0
        self._end = threading.Event()
        answer, wait = module._answer, module._wait

        def answered(request: TextVector) -> None:
            answer(request)
            self.texts.append(request.text)

        def waited() -> None:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                [self.backend] = cursor.fetchone()
            if self._end.is_set():
                raise Ended
            wait()

        monkeypatch.setattr(module, "_IDLE_SECONDS", 0.05)
        monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.01)
        monkeypatch.setattr(module, "_answer", answered)
        monkeypatch.setattr(module, "_wait", waited)
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with suppress(Ended):
            module.serve_texts()
        connection.close()

    def end(self) -> None:
        self._end.set()
        self._thread.join(60)
        assert not self._thread.is_alive()


@pytest.fixture
def served(settings: Any, transactional_db: None, tiny_model: str) -> EmbeddingModel:
    """The model, in processes that leave encoding to another; none encodes yet."""
    settings.TEXT_PROCESS = True
    return embedding_model_get_or_create(name=tiny_model)


@pytest.fixture
def encode(
    served: EmbeddingModel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[], Encoding]]:
    """Starts to encode texts."""
    started: list[Encoding] = []

    def start() -> Encoding:
        started.append(Encoding(monkeypatch))
        return started[-1]

    yield start
    for encoding in started:
        encoding.end()


def requests() -> list[str]:
    """Texts that wait for their vectors."""
    return list(TextVector.objects.filter(vector=None, error="").values_list("text", flat=True))


def test_another_process_encodes_and_what_many_want_it_encodes_once(
    served: EmbeddingModel, encode: Callable[[], Encoding]
) -> None:
    encoding = encode()
    texts = ["a frog", "two frogs"]
    answers = at_once(*[lambda: text_vectors(served, texts)] * 4)
    assert answers == [[expected(served, text) for text in texts]] * 4
    assert text_vector(served, "a frog") == answers[0][0]
    assert sorted(encoding.texts) == texts
    served.refresh_from_db()
    assert served.parameters == load_text_encoder(served.name).size.parameters
    # A transaction gets vectors too.
    with repeatable_read():
        assert text_vector(served, "a toad") == expected(served, "a toad")


def test_a_model_that_is_chosen_is_loaded_before_anybody_asks(
    served: EmbeddingModel, encode: Callable[[], Encoding], monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = []

    def load(name: str) -> TextEncoder:
        loaded.append(name)
        return load_text_encoder(name)

    monkeypatch.setattr(module, "load_text_encoder", load)
    encoding = encode()
    wait_for(lambda: encoding.backend, what="the process")
    assert loaded == []
    image_row(1)
    embed_rows(served, {1: expected(served, "a frog")})
    model_use(name=served.name)
    wait_for(lambda: loaded, what="the model")
    assert (loaded, encoding.texts) == ([served.name], [])


def test_one_process_encodes_and_the_next_takes_over(
    served: EmbeddingModel, encode: Callable[[], Encoding]
) -> None:
    other = connections.create_connection("default")
    with other.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [lock_key("texts")])
    encoding = encode()
    with pytest.raises(TextsUnavailable, match="encode_texts"):
        text_vector(served, "a frog", patience=0.1)
    assert (requests(), encoding.texts) == (["a frog"], [])
    other.close()
    assert text_vector(served, "a frog") == expected(served, "a frog")


def test_it_goes_on_when_the_database_has_been_away(
    served: EmbeddingModel, encode: Callable[[], Encoding], caplog: pytest.LogCaptureFixture
) -> None:
    encoding = encode()
    for text in ("a frog", "a toad"):
        wait_for(lambda: encoding.backend, what="the process")
        backend, encoding.backend = encoding.backend, 0
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s)", [backend])
        assert text_vector(served, text) == expected(served, text)
    assert "until the database answers" in caplog.text


def test_why_a_text_has_no_vector_is_told_to_all_and_not_remembered(
    served: EmbeddingModel, encode: Callable[[], Encoding], tiny_model: str
) -> None:
    encode()
    EmbeddingModel.objects.update(name="/gone/away")
    served.refresh_from_db()
    answers = at_once(*[lambda: text_vector(served, "a frog")] * 2)
    assert [str(answer) for answer in answers] == [
        str(ModelSpecError("/gone/away", "there is no directory /gone/away"))
    ] * 2
    EmbeddingModel.objects.update(name=tiny_model)
    served.refresh_from_db()
    assert text_vector(served, "a frog") == expected(served, "a frog")


def test_the_text_asked_for_last_comes_first(
    served: EmbeddingModel, encode: Callable[[], Encoding]
) -> None:
    for text in ("first", "second", "third", "first"):
        with pytest.raises(TextsUnavailable):
            text_vector(served, text, patience=0)
    encoding = encode()
    wait_for(lambda: not requests(), what="the vectors")
    assert encoding.texts == ["first", "third", "second"]


def test_a_job_goes_on_when_its_texts_can_be_encoded(
    served: EmbeddingModel, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    def step(_job: Job, _deadline: float) -> bool:
        text_vector(served, "a frog", patience=0)
        return True

    monkeypatch.setitem(HANDLERS, "needs_a_text", step)
    job = job_create(kind="needs_a_text", params={})
    assert job_slice_run(job_id=job.pk) is Slice.LATER
    job.refresh_from_db()
    assert "encode_texts" in job.error
    settings.TEXT_PROCESS = False
    assert job_slice_run(job_id=job.pk) is Slice.FINISHED
