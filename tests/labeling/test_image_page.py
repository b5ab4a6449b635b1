"""The page of an image: who sees what of it, and what its API answers."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from labeling.comments.services import comment_add
from labeling.judging.models import BlindItem
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from releases.making.services import release_claim, release_make
from retrieval.corpus.models import Image, Species
from retrieval.flags.services import image_flag_raise, image_withdraw
from retrieval.takedown.services import image_take_down
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID, make_images, make_species
from tests.labeling.judging import judge

PAGE = f"/images/{FIRST_ID}/"
LABELING = f"/api/images/{FIRST_ID}/labeling/"


@pytest.fixture
def query(toy_model: Any, open_query: Any, annotator: Any) -> Query:
    """An open query; an annotator has judged the first image and written about it."""
    species = make_species("Bufo bufo", family="Bufonidae", conservation_status="CR")
    make_images(6, species=species)
    made: Query = open_query()
    judge(made, annotator, range(3), "relevant")
    comment_add(query=made, image_id=FIRST_ID, author=annotator, text="a toad", client_id=uuid4())
    return made


def labels(by: Any) -> list[tuple[str, str]]:
    """(annotator, relevance) as the API answers; the page shows as many."""
    answer = api_of(by).get(LABELING).json()
    page = client_of(by).get(PAGE).content.decode()
    assert page.count('<span class="badge relevant">') == len(answer["judgments"])
    assert ("<h3>Comments</h3>" in page) == bool(answer["threads"])
    assert ("<h3>Candidate lists</h3>" in page) == bool(answer["candidates"])
    return [(one["annotator"], one["relevance"]) for one in answer["judgments"]]


def threads(by: Any) -> int:
    return len(api_of(by).get(LABELING).json()["threads"])


def test_it_is_for_those_who_label(query: Query, researcher: Any, annotator: Any) -> None:
    assert Client().get(PAGE)["Location"].startswith("/login/?next=")
    assert client_of(researcher).get(PAGE).status_code == 403
    assert api_of(researcher).get(LABELING).status_code == 403
    assert client_of(annotator).get(PAGE).status_code == 200
    assert client_of(annotator).get("/images/999/").status_code == 404
    assert api_of(annotator).get("/api/images/999/labeling/").status_code == 404


def test_annotators_see_their_own_labels_and_reviewers_all(
    query: Query, annotator: Any, other_annotator: Any, reviewer: Any
) -> None:
    assert labels(annotator) == labels(reviewer) == [("ann", "relevant")]
    assert labels(other_annotator) == []
    assert (threads(annotator), threads(other_annotator), threads(reviewer)) == (1, 0, 1)
    assert b"ann" not in client_of(other_annotator).get(PAGE).content.replace(b"annotator", b"")
    judge(query, other_annotator, [0], "relevant")
    assert labels(other_annotator) == [("otto", "relevant")]
    assert threads(other_annotator) == 1
    ranks = [
        [one["rank"] for one in api_of(by).get(LABELING).json()["candidates"]]
        for by in (annotator, reviewer)
    ]
    assert ranks == [[], [1]]


def test_a_reviewer_who_is_to_judge_it_blindly_sees_nothing_of_that_query(
    query: Query, annotator: Any, reviewer: Any, admin: Any
) -> None:
    query_transition(query=query, to_state="submitted", by=reviewer, note="enough")
    BlindItem.objects.create(
        query=query, kind="second-opinions", image_id=FIRST_ID, not_for=annotator, place=1
    )
    assert labels(reviewer) == []
    empty: dict[str, list[Any]] = {"judgments": [], "threads": [], "candidates": []}
    assert api_of(reviewer).get(LABELING).json() == empty
    assert query.text.encode() not in client_of(reviewer).get(PAGE).content
    judge(query, admin, [0], "relevant")
    assert len(labels(reviewer)) == 2


def test_releases_are_for_reviewers(query: Query, annotator: Any, reviewer: Any) -> None:
    query_transition(query=query, to_state="complete", by=reviewer, note="enough")
    release = release_make(
        release=release_claim(name="Toads", created_by=None, options={"rerank_model": ""})
    )
    link = f'href="/releases/{release.pk}/"'.encode()
    assert link in client_of(reviewer).get(PAGE).content
    assert link not in client_of(annotator).get(PAGE).content
    address = f"/api/images/{FIRST_ID}/releases/"
    assert [one["id"] for one in api_of(reviewer).get(address).json()["results"]] == [release.pk]
    assert api_of(annotator).get(address).status_code == 403
    other = f"/api/images/{FIRST_ID + 5}/releases/"  # which nobody judged
    assert api_of(reviewer).get(other).json() == {"results": []}


def test_places_and_names_are_hidden_as_elsewhere(
    query: Query, annotator: Any, reviewer: Any, settings: Any
) -> None:
    Image.objects.filter(pk=FIRST_ID).update(folder="ponds/toads", taxon_text="Erdkröte")
    page = client_of(annotator).get(PAGE).content
    place = "1.5000° N, 2.5000° W".encode()
    words = (place, b"world-map", b"Bufonidae", b"ponds/toads", "Erdkröte".encode())
    assert all(text in page for text in words)
    answer = api_of(annotator).get(f"/api/images/{FIRST_ID}/").json()
    assert (answer["folder"], answer["taxon_text"]) == ("ponds/toads", "Erdkröte")
    settings.HIDDEN_PLACES, settings.HIDE_SPECIES_NAMES = ["CR"], True
    page = client_of(annotator).get(PAGE).content
    assert b"1.5000" not in page
    assert b"world-map" not in page
    assert b"Bufo" not in page
    assert b"toy/0.jpg" not in page
    assert b"ponds/toads" not in page
    assert "Erdkröte".encode() not in page
    page = client_of(reviewer).get(PAGE).content
    assert all(text in page for text in (b"1.5000", b"Bufonidae"))
    answer = api_of(annotator).get(f"/api/images/{FIRST_ID}/").json()
    assert (answer["source_id"], answer["file_name"], answer["elevation"]) == ("", "", None)
    assert (answer["folder"], answer["taxon_text"]) == ("", "")


def test_flags_withdrawals_and_takedowns_are_told_to_whom_they_concern(
    query: Query, annotator: Any, other_annotator: Any, reviewer: Any, admin: Any
) -> None:
    image = Image.objects.get(pk=FIRST_ID)
    image_flag_raise(image=image, kind="person", note="a face at the left", by=annotator)
    for by, told in ((annotator, True), (other_annotator, False), (reviewer, True)):
        page = client_of(by).get(PAGE).content
        assert b"Person or face" in page
        assert (b"a face at the left" in page) is told
    image_withdraw(image=image, by=reviewer, note="someone is in it")
    assert client_of(annotator).get(PAGE).status_code == 404
    assert api_of(annotator).get(LABELING).status_code == 404
    assert b"someone is in it" in client_of(reviewer).get(PAGE).content
    image_take_down(image=image, by=admin, reason="they asked")
    page = client_of(reviewer).get(PAGE).content
    assert b"taken down for good on" in page
    assert b"they asked" in page
    assert image.url.encode() not in page
    assert Species.objects.get().scientific_name.encode() in page
