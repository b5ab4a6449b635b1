"""Search by an index: what it returns, and that the exact order never comes from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from retrieval.corpus.models import Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.embedding.models import EmbeddingModel
from retrieval.encoding.unit_rows import half_rounded
from retrieval.flags.services import image_withdraw
from retrieval.ranking.selectors import rank_images
from retrieval.search.approximate import rank_by_index
from retrieval.search.vector_indexes import VectorIndex, vector_index, vector_indexes
from tests import ROOT
from tests.retrieval.indexes import make_index
from tests.retrieval.making import random_vectors
from tests.retrieval.matrices import embed, images

pytestmark = pytest.mark.django_db

COUNT, DIMENSION = 300, 32
KINDS = ["halfvec", "binary"]


@pytest.fixture
def model(animals: Any) -> EmbeddingModel:
    """300 embedded images, every tenth of the bear."""
    model = embedding_model_get_or_create(name="toy-32", dimension=DIMENSION)
    bear = animals["Ursus arctos"]
    images(range(0, COUNT, 10), bear)
    images(number for number in range(COUNT) if number % 10)
    embed(model, range(COUNT), random_vectors(COUNT, DIMENSION))
    return model


def the_index(model: EmbeddingModel) -> VectorIndex:
    found = vector_index(model)
    assert found is not None
    return found


def by_index(model: EmbeddingModel, vector: list[float], **filters: Any) -> list[tuple[int, float]]:
    return rank_by_index(
        model=model, index=the_index(model), text_vector=vector, **{"limit": 20, **filters}
    )


@pytest.mark.parametrize("kind", KINDS)
def test_it_finds_nearly_the_same_with_the_same_scores(model: EmbeddingModel, kind: Any) -> None:
    make_index(model, kind)
    shares = []
    for query in random_vectors(10, DIMENSION, seed=7):
        vector = half_rounded(query)
        exact = rank_images(model=model, text_vector=vector, limit=None)
        found = by_index(model, vector)
        scores = dict(exact)
        assert [scores[image_id] for image_id, _ in found] == [score for _, score in found]
        assert found == sorted(found, key=lambda hit: (-hit[1], hit[0]))
        assert len(found) == 20
        shares.append(len(set(found) & set(exact[:20])) / 20)
    assert np.mean(shares) >= 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_withdrawn_images_are_left_out_and_made_up_for(
    model: EmbeddingModel, reviewer: Any, kind: Any
) -> None:
    make_index(model, kind)
    vector = half_rounded(random_vectors(1, DIMENSION, seed=3)[0])
    gone = {image_id for image_id, _ in by_index(model, vector)}
    for image in Image.objects.filter(pk__in=gone):
        image_withdraw(image=image, by=reviewer)
    found = {image_id for image_id, _ in by_index(model, vector)}
    assert (len(found), found & gone) == (20, set())


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_goes_on_behind_what_the_filter_leaves_out(
    model: EmbeddingModel, animals: Any, kind: Any
) -> None:
    make_index(model, kind)
    bear = animals["Ursus arctos"].pk
    vector = half_rounded(random_vectors(1, DIMENSION, seed=4)[0])
    exact = rank_images(model=model, text_vector=vector, species_ids=[bear], limit=20)
    found = by_index(model, vector, species_ids=[bear])
    assert {image_id % 10 for image_id, _ in found} == {0}
    assert len(found) == 20
    assert len(set(found) & set(exact)) >= 18


def test_its_settings_last_no_longer_than_it(model: EmbeddingModel) -> None:
    make_index(model)
    by_index(model, half_rounded(np.ones(DIMENSION)))
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('enable_seqscan'), current_setting('enable_sort')")
        assert cursor.fetchone() == ("on", "on")


def test_what_there_is_is_told(model: EmbeddingModel, toy_model: EmbeddingModel) -> None:
    assert vector_indexes() == {}
    make_index(model, "binary")
    found = the_index(model)
    assert (found.name, found.kind) == (f"retrieval_embedding_{model.pk}_hnsw", "binary")
    assert (found.m, found.ef_construction, found.ready) == (8, 32, True)
    assert found.size_bytes > 0
    assert vector_indexes() == {model.pk: found}
    assert vector_index(toy_model) is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_exact_order_never_comes_from_it(model: EmbeddingModel, kind: Any) -> None:
    vector = half_rounded(random_vectors(1, DIMENSION, seed=9)[0])
    before = rank_images(model=model, text_vector=vector, limit=50)
    make_index(model, kind)
    with connection.cursor() as cursor:
        for name in ("enable_seqscan", "enable_sort", "enable_bitmapscan"):
            cursor.execute(f"SET LOCAL {name} = off")
        with CaptureQueriesContext(connection) as captured:
            assert rank_images(model=model, text_vector=vector, limit=50) == before
            assert rank_images(model=model, text_vector=vector, limit=50, scan=True) == before
        ranking = [query["sql"] for query in captured if "<#>" in query["sql"]]
        plans = []
        for statement in ranking:
            query = statement.removeprefix("COPY (").removesuffix(") TO STDOUT (FORMAT binary)")
            cursor.execute(f"EXPLAIN {query}")
            plans.append("\n".join(row[0] for row in cursor.fetchall()))
    assert plans
    assert not any("_hnsw" in plan for plan in plans)


def test_nothing_that_labels_or_scores_imports_it() -> None:
    for app in ("labeling", "releases", "evaluation"):
        for path in (ROOT / app).rglob("*.py"):
            assert "retrieval.search" not in path.read_text(), path
