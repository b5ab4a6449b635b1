"""Who may ask what of the labeling page's part of the API, and what is kept from them."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import Image, SpeciesName
from tests.labeling.conftest import FIRST_ID, fields, make_images, make_species
from tests.labeling.judging import judge

READS = [
    "outline/", "candidates/", "candidates/?ranks=1", "matching/", "facets/", "changes/",
    f"similar/?image={FIRST_ID}", "reference/",
]  # fmt: skip


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(3)


def test_everybody_who_is_logged_in_reads(
    images, open_query, anonymous_api, annotator_api, reviewer_api, admin_api
):
    query = open_query()
    for path in READS:
        address = f"/api/queries/{query.pk}/{path}"
        clients = (anonymous_api, annotator_api, reviewer_api, admin_api)
        assert [api.get(address).status_code for api in clients] == [401, 200, 200, 200], path
        assert [admin_api.post(address).status_code, admin_api.delete(address).status_code] == [
            *(405, 405)
        ]


def test_a_query_that_is_not_theirs_does_not_exist_for_an_annotator(
    images, open_query, annotator, annotator_api, other_annotator_api, reviewer_api
):
    query = open_query()
    judge(query, annotator, [0], "relevant")
    for state in ("draft", "submitted", "complete", "rejected"):
        Query.objects.update(state=state, reject_reason="other" * (state == "rejected"))
        for path in READS:
            address = f"/api/queries/{query.pk}/{path}"
            assert other_annotator_api.get(address).status_code == 404
            assert annotator_api.get(address).status_code == 200  # who has judged goes on reading
            assert reviewer_api.get(f"/api/queries/999999999/{path}").status_code == 404
        examples = f"/api/queries/{query.pk}/examples/"
        assert other_annotator_api.post(examples, {}).status_code == 404
        assert other_annotator_api.delete(f"{examples}{FIRST_ID}/").status_code == 404


def test_only_admins_pin_examples(images, open_query, anonymous_api, annotator_api, reviewer_api):
    query = open_query()
    QueryExample.objects.create(query=query, image=images[0], relevant=True)
    address = f"/api/queries/{query.pk}/examples/"
    for api, status in ((anonymous_api, 401), (annotator_api, 403), (reviewer_api, 403)):
        assert api.post(address, {"image": FIRST_ID, "relevant": False}).status_code == status
        assert api.delete(f"{address}{FIRST_ID}/").status_code == status
        assert api.get(address).status_code in (401, 405)
    assert QueryExample.objects.get().relevant is True


def test_no_name_of_a_species_gets_to_whom_they_are_hidden_from(
    toy_model, open_query, settings, annotator_api, reviewer_api
):
    lineage = {
        "kingdom": "Animalia", "phylum": "Chordata", "class_name": "Amphibia", "order": "Anura",
        "family": "Bufonidae", "lookalike_group": "brown toads",
    }  # fmt: skip
    toad, other = make_species("Bufo bufo", **lineage), make_species("Bufo spinosus", **lineage)
    SpeciesName.objects.create(
        species=toad, language="en", name="Common toad", search_text="common toad"
    )
    make_images(2, species=toad)
    make_images(1, first=2, species=other)
    query = open_query("a big one", species=[toad, other])
    QueryExample.objects.create(query=query, image_id=FIRST_ID, relevant=True)
    settings.HIDE_SPECIES_NAMES = True
    hidden = ["Bufo", "toad", "Animalia", "Chordata", "Amphibia", "Anura", "scientific_name"]
    for path in READS:
        address = f"/api/queries/{query.pk}/{path}"
        content = annotator_api.get(address).content.decode()
        assert [word for word in hidden if word in content] == []
    for path in ("candidates/", f"similar/?image={FIRST_ID}"):
        results = annotator_api.get(f"/api/queries/{query.pk}/{path}").json()["results"]
        assert {one["species"] for one in results} == {None}
    assert annotator_api.get(f"/api/queries/{query.pk}/facets/").json()["species"] == []
    assert annotator_api.get(f"/api/queries/{query.pk}/").json()["species"] is None
    matching = f"/api/queries/{query.pk}/matching/"
    for species in (toad.pk, 999999):  # nothing can be told from the answer
        answer = annotator_api.get(matching, {"species": species})
        assert (answer.status_code, fields(answer)) == (400, ["species"])
    assert reviewer_api.get(matching, {"species": toad.pk}).json()["ranks"] == [1, 2]
    assert len(reviewer_api.get(f"/api/queries/{query.pk}/facets/").json()["species"]) == 2


def test_the_description_of_the_api_has_no_warnings(tmp_path):
    file = tmp_path / "schema.yml"
    call_command("spectacular", "--fail-on-warn", "--validate", "--file", str(file))
    schema = file.read_text()
    for path in ("outline", "matching", "facets", "changes", "similar", "reference", "examples"):
        assert f"/api/queries/{{id}}/{path}/:" in schema
    assert "/api/queries/{id}/examples/{image}/:" in schema
    assert "/api/preferences/labeling/:" in schema
