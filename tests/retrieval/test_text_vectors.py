"""Vectors of texts: stored once, encoded here or by the process that encodes for all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from core.jobs.kinds import HANDLERS
from core.jobs.models import Job
from core.jobs.services import Slice, job_create, job_slice_run
from core.locks import is_locked, lock_key
from core.moments import snapshot
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel, TextVector
from retrieval.embedding.text_vectors import (
    Superseded,
    TextsUnavailable,
    text_vector,
    text_vectors,
)
from retrieval.encoding.model_specs import ModelSpecError
from retrieval.encoding.text import load_text_encoder
from retrieval.encoding.unit_rows import half_rounded
from tests.processes import ROOT, database_url, wait_for


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
    assert model.millions_of_parameters == load_text_encoder(model.name).parameters / 1e6 > 0


class Encoding:
    """A real process that encodes texts."""

    def __init__(self, log: Path) -> None:
        self.log = log
        basics = {
            "DATABASE_URL": database_url(connection.settings_dict),
            "DJANGO_SETTINGS_MODULE": "annotator.settings",
            "TEXT_PROCESS": "true",
            "LOG_LEVEL": "DEBUG",
        }
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "encode_texts"],
                cwd=ROOT,
                env={**os.environ, **basics},
                stdout=output,
                stderr=output,
            )
        self._read = 0

    def send(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def logged(self) -> str:
        """Its log since this test began to use it."""
        return self.log.read_text()[self._read :]

    def resume(self) -> None:
        """Let it go on in a test."""
        self._read = len(self.log.read_text())
        self.send(signal.SIGCONT)

    def ready(self) -> bool:
        """Whether it is this process that encodes."""
        assert self.process.poll() is None, self.log.read_text()
        return is_locked(lock_key("texts"))

    def end(self, number: int = signal.SIGKILL) -> None:
        self.send(number)
        self.process.wait()


@pytest.fixture(scope="module")
def encodings() -> Iterator[list[Encoding]]:
    """The processes that encode texts for this file's tests."""
    started: list[Encoding] = []
    yield started
    for encoding in started:
        encoding.end()


@pytest.fixture
def served(
    settings: Any, transactional_db: None, tiny_model: str, encodings: list[Encoding]
) -> Iterator[EmbeddingModel]:
    """The model, in processes that leave encoding to another; none encodes yet."""
    settings.TEXT_PROCESS = True
    for encoding in encodings:
        encoding.send(signal.SIGSTOP)
    yield embedding_model_get_or_create(name=tiny_model)
    for encoding in encodings:
        encoding.send(signal.SIGCONT)


@pytest.fixture
def encode(
    served: EmbeddingModel, encodings: list[Encoding], tmp_path: Path
) -> Callable[..., Encoding]:
    """Gives a process that encodes texts: that of an earlier test, or another."""

    def start(*, another: bool = False) -> Encoding:
        running = [one for one in encodings if one.process.poll() is None]
        if another or not running:
            encodings.append(Encoding(tmp_path / f"texts-{len(encodings)}.log"))
            return encodings[-1]
        running[-1].resume()
        return running[-1]

    return start


def requests() -> list[str]:
    """Texts that wait for their vectors."""
    return list(TextVector.objects.filter(vector=None, error="").values_list("text", flat=True))


def asked(*waiting: Callable[[], Any]) -> list[Any]:
    """What several who ask at once are answered; an exception is an answer too."""

    def ask(wanted: Callable[[], Any]) -> Any:
        try:
            return wanted()
        except Exception as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(waiting)) as pool:
        return list(pool.map(ask, waiting))


def encoded_by(encoding: Encoding) -> list[str]:
    return [
        line.rpartition("Encoded: ")[2]
        for line in encoding.logged().splitlines()
        if "Encoded: " in line
    ]


def test_another_process_encodes_and_what_many_want_it_encodes_once(
    served: EmbeddingModel, encode: Callable[..., Encoding]
) -> None:
    encoding = encode()
    texts = ["a frog", "two frogs"]
    answers = asked(*[lambda: text_vectors(served, texts) for _ in range(4)])
    assert answers == [[expected(served, text) for text in texts]] * 4
    assert text_vector(served, "a frog") == answers[0][0]
    assert sorted(encoded_by(encoding)) == texts
    served.refresh_from_db()
    assert served.parameters == load_text_encoder(served.name).parameters


def test_a_transaction_gets_vectors_too(
    served: EmbeddingModel, encode: Callable[..., Encoding]
) -> None:
    encode()
    with snapshot():
        assert text_vector(served, "a frog") == expected(served, "a frog")


def test_a_killed_process_is_taken_over_from(
    served: EmbeddingModel, encode: Callable[..., Encoding]
) -> None:
    first = encode()
    wait_for(first.ready, what="the first process")
    second = encode(another=True)
    first.process.send_signal(signal.SIGSTOP)
    with pytest.raises(TextsUnavailable, match="encode_texts"):
        text_vector(served, "a frog", patience=0.2)
    assert requests() == ["a frog"]
    first.end()
    wait_for(second.ready, what="the second process")
    assert text_vector(served, "a frog") == expected(served, "a frog")
    second.end(signal.SIGTERM)
    with pytest.raises(TextsUnavailable):
        text_vector(served, "a toad", patience=0.2)
    encode()
    assert text_vector(served, "a toad") == expected(served, "a toad")


def test_it_goes_on_when_the_database_has_been_away(
    served: EmbeddingModel, encode: Callable[..., Encoding]
) -> None:
    encoding = encode()
    wait_for(encoding.ready, what="the process")
    for text in ("a frog", "a toad"):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                " AND backend_type = 'client backend'"
            )
            assert cursor.rowcount
        assert text_vector(served, text) == expected(served, text)
    assert "until the database answers" in encoding.logged()


def test_why_a_text_has_no_vector_is_told_to_all_and_not_remembered(
    served: EmbeddingModel, encode: Callable[..., Encoding], tiny_model: str
) -> None:
    encode()
    EmbeddingModel.objects.update(name="/gone/away")
    served.refresh_from_db()
    answers = asked(*[lambda: text_vector(served, "a frog")] * 2)
    assert [str(answer) for answer in answers] == [
        str(ModelSpecError("/gone/away", "there is no directory /gone/away"))
    ] * 2
    EmbeddingModel.objects.update(name=tiny_model)
    served.refresh_from_db()
    assert text_vector(served, "a frog") == expected(served, "a frog")


def test_a_page_waits_for_its_last_text_alone(served: EmbeddingModel) -> None:
    def superseded() -> list[float]:
        return text_vector(served, "fr", patience=30, page="1/page")

    def later() -> list[float]:
        wait_for(lambda: requests() == ["fr"], what="the first text")
        return text_vector(served, "frog", patience=0.2, page="1/page")

    first, last = asked(superseded, later)
    assert isinstance(first, Superseded)
    assert isinstance(last, TextsUnavailable)
    assert requests() == ["frog"]


def test_a_text_that_somebody_else_waits_for_is_not_given_up(served: EmbeddingModel) -> None:
    for page in ("1/page", "2/another"):
        with pytest.raises(TextsUnavailable):
            text_vector(served, "fr", patience=0, page=page)
    for page in ("1/page", "2/another"):
        with pytest.raises(TextsUnavailable):
            text_vector(served, f"frog {page}", patience=0, page=page)
    assert sorted(requests()) == ["fr", "frog 1/page", "frog 2/another"]


def test_the_text_asked_for_last_comes_first(
    served: EmbeddingModel, encode: Callable[..., Encoding]
) -> None:
    for text in ("first", "second", "third", "first"):
        with pytest.raises(TextsUnavailable):
            text_vector(served, text, patience=0)
    encoding = encode()
    wait_for(lambda: not requests(), what="the vectors")
    assert encoded_by(encoding) == ["first", "third", "second"]


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
