"""Rankings by a packed matrix, by the database and of many at once are the same bit for bit."""

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.access import Role
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import Embedding
from retrieval.ranking import current, scan
from retrieval.ranking.building import pack
from retrieval.ranking.selectors import (
    corpus_counts,
    half_rounded,
    image_scores,
    image_vectors,
    rank_images,
    rank_images_many,
    ranking_method,
)
from tests.conftest import person
from tests.retrieval.making import embed_rows, image_row, random_vectors
from tests.retrieval.matrices import embed, images, same_as_scan, vectors_like

pytestmark = pytest.mark.django_db


@pytest.fixture
def small_parts(monkeypatch):
    """Matrices are gone through in many small parts."""
    monkeypatch.setattr(scan, "PIECE_ROWS", 32)
    monkeypatch.setattr(scan, "CHUNK_ROWS", 64)
    monkeypatch.setattr(scan, "EXACT_ROWS", 16)


@pytest.mark.parametrize("dimension", [1, 20])
@pytest.mark.parametrize("kind", ["any", "ties", "sparse", "close"])
def test_a_ranking_is_the_scans_bit_for_bit(dimension, kind, small_parts):
    model = embedding_model_get_or_create(name="m", dimension=dimension)
    numbers = np.random.default_rng(3).permutation(5000)[:300].tolist()
    images(numbers)
    embed(model, numbers, vectors_like(kind, 300, dimension))
    pack(model)
    assert ranking_method(model) == "matrix"
    queries = [half_rounded(row) for row in vectors_like(kind, 3, dimension, seed=9)]
    for query in queries:
        whole = same_as_scan(model, query)
        assert len(whole) == 300
        for limit in (1, 10, 70, 300, 1000):
            assert rank_images(model=model, text_vector=query, limit=limit) == whole[:limit]
        for place in (0, 5, 150, 298, 299):
            after = (whole[place][1], whole[place][0])
            behind = whole[place + 1 :]
            for limit in (1, 20, None):
                options = {"model": model, "text_vector": query, "after": after, "limit": limit}
                assert rank_images(**options) == behind[:limit]
    for limit in (1, 10, 300):
        many = rank_images_many(model=model, text_vectors=queries, limit=limit)
        assert many == [rank_images(model=model, text_vector=q, limit=limit) for q in queries]


@pytest.mark.parametrize("limit", [3, 40, None])
def test_filters_and_moments_are_the_scans(animals, small_parts, limit):
    model = embedding_model_get_or_create(name="m", dimension=20)
    kinds = [None, *list(animals.values())[:3]]
    for place, species in enumerate(kinds):
        images(range(place * 100, place * 100 + 60), species)
    vectors = random_vectors(240, 20)
    numbers = [place * 100 + i for place in range(4) for i in range(60)]
    embed(model, numbers[::2], vectors[::2])
    pack(model)
    first = embedding_model_freeze(model=model)
    embed(model, numbers[1::4], vectors[1::4])
    pack(model)
    second = embedding_model_freeze(model=model)
    embed(model, numbers[3::4], vectors[3::4])
    then = datetime.now(UTC)
    Image.objects.filter(pk__in=numbers[::5]).update(created_at=then + timedelta(hours=1))
    user = person("rita", Role.REVIEWER)
    for number in (0, 2, 101, 103, 210):
        ImageWithdrawal.objects.create(
            image_id=number, withdrawn_at=then, withdrawn_by=user,
            **({"restored_at": then + timedelta(minutes=5), "restored_by": user}
               if number % 2 else {}),
        )  # fmt: skip
    assert ranking_method(model) == "matrix"
    query = half_rounded(random_vectors(1, 20, seed=4)[0])
    seen = set()
    for species in ([], [kinds[1].pk], [kinds[2].pk, kinds[3].pk]):
        for moments in (
            {},
            {"created_before": first},
            {"created_before": second},
            {"created_before": first - timedelta(days=1)},
            {"created_before": then + timedelta(minutes=1)},
            {"corpus_at": then + timedelta(minutes=1)},
            {"corpus_at": then + timedelta(hours=2)},
        ):
            options = {"species_ids": species, **moments}
            found = same_as_scan(model, query, limit=limit, **options)
            seen.add(tuple(found))
            if len(found) > 2:
                after = (found[1][1], found[1][0])
                assert same_as_scan(model, query, limit=limit, after=after, **options) != found
            if not species and limit:
                many = rank_images_many(
                    model=model, text_vectors=[query, query], limit=limit, **moments
                )
                assert many == [found, found]
            counts = corpus_counts(model=model, **options)
            assert counts.embedded == len(
                rank_images(model=model, text_vector=query, limit=None, **options)
            )
    assert len(seen) > 6


def test_every_state_of_a_changing_corpus_ranks_as_the_database_does(small_parts):
    model = embedding_model_get_or_create(name="m", dimension=16)
    images(range(400))
    numbers = np.random.default_rng(7)
    vectors = random_vectors(400, 16)
    methods = []
    for turn in range(25):
        chosen = numbers.choice(400, size=int(numbers.integers(1, 60)), replace=False)
        match int(numbers.integers(4)):
            case 0 | 1:
                embed(model, chosen, vectors[(chosen + turn) % 400])
            case 2:
                Embedding.objects.filter(model=model, image_id__in=chosen.tolist()[:9]).delete()
            case 3:
                pack(model)
        methods.append(ranking_method(model))
        query = half_rounded(vectors[turn])
        whole = same_as_scan(model, query)
        for limit in (1, 9):
            assert rank_images(model=model, text_vector=query, limit=limit) == whole[:limit]
        some = numbers.choice(400, size=30).tolist()
        assert image_scores(model=model, text_vector=query, image_ids=some) == {
            image_id: score for image_id, score in whole if image_id in some
        }
        ids, held = image_vectors(model=model, image_ids=[*reversed(some), 10**9])
        assert ids.tolist() == sorted(set(some) & {image_id for image_id, _ in whole})
        rows = Embedding.objects.filter(image__in=ids.tolist()).order_by("image")
        assert held.tolist() == np.array([one.vector for one in rows], np.float16).tolist()
        assert len(image_vectors(model=model, image_ids=[10**9])[0]) == 0
        two = rank_images_many(model=model, text_vectors=[query, [*query[1:], query[0]]], limit=5)
        assert two[0] == whole[:5]
    assert "matrix" not in methods[: methods.index("matrix")]
    assert "scan" not in methods[methods.index("matrix") :]


def test_an_image_that_was_embedded_again_is_ranked_by_its_new_vector(toy_model):
    for number in (1, 2):
        image_row(number)
    embed(toy_model, [1, 2], [[1, 0, 0], [0, 1, 0]])
    pack(toy_model)
    Embedding.objects.filter(image_id=1).delete()
    embed(toy_model, [1], [[0, 0, 1]])
    for _ in range(2):
        assert ranking_method(toy_model) == "matrix"
        assert same_as_scan(toy_model, [1.0, 0, 0]) == [(1, 0.0), (2, 0.0)]
        assert same_as_scan(toy_model, [0, 0, 1.0], limit=1) == [(1, 1.0)]
        scores = image_scores(model=toy_model, text_vector=[0, 0, 1.0], image_ids=[1, 2, 3])
        assert scores == {1: 1.0, 2: 0.0}
        pack(toy_model)


def test_what_came_since_is_read_once_and_much_of_it_is_the_databases(monkeypatch, toy_model):
    embed_rows(toy_model, {1: [0, 1, 0]})
    pack(toy_model)
    embed_rows(toy_model, {2: [1, 0, 0], 3: [1, 0, 0]})
    with CaptureQueriesContext(connection) as first:
        assert [image for image, _ in same_as_scan(toy_model, [1.0, 0, 0])] == [2, 3, 1]
    with CaptureQueriesContext(connection) as second:
        same_as_scan(toy_model, [1.0, 0, 0])
    assert len(second) < len(first)
    monkeypatch.setattr(current, "TAIL_BYTES", 2 * 2 * toy_model.dimension)
    assert ranking_method(toy_model) == "matrix"
    embed_rows(toy_model, {4: [1, 0, 0]})
    assert ranking_method(toy_model) == "scan"
    assert len(same_as_scan(toy_model, [1.0, 0, 0])) == 4


def test_a_ranking_takes_one_statement_and_two_with_a_filter(
    toy_model, animals, django_assert_num_queries
):
    bear = animals["Ursus arctos"]
    image_row(1, bear)
    embed(toy_model, [1], [[0, 1, 0]])
    pack(toy_model)
    with django_assert_num_queries(1):
        rank_images(model=toy_model, text_vector=[0, 1.0, 0], limit=5)
    with django_assert_num_queries(1):
        rank_images_many(model=toy_model, text_vectors=[[0, 1.0, 0]] * 9, limit=5)
    with django_assert_num_queries(2):
        rank_images(model=toy_model, text_vector=[0, 1.0, 0], species_ids=[bear.pk], limit=5)
