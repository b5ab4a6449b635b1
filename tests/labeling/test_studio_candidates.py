"""Candidates page by page or by rank, with what the labeling page shows of each."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from labeling.queries.models import Query
from labeling.studio.candidates import candidates_at
from retrieval.corpus.addresses import signed
from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag
from tests.labeling.conftest import FIRST_ID, fields, make_images, make_species
from tests.labeling.judging import judge


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(6)


def shown(api: APIClient, query: Query, **parameters: Any) -> Any:
    answer = api.get(f"/api/queries/{query.pk}/candidates/", parameters)
    assert answer.status_code == 200, answer.content
    return answer.json()


def ranks(body: Any) -> list[int]:
    return [one["rank"] for one in body["results"]]


def test_everything_that_is_told_of_a_candidate(toy_model, open_query, annotator, annotator_api):
    [image] = make_images(1, species=make_species("Bufo bufo"))
    Image.objects.update(license="cc-by", rights_holder="(c) Some Body")
    ImageFlag.objects.create(image=image, kind="person", raised_by=annotator)
    query = open_query()
    judge(query, annotator, [0], "relevant")
    [one] = shown(annotator_api, query)["results"]
    assert one == {
        "rank": 1,
        "score": 1.0,
        "image": FIRST_ID,
        "url": signed("/images/1001/00000000.jpg"),
        "thumbnail_url": signed("/images/1001/00000000-thumb.jpg"),
        "width": 4,
        "height": 3,
        "species": {"id": image.species_id, "scientific_name": "Bufo bufo", "common_name": ""},
        "latitude": 1.5,
        "longitude": -2.5,
        "location_uncertainty": None,
        "coordinates_obscured": False,
        "observed_at": None,
        "license": "cc-by",
        "rights_holder": "(c) Some Body",
        "relevance": "relevant",
        "grade": None,
        "reason": "",
        "custom_fields": {},
        "flags": ["person"],
    }


def test_open_flags_of_everybody_each_kind_once(
    images, open_query, annotator, other_annotator, annotator_api
):
    for who in (annotator, other_annotator):
        for kind in ("wrong_species", "duplicate"):
            ImageFlag.objects.create(image=images[1], kind=kind, raised_by=who)
    ImageFlag.objects.create(
        image=images[2], kind="person", raised_by=annotator, state="cleared",
        decided_at=timezone.now(),
    )  # fmt: skip
    results = shown(annotator_api, open_query())["results"]
    assert [one["flags"] for one in results] == [[], ["duplicate", "wrong_species"], [], [], [], []]


def test_withdrawn_images_are_left_out_and_ranks_stay(images, open_query, reviewer, annotator_api):
    query = open_query()
    withdrawal = ImageWithdrawal.objects.create(
        image=images[1], withdrawn_by=reviewer, withdrawn_at=timezone.now()
    )
    body = shown(annotator_api, query)
    assert (ranks(body), body["count"]) == ([1, 3, 4, 5, 6], 6)
    assert ranks(shown(annotator_api, query, ranks="1,2,3")) == [1, 3]
    part = shown(annotator_api, query, start_rank=2, limit=2)
    assert ranks(part) == [3]
    assert part["next"].endswith(f"/api/queries/{query.pk}/candidates/?start_rank=4&limit=2")
    withdrawal.restored_by, withdrawal.restored_at = reviewer, timezone.now()
    withdrawal.save()
    assert ranks(shown(annotator_api, query)) == [1, 2, 3, 4, 5, 6]


def test_chosen_ranks_come_in_the_list_order(images, open_query, annotator, annotator_api):
    query = open_query()
    judge(query, annotator, [4], "unsure")
    body = shown(annotator_api, query, ranks="5,2,5,99")
    assert [(one["rank"], one["image"], one["relevance"]) for one in body["results"]] == [
        (2, FIRST_ID + 1, None),
        (5, FIRST_ID + 4, "unsure"),
    ]
    assert (body["start_rank"], body["next"], body["count"]) == (2, None, 6)
    assert body["progress"]["judged"] == 1


def test_ranks_that_are_none(images, open_query, new_query, annotator_api, admin_api):
    query = open_query()
    address = f"/api/queries/{query.pk}/candidates/"
    many = ",".join(str(rank) for rank in range(3, 504))
    for value in ("", "1,", "0", "-1", "x", "1.5", "2147483648", "٣", "1 2", many):
        answer = annotator_api.get(address, {"ranks": value})
        assert (answer.status_code, fields(answer)) == (400, ["ranks"]), value
    assert ranks(shown(annotator_api, query, ranks=many.rpartition(",")[0])) == [3, 4, 5, 6]
    body = shown(admin_api, new_query(), ranks="1,2")
    assert (body["results"], body["list"]["state"]) == ([], "none")


def test_candidates_take_as_many_queries_however_many_there_are(
    toy_model, open_query, annotator, annotator_api, settings, django_assert_num_queries
):
    for number in range(4):
        make_images(60, first=60 * number, species=make_species(f"Bufo b{number}"))
    query = open_query()
    judge(query, annotator, range(0, 240, 3), "relevant")
    for start, limit in ((1, 2), (1, 240)):
        with django_assert_num_queries(2):
            page = candidates_at(query=query, user=annotator, ranks=range(start, start + limit))
        assert len(page) == limit
    with django_assert_num_queries(2):
        assert len(candidates_at(query=query, user=annotator, ranks=range(1, 200, 2))) == 100
    # Token, query, candidates, names, progress.
    with django_assert_num_queries(5):
        assert len(ranks(shown(annotator_api, query, limit=240))) == 240
    settings.HIDE_SPECIES_NAMES = True
    with django_assert_num_queries(1):
        page = candidates_at(query=query, user=annotator, ranks=range(1, 101))
    assert {one.species for one in page} == {None}
