"""The images nearest to one image: exact, within the query's filter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.core.management import call_command
from django.utils import timezone
from rest_framework.test import APIClient

from labeling.queries.models import Query
from retrieval.corpus.addresses import signed
from retrieval.corpus.models import ImageWithdrawal
from retrieval.embedding.models import Embedding
from retrieval.ranking.selectors import ranking_method
from tests.labeling.conftest import FIRST_ID, embed, fields, make_images, make_species
from tests.labeling.judging import judge


def near(api: APIClient, query: Query, number: int, **parameters: Any) -> Any:
    answer = api.get(
        f"/api/queries/{query.pk}/similar/", {"image": FIRST_ID + number, **parameters}
    )
    assert answer.status_code == 200, answer.content
    return answer.json()


def numbers(body: Any) -> list[int]:
    return [one["image"] - FIRST_ID for one in body["results"]]


def brute_force(number: int) -> list[tuple[int, float]]:
    """(toy image, cosine similarity) of all others, by the vectors as they are stored."""
    stored = {
        one.image_id - FIRST_ID: np.float16(one.vector).astype(float)
        for one in Embedding.objects.all()
    }
    scores = {other: float(one @ stored[number]) for other, one in stored.items()}
    del scores[number]
    return sorted(scores.items(), key=lambda one: (-one[1], one[0]))


def test_the_order_is_exact_and_without_the_image_itself(toy_model, open_query, annotator_api):
    make_images(70)
    query = open_query()
    # What is embedded after the list was frozen is found too, without a rank.
    make_images(1, first=70)
    for number in (0, 17, 69):
        body = near(annotator_api, query, number, limit=200)
        expected = brute_force(number)
        assert body["within"] == "corpus"
        assert numbers(body) == [other for other, _ in expected]
        assert [one["score"] for one in body["results"]] == [score for _, score in expected]
        assert [one["image"] for one in body["results"] if one["rank"] is None] == [FIRST_ID + 70]
    assert numbers(near(annotator_api, query, 69)) == numbers(body)[:60]
    for parameters, field in (
        ({}, "image"),
        ({"image": "x"}, "image"),
        ({"image": 2**63}, "image"),
        ({"image": FIRST_ID + 71}, "image"),
        ({"image": FIRST_ID, "limit": 0}, "limit"),
        ({"image": FIRST_ID, "limit": 201}, "limit"),
    ):
        answer = annotator_api.get(f"/api/queries/{query.pk}/similar/", parameters)
        assert (answer.status_code, fields(answer)) == (400, [field])


def test_equal_scores_are_ordered_by_id_and_a_twin_is_no_self(toy_model, open_query, annotator_api):
    embed(make_images(5, embedded=False), [0.5, 1.0, 0.5, 1.0, 0.5])
    body = near(annotator_api, open_query(), 2)
    assert numbers(body) == [0, 4, 1, 3]
    assert [one["score"] for one in body["results"][:2]] == pytest.approx([1.0, 1.0], abs=1e-3)


def test_what_is_told_of_each(
    toy_model, open_query, annotator, other_annotator, annotator_api, settings
):
    toad = make_species("Bufo bufo")
    make_images(2)
    make_images(2, first=2, species=toad)
    settings.CANDIDATE_DEPTH = 3
    query = open_query()
    judge(query, annotator, [1], "unsure")
    judge(query, other_annotator, [2], "relevant")
    results = near(annotator_api, query, 0)["results"]
    score = results[0].pop("score")
    assert score == pytest.approx(1 - 1 / 2048, abs=1e-7)
    assert results[0] == {
        "image": FIRST_ID + 1,
        "url": signed(f"/images/1002/{1:064x}"[:21] + ".jpg"),
        "thumbnail_url": signed(f"/images/1002/{1:064x}"[:21] + "-thumb.jpg"),
        "width": 4,
        "height": 3,
        "rank": 2,
        "species": None,
        "relevance": "unsure",
    }
    assert [(one["rank"], one["relevance"]) for one in results[1:]] == [(3, None), (None, None)]
    assert results[2]["species"] == {
        "id": toad.pk,
        "scientific_name": "Bufo bufo",
        "common_name": "",
    }


def test_only_within_the_species_filter(toy_model, open_query, annotator_api):
    toad, newt = make_species("Bufo bufo"), make_species("Triturus cristatus")
    make_images(3, species=toad)
    make_images(3, first=3, species=newt)
    make_images(2, first=6)
    body = near(annotator_api, open_query(species=[newt]), 4)
    assert (body["within"], numbers(body)) == ("filter", [5, 3])
    # The image asked about need not be in the filter itself.
    body = near(annotator_api, open_query("a newt", species=[newt]), 0)
    assert (body["within"], numbers(body)) == ("filter", [3, 4, 5])


def test_withdrawn_images_are_neither_found_nor_asked_about(
    toy_model, open_query, reviewer, annotator_api
):
    images = make_images(6)
    query = open_query()
    withdrawals = [
        ImageWithdrawal.objects.create(
            image=images[number], withdrawn_by=reviewer, withdrawn_at=timezone.now()
        )
        for number in (1, 3)
    ]
    assert numbers(near(annotator_api, query, 0, limit=3)) == [2, 4, 5]
    address = f"/api/queries/{query.pk}/similar/"
    answer = annotator_api.get(address, {"image": FIRST_ID + 1})
    assert answer.status_code == 409
    assert answer.json()["detail"] == "The image was withdrawn from the corpus."
    withdrawals[0].restored_by, withdrawals[0].restored_at = reviewer, timezone.now()
    withdrawals[0].save()
    assert numbers(near(annotator_api, query, 1)) == [
        other for other, _ in brute_force(1) if other != 3
    ]


def test_what_cannot_be_compared_is_a_conflict_with_its_reason(
    toy_model, open_query, new_query, admin_api
):
    make_images(2)
    query = open_query()
    make_images(1, first=2, embedded=False)
    for which, number, reason in (
        (query, 2, "The image has no embedding under"),
        (new_query(), 0, "The candidate list isn't ready yet"),
    ):
        answer = admin_api.get(f"/api/queries/{which.pk}/similar/", {"image": FIRST_ID + number})
        assert answer.status_code == 409
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.json()["detail"].startswith(reason)


def test_through_the_matrix_the_same_is_found(toy_model, open_query, annotator_api):
    toad = make_species("Bufo bufo")
    make_images(30)
    make_images(20, first=30, species=toad)
    make_images(3, first=50, embedded=False)
    queries = [open_query(), open_query("a toad of a kind", species=[toad])]
    by_scan = [near(annotator_api, query, 40, limit=15) for query in queries]
    call_command("pack_embeddings", model=toy_model.name, verbosity=0)
    assert ranking_method(toy_model) == "matrix"
    assert [near(annotator_api, query, 40, limit=15) for query in queries] == by_scan
    assert [len(body["results"]) for body in by_scan] == [15, 15]
