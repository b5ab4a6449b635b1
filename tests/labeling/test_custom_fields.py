"""Who sees which custom fields of an image, wherever images are shown."""

from __future__ import annotations

from typing import Any

import pytest

from labeling.blind.requests import images_put_before
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import CustomField, Image
from retrieval.takedown.services import image_take_down
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images
from tests.labeling.judging import item, record

PAGE = f"/images/{FIRST_ID}/"
VALUES = {"<b>shown": 2.0, "released": "=the label", "hidden": True, "of no field": "lost"}
SHOWN, EVERYTHING = {"<b>shown"}, {"<b>shown", "released", "hidden"}


@pytest.fixture
def query(toy_model: Any, open_query: Any, annotator: Any, other_annotator: Any) -> Query:
    """An open query, about whose first image two people disagree."""
    make_images(4)
    Image.objects.filter(pk=FIRST_ID).update(custom_fields=VALUES)
    CustomField.objects.create(name="<b>shown", kind="number", shown_to_annotators=True)
    CustomField.objects.create(name="released", kind="text", in_releases=True)
    CustomField.objects.create(name="hidden", kind="yes_no")
    made: Query = open_query()
    record(made, annotator, item(0, "relevant"))
    record(made, other_annotator, item(0, "not_relevant"))
    return made


def on_page(user: Any) -> set[str]:
    page = client_of(user).get(PAGE).content.decode()
    assert "<b>shown" not in page
    assert "of no field" not in page
    assert ("=the label" in page) == ("released" in page)
    return {name for name in EVERYTHING if f"<dt><bdi>{name.replace('<b>', '&lt;b&gt;')}" in page}


def test_each_role_sees_its_fields(
    query: Query, researcher: Any, annotator: Any, reviewer: Any, admin: Any
) -> None:
    for user, expected in ((annotator, SHOWN), (reviewer, EVERYTHING), (admin, EVERYTHING)):
        assert on_page(user) == expected, user
        api = api_of(user)
        one = api.get(f"/api{PAGE}").json()["custom_fields"]
        listed = api.get("/api/images/").json()["results"]
        assert one == listed[0]["custom_fields"] == {name: VALUES[name] for name in expected}
        assert [other["custom_fields"] for other in listed[1:]] == [{}] * 3
    assert client_of(researcher).get(PAGE).status_code == 403
    assert api_of(researcher).get(f"/api{PAGE}").status_code == 403
    page = client_of(reviewer).get(PAGE).content.decode()
    assert page.count("hidden from annotators") == 2
    assert "hidden from annotators" not in client_of(annotator).get(PAGE).content.decode()


def test_whoever_labels_sees_those_that_annotators_see(
    query: Query, annotator: Any, reviewer: Any, admin: Any
) -> None:
    """Reviewers too: they judge blindly as annotators do."""
    images_put_before(query=query, image_ids=[FIRST_ID + 1], by=admin)
    Image.objects.filter(pk=FIRST_ID + 1).update(custom_fields=VALUES)
    address = f"/api/queries/{query.pk}"
    for user in (annotator, reviewer):
        api = api_of(user)
        answers = [
            api.get(f"{address}/candidates/"),
            api.post(f"{address}/further-images/draws/", {"count": 5}, format="json"),
            api.post(f"{address}/audit/draws/", {"count": 9}, format="json"),
        ]
        if user == reviewer:
            query_transition(query=query, to_state="submitted", by=admin, note="enough")
            answers.append(api.get(f"{address}/review/"))
        for answer in answers:
            assert answer.status_code == 200, answer.content
            [*found] = [one["custom_fields"] for one in answer.json()["results"]]
            assert {"<b>shown": 2.0} in found or "audit" in answer.request["PATH_INFO"]
            assert not any(EVERYTHING - SHOWN & one.keys() for one in found)
            assert b"the label" not in answer.content
    page = client_of(annotator).get(f"/queries/{query.pk}/further-images/").content
    assert b"the label" not in page


def test_a_takedown_leaves_no_values(query: Query, reviewer: Any, admin: Any) -> None:
    image_take_down(image=Image(pk=FIRST_ID), reason="A face", by=admin)
    assert on_page(reviewer) == set()
    assert api_of(reviewer).get(f"/api{PAGE}").json()["custom_fields"] == {}
