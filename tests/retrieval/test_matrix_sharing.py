"""A matrix that one machine packed, used by another that shares its database and bucket alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core import storage
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.ranking import building
from retrieval.ranking.building import pack, verify_matrix
from retrieval.ranking.files import MANIFEST, Manifest, folder_of
from retrieval.ranking.selectors import half_rounded, ranking_method
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import embed, images, same_as_scan

pytestmark = pytest.mark.django_db(transaction=True)

VECTORS = random_vectors(300, 16)
QUERY = half_rounded(random_vectors(1, 16, seed=5)[0])
Machine = Callable[[str], None]


@pytest.fixture
def machine(in_bucket: Any, settings: Any, tmp_path: Path) -> Machine:
    """Goes on as the machine of that name."""

    def go(name: str) -> None:
        settings.VAR_DIR = tmp_path / name

    go("one")
    return go


@pytest.fixture
def model(machine: Machine) -> EmbeddingModel:
    """A model with 200 embeddings, of which `one` has packed a matrix."""
    images(range(300))
    made = embedding_model_get_or_create(name="m", dimension=16)
    embed(made, range(200), VECTORS[:200])
    pack(made)
    return made


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many embeddings were read from the database to be packed."""
    found: list[int] = []
    real = building.read_embeddings

    def counted(*arguments: Any, **options: Any) -> Any:
        chunk = real(*arguments, **options)
        found.append(len(chunk.image_ids))
        return chunk

    monkeypatch.setattr(building, "read_embeddings", counted)
    return found


def shared(model: EmbeddingModel) -> set[str]:
    return {one.name for one in storage.names_below(folder_of(model))}


def test_it_is_fetched_not_packed(model: EmbeddingModel, machine: Machine, read: list[int]) -> None:
    machine("two")
    assert ranking_method(model) != "matrix"
    assert pack(model).finished
    assert (read, ranking_method(model)) == ([], "matrix")
    assert verify_matrix(model, lambda done, rows: None) == []
    same_as_scan(model, QUERY)
    # What is new since is read by one, and by the other fetched.
    read.clear()
    embed(model, range(200, 260), VECTORS[200:260])
    Embedding.objects.filter(image_id=7).delete()
    pack(model)
    assert sum(read) == 60
    read.clear()
    machine("one")
    pack(model)
    assert (read, Manifest.load(folder_of(model)).rows) == ([], 260)  # type: ignore[union-attr]
    assert verify_matrix(model, lambda done, rows: None) == []
    same_as_scan(model, QUERY)


def test_what_was_packed_anew_replaces_it_everywhere(
    model: EmbeddingModel, machine: Machine, read: list[int]
) -> None:
    machine("two")
    pack(model)
    before = shared(model)
    machine("one")
    Embedding.objects.filter(image_id__lt=3).delete()
    pack(model, rebuild=True)
    assert sum(read) == 197
    assert shared(model) & before == {MANIFEST}
    machine("two")
    read.clear()
    pack(model)
    assert (read, Manifest.load(folder_of(model)).rows) == ([], 197)  # type: ignore[union-attr]
    assert {one.name for one in folder_of(model).iterdir()} == shared(model) | {"lock"}


def test_a_damaged_one_is_packed_from_the_database(
    model: EmbeddingModel, machine: Machine, read: list[int]
) -> None:
    vectors = folder_of(model) / "000001.vectors"
    data = bytearray(vectors.read_bytes())
    data[5] ^= 1
    with storage.writing(vectors) as file:
        file.write(data)
    machine("two")
    pack(model)
    assert (sum(read), ranking_method(model)) == (200, "matrix")
    same_as_scan(model, QUERY)
    # And stored for the others.
    machine("three")
    read.clear()
    pack(model)
    assert (read, ranking_method(model)) == ([], "matrix")


def test_an_earlier_one_isnt_stored_over_a_later(model: EmbeddingModel, machine: Machine) -> None:
    with storage.reading(folder_of(model) / MANIFEST) as file:
        later = json.load(file)
    later["watermark"] += 10**12
    with storage.writing(folder_of(model) / MANIFEST) as file:
        file.write(json.dumps(later).encode())
    embed(model, range(200, 260), VECTORS[200:260])
    pack(model, rebuild=True)
    with storage.reading(folder_of(model) / MANIFEST) as file:
        assert json.load(file) == later
