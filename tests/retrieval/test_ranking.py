from datetime import timedelta

import numpy as np
import pytest
from django.db import connection

from retrieval.embedding.embedding_models import (
    embedding_model_freeze,
    embedding_model_get_or_create,
)
from retrieval.embedding.models import Embedding
from retrieval.ranking.selectors import corpus_counts, half_rounded, rank_images
from tests.retrieval.making import embed_rows, image_row, random_vectors

pytestmark = pytest.mark.django_db


def ids(ranked):
    return [image_id for image_id, _ in ranked]


def exact_order(vectors, query, image_ids):
    """The order by inner product of the rounded vectors in double precision, ties by image id."""
    stored = np.array([half_rounded(v) for v in vectors])
    scores = stored @ np.array(query)
    return [image_ids[i] for i in np.lexsort((image_ids, -scores))], scores


def test_the_order_is_numpys_and_scores_are_cosines(db):
    model = embedding_model_get_or_create(name="toy-64", dimension=64)
    vectors, image_ids = random_vectors(200, 64), list(range(1000, 1200))
    embed_rows(model, dict(zip(image_ids, vectors, strict=True)))
    query = half_rounded(random_vectors(1, 64, seed=2)[0])
    ranked = rank_images(model=model, text_vector=query, limit=None)
    wanted, scores = exact_order(vectors, query, image_ids)
    assert ids(ranked) == wanted
    assert [s for _, s in ranked] == sorted(scores.tolist(), reverse=True)
    assert rank_images(model=model, text_vector=query, limit=17) == ranked[:17]


def test_ties_go_by_image_id_and_pages_continue_within_them(toy_model):
    embed_rows(toy_model, {n: [1, 0, 0] for n in (9, 4, 7, 2)} | {5: [0, 1, 0], 1: [0, 1, 0]})
    query = [1.0, 0.0, 0.0]
    whole = rank_images(model=toy_model, text_vector=query, limit=None)
    assert whole == [(2, 1.0), (4, 1.0), (7, 1.0), (9, 1.0), (1, 0.0), (5, 0.0)]
    paged, after = [], None
    while page := rank_images(model=toy_model, text_vector=query, limit=2, after=after):
        paged += page
        after = (page[-1][1], page[-1][0])
    assert paged == whole


def test_a_species_filter_keeps_the_order(toy_model, animals):
    bear, monarch, viceroy = (
        animals[name] for name in ("Ursus arctos", "Danaus plexippus", "Limenitis archippus")
    )
    for number, species in enumerate([bear, monarch, viceroy, bear, None], start=1):
        image_row(number, species)
    embed_rows(toy_model, {n: [n, 10 - n, 0] for n in (1, 2, 3, 4, 5)})
    query = [1.0, 0, 0]

    def within(*species):
        return ids(
            rank_images(
                model=toy_model,
                text_vector=query,
                species_ids=[s.pk for s in species],
                limit=None,
            )
        )

    assert within() == [5, 4, 3, 2, 1]
    assert within(bear) == [4, 1]
    assert within(monarch, viceroy) == [3, 2]
    assert within(animals["Ursus maritimus"]) == []


def test_models_do_not_mix(toy_model):
    other = embedding_model_get_or_create(name="other", dimension=2)
    embed_rows(toy_model, {1: [1, 0, 0]})
    embed_rows(other, {2: [1, 0]})
    assert ids(rank_images(model=toy_model, text_vector=[1.0, 0, 0], limit=None)) == [1]
    assert ids(rank_images(model=other, text_vector=[1.0, 0], limit=None)) == [2]


def test_what_is_embedded_after_the_moment_of_freezing_is_left_out(toy_model):
    embed_rows(toy_model, {1: [1, 0, 0], 2: [0, 1, 0]})
    image_row(3)
    moment = embedding_model_freeze(model=toy_model)
    embed_rows(toy_model, {4: [1, 0, 0]})

    def ranked(before):
        return ids(
            rank_images(model=toy_model, text_vector=[1.0, 0, 0], limit=None, created_before=before)
        )

    assert ranked(moment) == [1, 2]
    assert ranked(None) == [1, 4, 2]
    first = Embedding.objects.get(image_id=1).created_at
    assert ranked(first) == [1]
    assert ranked(first - timedelta(microseconds=1)) == []
    counts = corpus_counts(model=toy_model, created_before=moment)
    assert (counts.embedded, counts.unembedded) == (2, 2)


def test_embedded_and_missing_images_are_counted_within_a_filter(toy_model, animals):
    bear = animals["Ursus arctos"]
    for number in (1, 2, 3):
        image_row(number, bear)
    embed_rows(toy_model, {1: [1, 0, 0], 8: [1, 0, 0]})
    counts = corpus_counts(model=toy_model, species_ids=[bear.pk])
    assert (counts.embedded, counts.unembedded) == (1, 2)


def test_no_approximate_index_can_serve_the_order(toy_model):
    embed_rows(toy_model, dict(enumerate(random_vectors(50, 3))))
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TEMP TABLE trial AS "
            "SELECT image_id, vector::halfvec(3) AS vector FROM retrieval_embedding"
        )
        cursor.execute("CREATE INDEX trial_hnsw ON trial USING hnsw (vector halfvec_ip_ops)")
        cursor.execute("ANALYZE trial")
        cursor.execute("SET LOCAL enable_seqscan = off")
        plans = []
        for order in ("vector <#> '[1,0,0]'", "-(vector <#> '[1,0,0]') DESC, image_id"):
            cursor.execute(f"EXPLAIN SELECT image_id FROM trial ORDER BY {order} LIMIT 5")
            plans.append("\n".join(row[0] for row in cursor.fetchall()))
    assert "trial_hnsw" in plans[0]
    assert "trial_hnsw" not in plans[1]
