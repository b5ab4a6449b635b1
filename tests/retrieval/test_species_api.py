"""Species through the API: what the picker asks for."""

import pytest
from django.utils import timezone

from retrieval.corpus.models import ImageWithdrawal
from tests.retrieval.making import image_row, unsigned

pytestmark = pytest.mark.django_db

BEARS = {"kind": "genus", "name": "Ursus", "species_count": 2}
BEAR_FAMILY = {"kind": "family", "name": "Ursidae", "species_count": 2}


@pytest.fixture
def pictured(animals, admin):
    """Image 1 (withdrawn) and 2 of the brown bear."""
    first = image_row(1, animals["Ursus arctos"])
    image_row(2, animals["Ursus arctos"])
    ImageWithdrawal.objects.create(image=first, withdrawn_by=admin, withdrawn_at=timezone.now())
    return animals


def names(species):
    return [one["scientific_name"] for one in species]


def refused(answer, field):
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    return answer.json()["errors"][0]["detail"]


def test_a_species_found_comes_with_what_one_chooses_it_by(pictured, annotator_api):
    body = annotator_api.get("/api/species/?search=braun bar").json()
    assert body["count"] == 1
    [bear] = body["results"]
    assert (bear["matched_name"], bear["matched_language"]) == ("Braunbär", "de")
    assert bear["lineage"] == ["Ursidae", "Ursus"]
    assert bear["image_count"] == 1
    assert unsigned(bear["thumbnail_url"]) == f"/images/2/{2:064x}"[:18] + "-thumb.jpg"
    assert bear["groups"] == [BEARS, BEAR_FAMILY]
    assert annotator_api.get(f"/api/species/{bear['id']}/").json() == bear | {
        "matched_name": "",
        "matched_language": "",
    }
    monarch = annotator_api.get("/api/species/?search=monarch").json()["results"][0]
    assert (monarch["image_count"], monarch["thumbnail_url"]) == (0, None)
    assert annotator_api.get("/api/species/?search=monarch&with_images=true").json()["count"] == 0
    with_images = annotator_api.get("/api/species/?search=bear&with_images=true").json()["results"]
    assert names(with_images) == ["Ursus arctos"]


@pytest.mark.parametrize(("role", "hidden"), [("annotator", True), ("reviewer", False)])
def test_no_image_tells_the_species_where_names_are_hidden(
    pictured, settings, request, role, hidden
):
    settings.HIDE_SPECIES_NAMES = True
    api = request.getfixturevalue(f"{role}_api")
    bear = pictured["Ursus arctos"].pk
    found = [
        api.get("/api/species/?search=ursus arctos").json()["results"][0],
        api.get(f"/api/species/{bear}/").json(),
        api.post("/api/species/resolve/", {"names": ["ursus arctos"]}).json()["found"][0],
    ]
    assert [one["thumbnail_url"] is None for one in found] == [hidden] * 3
    assert [one["image_count"] for one in found] == [1] * 3


def test_groups_by_name_and_of_a_species(pictured, annotator_api):
    url = "/api/species/groups/"
    assert annotator_api.get(f"{url}?search=urs").json() == [
        BEAR_FAMILY | {"image_count": 1},
        BEARS | {"image_count": 1},
    ]
    assert annotator_api.get(f"{url}?search=butterflies+black").json() == [
        {
            "kind": "lookalike",
            "name": "orange and black butterflies",
            "species_count": 2,
            "image_count": 0,
        }
    ]
    bear = pictured["Ursus arctos"].pk
    assert annotator_api.get(f"{url}?species={bear}").json() == [
        BEARS | {"image_count": 1},
        BEAR_FAMILY | {"image_count": 1},
    ]
    assert annotator_api.get(f"{url}?species=0").json() == []
    assert annotator_api.get(url).json() == []
    refused(annotator_api.get(f"{url}?search={'x' * 201}"), "search")
    refused(annotator_api.get(f"{url}?species=bear"), "species")


def test_a_pasted_list_is_resolved_at_once(pictured, annotator_api):
    wanted = ["Monarch", "ursus", "Nessie", "polr bear", "Ursus arctos Linnaeus", ""]
    body = annotator_api.post("/api/species/resolve/", {"names": wanted}).json()
    assert names(body["found"]) == ["Danaus plexippus", "Ursus arctos", "Ursus maritimus"]
    assert body["found"][1]["image_count"] == 1
    assert body["missing"] == ["Nessie", "polr bear", ""]
    assert body["groups"] == [BEARS]
    assert [(s["name"], names(s["species"])) for s in body["suggestions"]] == [
        ("polr bear", ["Ursus maritimus"])
    ]


def test_two_thousand_names_at_once_and_no_more(pictured, annotator_api):
    wanted = [*pictured, *(f"nothing {n}" for n in range(1995))]
    body = annotator_api.post("/api/species/resolve/", {"names": wanted}).json()
    assert names(body["found"]) == sorted(pictured)
    assert body["missing"] == wanted[5:]
    answer = annotator_api.post("/api/species/resolve/", {"names": [*wanted, "one more"]})
    assert "2000" in refused(answer, "names")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"names": "Ursus"}, "names"),
        ({"names": [["Ursus"]]}, "names.0"),
        ({"names": [True]}, "names.0"),
        ({"groups": [{"kind": "tribe", "name": "Ursini"}]}, "groups.0.kind"),
        ({"groups": [{"kind": "genus"}]}, "groups.0.name"),
        ({"groups": [{"kind": "genus", "name": 7}]}, "groups.0.name"),
    ],
)
def test_a_list_that_is_none_is_refused_by_field(pictured, annotator_api, body, field):
    refused(annotator_api.post("/api/species/resolve/", body), field)


def test_lists_are_for_those_who_are_logged_in(pictured, anonymous_api):
    assert anonymous_api.post("/api/species/resolve/", {"names": ["ursus"]}).status_code == 401
    assert anonymous_api.get("/api/species/groups/?search=ursus").status_code == 401
