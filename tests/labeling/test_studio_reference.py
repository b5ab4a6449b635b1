"""The reference panel: species, look-alikes, examples; and the examples that admins pin."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework.test import APIClient

from core.registries import CONFUSIONS
from labeling.lifecycle.examples import MOST_PINNED
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.addresses import signed
from retrieval.corpus.models import ImageWithdrawal, Species, SpeciesName
from tests.labeling.conftest import FIRST_ID, fields, make_images, make_species


def read(api: APIClient, query: Query) -> Any:
    answer = api.get(f"/api/queries/{query.pk}/reference/")
    assert answer.status_code == 200, answer.content
    return answer.json()


def urls(number: int) -> dict[str, Any]:
    start = f"/images/{FIRST_ID + number}/{number:064x}"[:21]
    return {
        "image": FIRST_ID + number,
        "url": signed(f"{start}.jpg"),
        "thumbnail_url": signed(f"{start}-thumb.jpg"),
    }


def withdraw(number: int, by: Any) -> None:
    ImageWithdrawal.objects.create(
        image_id=FIRST_ID + number, withdrawn_by=by, withdrawn_at=timezone.now()
    )


def test_everything_that_is_told_of_a_species(toy_model, open_query, reviewer, annotator_api):
    toad = make_species(
        "Bufo bufo",
        kingdom="Animalia",
        class_name="Amphibia",
        family="Bufonidae",
        lookalike_group="brown toads",
    )
    for language, name in (("de", "Erdkröte"), ("en", "Common toad"), ("en", "Toad")):
        SpeciesName.objects.create(
            species=toad, language=language, name=name, search_text=name.lower()
        )
    frog = make_species("Rana temporaria", lookalike_group="brown toads")
    SpeciesName.objects.create(species=frog, language="en", name="Frog", search_text="frog")
    other = make_species("Alytes obstetricans", lookalike_group="brown toads")
    make_species("Bufo spinosus")  # of the genus, but the group goes before
    make_images(9, species=toad)
    make_images(2, first=9, species=frog)
    make_images(1, first=11, species=other)
    for number in (1, 9, 11):
        withdraw(number, reviewer)
    body = read(annotator_api, open_query(species=[toad]))
    assert body["species_total"] == 1
    assert body["species"] == [
        {
            "id": toad.pk,
            "scientific_name": "Bufo bufo",
            "common_name": "Common toad",
            "names": [
                {"language": "de", "name": "Erdkröte"},
                {"language": "en", "name": "Common toad"},
                {"language": "en", "name": "Toad"},
            ],
            "lineage": ["Animalia", "Amphibia", "Bufonidae", "Bufo"],
            "lookalikes": [
                {
                    "id": other.pk,
                    "scientific_name": "Alytes obstetricans",
                    "common_name": "",
                    "thumbnail_url": None,
                    "times": 0,
                },
                {
                    "id": frog.pk,
                    "scientific_name": "Rana temporaria",
                    "common_name": "Frog",
                    "thumbnail_url": urls(10)["thumbnail_url"],
                    "times": 0,
                },
            ],
            "image_count": 8,
            "examples": [urls(number) for number in (0, 2, 3, 4, 5, 6)],
        }
    ]


def test_without_a_group_the_genus_stands_for_look_alikes(toy_model, open_query, annotator_api):
    group = make_species("Aus solus", lookalike_group="alone")  # nobody else is in its group
    for epithet in "jihgfedcba":
        make_species(f"Aus {epithet}")
    nothing = Species.objects.create(scientific_name="Incertae")
    Species.objects.create(scientific_name="Incertae sedis")  # neither has a genus
    make_images(1, species=group)
    make_images(1, first=1, species=Species.objects.get(scientific_name="Aus a"))
    species = read(annotator_api, open_query(species=[group, nothing]))["species"]
    assert [one["scientific_name"] for one in species] == ["Aus solus", "Incertae"]
    assert [one["scientific_name"] for one in species[0]["lookalikes"]] == [
        f"Aus {epithet}" for epithet in "abcdefgh"
    ]
    assert [one["thumbnail_url"] for one in species[0]["lookalikes"]] == [
        urls(1)["thumbnail_url"],
        *[None] * 7,
    ]
    assert (species[1]["lookalikes"], species[1]["image_count"], species[1]["examples"]) == (
        [],
        0,
        [],
    )


def test_fifty_species_by_name_in_as_many_queries_as_one(
    toy_model, open_query, admin, annotator_api, django_assert_num_queries
):
    kinds = [make_species(f"Genus{n // 6} s{n:02}") for n in range(53)]
    for number, one in enumerate(kinds):
        make_images(7, first=7 * number, species=one)
    few = open_query(species=kinds[:1])
    many = open_query("a newt", species=kinds)
    for query in (few, many):
        for number in (3, 4):
            QueryExample.objects.create(query=query, image_id=FIRST_ID + number, relevant=True)
    # Token, query, pinned, filters, species, names, look-alikes, those with names, counts, images.
    for query in (few, many):
        with django_assert_num_queries(14 + len(CONFUSIONS)):
            body = read(annotator_api, query)
    assert body["species_total"] == 53
    names = [one["scientific_name"] for one in body["species"]]
    assert names == sorted(one.scientific_name for one in kinds)[:50]
    assert {len(one["examples"]) for one in body["species"]} == {6}
    assert {one["image_count"] for one in body["species"]} == {7}
    assert {len(one["lookalikes"]) for one in body["species"][:48]} == {5}


def test_hidden_names_leave_guidelines_and_pinned_images(
    toy_model, open_query, settings, annotator_api, reviewer_api, django_assert_num_queries
):
    toad = make_species("Bufo bufo", family="Bufonidae")
    make_species("Bufo spinosus")
    make_images(2, species=toad)
    query = open_query(species=[toad], guidelines="Look at the eyes.")
    QueryExample.objects.create(query=query, image_id=FIRST_ID, relevant=True, note="yes")
    settings.HIDE_SPECIES_NAMES = True
    with django_assert_num_queries(3):
        answer = annotator_api.get(f"/api/queries/{query.pk}/reference/")
    assert answer.json() == {
        "guidelines": "Look at the eyes.",
        "guidelines_html": "<p>Look at the eyes.</p>",
        "names_hidden": True,
        "species": [],
        "species_total": 0,
        "pinned": [urls(0) | {"relevant": True, "note": "yes"}],
    }
    body = read(reviewer_api, query)
    assert (body["names_hidden"], len(body["species"])) == (False, 1)


def test_examples_are_pinned_changed_and_taken_away(
    toy_model, open_query, admin, admin_api, annotator_api
):
    make_images(4)
    query = open_query()
    address = f"/api/queries/{query.pk}/examples/"
    answer = admin_api.post(
        address, {"image": FIRST_ID + 1, "relevant": False, "note": "only its shadow"}
    )
    assert answer.status_code == 201
    assert answer.json() == urls(1) | {"relevant": False, "note": "only its shadow"}
    assert admin_api.post(address, {"image": FIRST_ID + 3, "relevant": True}).status_code == 201
    assert admin_api.post(address, {"image": FIRST_ID, "relevant": True}).status_code == 201
    example = QueryExample.objects.get(image=FIRST_ID + 3)
    assert (example.pinned_by, example.note) == (admin, "")
    assert [
        (one["image"] - FIRST_ID, one["relevant"]) for one in read(annotator_api, query)["pinned"]
    ] == [(3, True), (0, True), (1, False)]
    again = admin_api.post(address, {"image": FIRST_ID + 1, "relevant": True, "note": "a tail"})
    assert (again.status_code, again.json()) == (
        200,
        urls(1) | {"relevant": True, "note": "a tail"},
    )
    assert [one["image"] - FIRST_ID for one in read(annotator_api, query)["pinned"]] == [1, 3, 0]
    assert admin_api.delete(f"{address}{FIRST_ID + 3}/").status_code == 204
    assert admin_api.delete(f"{address}{FIRST_ID + 3}/").status_code == 404
    assert [one["image"] - FIRST_ID for one in read(annotator_api, query)["pinned"]] == [1, 0]


def test_examples_are_of_one_query_and_never_withdrawn(toy_model, open_query, reviewer, admin_api):
    make_images(2)
    query, other = open_query(), open_query("a newt")
    address = f"/api/queries/{query.pk}/examples/"
    admin_api.post(address, {"image": FIRST_ID, "relevant": True})
    assert read(admin_api, other)["pinned"] == []
    assert admin_api.delete(f"/api/queries/{other.pk}/examples/{FIRST_ID}/").status_code == 404
    withdraw(0, reviewer)
    withdraw(1, reviewer)
    assert read(admin_api, query)["pinned"] == []
    answer = admin_api.post(address, {"image": FIRST_ID + 1, "relevant": True})
    assert answer.status_code == 409
    assert "withdrawn" in answer.json()["detail"]
    assert QueryExample.objects.count() == 1


def test_bad_examples_are_named_and_more_than_40_refused(toy_model, open_query, admin_api):
    images = make_images(MOST_PINNED + 1)
    query = open_query()
    address = f"/api/queries/{query.pk}/examples/"
    for body, named in (
        ({"relevant": True}, ["image"]),
        ({"image": FIRST_ID}, ["relevant"]),
        ({"image": FIRST_ID + 99, "relevant": True}, ["image"]),
        ({"image": 2**63, "relevant": True}, ["image"]),
        ({"image": FIRST_ID, "relevant": "perhaps"}, ["relevant"]),
        ({"image": FIRST_ID, "relevant": True, "note": "x" * 501}, ["note"]),
        ({"image": FIRST_ID, "relevant": True, "note": "\0"}, ["note"]),
        ([], [""]),
    ):
        answer = admin_api.post(address, body)
        assert (answer.status_code, fields(answer)) == (400, named)
    for image in ("x", "-1", "9" * 19, "99", "٣"):
        answer = admin_api.delete(f"{address}{image}/")
        assert answer.status_code == 404
        assert answer["Content-Type"] == "application/problem+json"
    assert not QueryExample.objects.exists()
    QueryExample.objects.bulk_create(
        QueryExample(query=query, image=image, relevant=True) for image in images[:MOST_PINNED]
    )
    full = admin_api.post(address, {"image": FIRST_ID + MOST_PINNED, "relevant": True})
    assert full.status_code == 409
    assert "40 examples are pinned already" in full.json()["detail"]
    assert admin_api.post(address, {"image": FIRST_ID, "relevant": False}).status_code == 200
    assert QueryExample.objects.count() == MOST_PINNED
