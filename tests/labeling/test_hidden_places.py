"""Places of threatened species: hidden from annotators, rounded in releases."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from labeling.queries.models import Query
from releases.making.images import released_images
from retrieval.corpus.models import Image
from retrieval.corpus.places import rounded_place
from retrieval.takedown.services import image_take_down
from tests.labeling.conftest import FIRST_ID, make_images, make_species


@pytest.fixture
def query(toy_model, open_query) -> Query:
    """Images 0 and 1 are of an endangered toad, 2 and 3 of a newt; all at 1.5° N, 2.5° W."""
    make_images(2, species=make_species("Bufo bufo", conservation_status="EN"))
    make_images(2, first=2, species=make_species("Triturus cristatus"))
    return open_query()


def places(api: APIClient, query: Query) -> dict[str, Any]:
    """What each address that shows places says of them."""
    address = f"/api/queries/{query.pk}"
    rows = api.get(f"{address}/candidates/").json()["results"]
    boxed = api.get(f"{address}/matching/", {"bbox": "-3,1,-2,2"}).json()
    images = [api.get(f"/api/images/{FIRST_ID + number}/").json() for number in range(4)]
    return {
        "candidates": [row["latitude"] for row in rows],
        "images": [image["longitude"] for image in images],
        "boxed": boxed["ranks"],
        "with place": api.get(f"{address}/facets/").json()["with_place"],
    }


EVERYTHING = {
    "candidates": [1.5] * 4, "images": [-2.5] * 4, "boxed": [1, 2, 3, 4], "with place": 4
}  # fmt: skip


def test_annotators_see_no_places_of_species_of_these_categories(
    query, annotator_api, reviewer_api, settings
):
    assert places(annotator_api, query) == EVERYTHING
    settings.HIDDEN_PLACES = ["CR", "EN"]
    assert places(reviewer_api, query) == EVERYTHING
    assert places(annotator_api, query) == {
        "candidates": [None, None, 1.5, 1.5],
        "images": [None, None, -2.5, -2.5],
        "boxed": [3, 4],
        "with place": 2,
    }
    text = json.dumps(annotator_api.get(f"/api/images/{FIRST_ID}/").json())
    assert "1.5" not in text
    assert "2.5" not in text


def test_releases_round_places_by_category(query, settings):
    def released() -> list[tuple[float | None, float | None, float | None]]:
        images = released_images([FIRST_ID, FIRST_ID + 1, FIRST_ID + 2])
        return [(one.latitude, one.longitude, one.location_uncertainty) for one in images]

    Image.objects.filter(pk=FIRST_ID + 1).update(latitude=None)
    assert released() == [(1.5, -2.5, None), (None, -2.5, None), (1.5, -2.5, None)]
    settings.ROUNDED_PLACES = {"EN": 0.2}
    assert released() == [(1.5, -2.5, 15760), (None, -2.5, None), (1.5, -2.5, None)]
    settings.ROUNDED_PLACES = {"EN": 2.0}
    assert released()[0] == (1.0, -3.0, 157600)


def test_a_cell_covers_its_places():
    assert rounded_place(52.123456, 13.987654, 10.0, degrees=0.1) == (52.15, 13.95, 7880)
    assert rounded_place(-0.01, -179.99, 9e6, degrees=1.0) == (-0.5, -179.5, 9e6)
    assert rounded_place(90.0, 180.0, None, degrees=1.0)[:2] == (90.0, 180.0)


def test_a_takedown_forgets_observer_and_elevation(query, admin):
    Image.objects.filter(pk=FIRST_ID).update(observer="17", elevation=100.0)
    image_take_down(image=Image.objects.get(pk=FIRST_ID), reason="asked by the owner", by=admin)
    image = Image.objects.get(pk=FIRST_ID)
    assert (image.observer, image.elevation, image.latitude) == ("", None, None)
