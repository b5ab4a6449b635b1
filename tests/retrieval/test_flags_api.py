"""Flags through the API and on the reviewer's page, for each role."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from retrieval.corpus.models import Image, ImageWithdrawal
from retrieval.flags.models import ImageFlag
from retrieval.flags.services import image_flag_raise, image_withdraw
from tests.retrieval.making import image_row

pytestmark = pytest.mark.django_db

DECISIONS = ["withdraw", "clear-flags", "reopen-flags", "restore"]


@pytest.fixture
def image(animals: Any) -> Image:
    return image_row(7, animals["Ursus arctos"])


def refused(answer: Any, status: int) -> str:
    """The text of a problem document, after checking its form."""
    assert answer.status_code == status
    assert answer["Content-Type"] == "application/problem+json"
    return str(answer.json()["detail"])


def decide(api: APIClient, what: str, image: int = 7, **body: Any) -> Any:
    return api.post(f"/api/images/{image}/{what}/", body)


def test_a_flag_is_answered_and_sent_twice_counts_once(
    image: Image, annotator_api: APIClient
) -> None:
    body = {"kind": "person", "note": "a face in the window"}
    first = annotator_api.post("/api/images/7/flags/", body)
    assert first.status_code == 201
    flag = ImageFlag.objects.get()
    assert first.json() == {
        "id": flag.pk,
        "kind": "person",
        "label": "Person or face",
        "own": True,
        "note": "a face in the window",
        "raised_by": "ann",
        "raised_at": first.json()["raised_at"],
    }
    again = annotator_api.post("/api/images/7/flags/", body)
    assert (again.status_code, again.json()) == (200, first.json())
    assert ImageFlag.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "kind"),
        ({"kind": "ugly"}, "kind"),
        ({"kind": "person", "note": "x" * 1001}, "note"),
        ({"kind": "person", "note": "a\0b"}, "note"),
    ],
)
def test_a_flag_that_makes_no_sense_is_refused_with_the_field(
    image: Image, annotator_api: APIClient, body: Any, field: str
) -> None:
    answer = annotator_api.post("/api/images/7/flags/", body)
    refused(answer, 400)
    assert [error["field"] for error in answer.json()["errors"]] == [field]
    assert ImageFlag.objects.count() == 0


def test_annotators_see_that_others_flagged_but_not_who_or_why(
    image: Image,
    annotator_api: APIClient,
    other_annotator_api: APIClient,
    reviewer_api: APIClient,
) -> None:
    annotator_api.post("/api/images/7/flags/", {"kind": "person", "note": "my neighbour"})
    other_annotator_api.post("/api/images/7/flags/", {"kind": "duplicate", "note": "12"})

    def seen(api: APIClient) -> list[tuple[Any, ...]]:
        results = api.get("/api/images/7/flags/").json()["results"]
        return [(one["kind"], one["own"], one["note"], one["raised_by"]) for one in results]

    assert seen(annotator_api) == [
        ("person", True, "my neighbour", "ann"),
        ("duplicate", False, None, None),
    ]
    assert seen(other_annotator_api) == [
        ("person", False, None, None),
        ("duplicate", True, "12", "otto"),
    ]
    assert seen(reviewer_api) == [
        ("person", False, "my neighbour", "ann"),
        ("duplicate", False, "12", "otto"),
    ]


def test_a_flag_is_taken_back_by_who_raised_it_while_it_is_open(
    image: Image,
    annotator_api: APIClient,
    other_annotator_api: APIClient,
    reviewer_api: APIClient,
) -> None:
    flag = annotator_api.post("/api/images/7/flags/", {"kind": "person"}).json()["id"]
    address = f"/api/images/7/flags/{flag}/"
    for api in (other_annotator_api, reviewer_api):
        refused(api.delete(address), 404)
    refused(annotator_api.delete(f"/api/images/8/flags/{flag}/"), 404)
    assert annotator_api.delete(address).status_code == 204
    refused(annotator_api.delete(address), 404)
    flag = annotator_api.post("/api/images/7/flags/", {"kind": "person"}).json()["id"]
    decide(reviewer_api, "clear-flags")
    says = refused(annotator_api.delete(f"/api/images/7/flags/{flag}/"), 409)
    assert says == "A reviewer has already decided on this flag."


def test_annotators_flag_and_reviewers_decide(
    image: Image, annotator_api: APIClient, anonymous_api: APIClient
) -> None:
    annotator_api.post("/api/images/7/flags/", {"kind": "person"})
    for what in DECISIONS:
        assert refused(decide(annotator_api, what), 403) == "This needs the role reviewer."
        refused(decide(anonymous_api, what), 401)
    refused(annotator_api.get("/api/flags/"), 403)
    refused(anonymous_api.get("/api/flags/"), 401)
    refused(anonymous_api.get("/api/images/7/flags/"), 401)
    refused(anonymous_api.post("/api/images/7/flags/", {"kind": "person"}), 401)
    assert ImageFlag.objects.filter(state="open").count() == 1
    assert ImageWithdrawal.objects.count() == 0


def test_a_withdrawal_and_a_clearing_are_undone_with_their_flags(
    image: Image, annotator: Any, reviewer_api: APIClient
) -> None:
    flag = image_flag_raise(image=image, kind="person", by=annotator)[0]
    decide(reviewer_api, "withdraw")
    undone = decide(reviewer_api, "restore", reopen=True).json()
    assert ([one["id"] for one in undone["flags"]], undone["withdrawal"]) == ([flag.pk], None)
    cleared = decide(reviewer_api, "clear-flags", flags=[flag.pk]).json()
    assert (cleared["cleared"], cleared["flags"]) == ([flag.pk], [])
    undone = decide(reviewer_api, "reopen-flags", flags=cleared["cleared"]).json()
    assert [one["id"] for one in undone["flags"]] == [flag.pk]
    decide(reviewer_api, "withdraw")
    says = refused(decide(reviewer_api, "reopen-flags", flags=[flag.pk]), 409)
    assert says == "The image has been withdrawn from the corpus."


@pytest.mark.parametrize(
    ("what", "body", "field"),
    [
        ("withdraw", {"note": "x" * 1001}, "note"),
        ("restore", {"reopen": "perhaps"}, "reopen"),
        ("clear-flags", {"flags": ["one"]}, "flags.0"),
        ("reopen-flags", {}, "flags"),
        ("reopen-flags", {"flags": [2**63]}, "flags.0"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(
    image: Image, reviewer_api: APIClient, what: str, body: Any, field: str
) -> None:
    answer = decide(reviewer_api, what, **body)
    refused(answer, 400)
    assert [error["field"] for error in answer.json()["errors"]] == [field]


def test_a_withdrawn_image_is_gone_for_annotators_and_takes_no_flags(
    image: Image, reviewer: Any, annotator_api: APIClient, reviewer_api: APIClient
) -> None:
    image_withdraw(image=image, by=reviewer)
    for address in ("/api/images/7/", "/api/images/7/flags/"):
        refused(annotator_api.get(address), 404)
        assert reviewer_api.get(address).status_code == 200
    for api in (annotator_api, reviewer_api):
        says = refused(api.post("/api/images/7/flags/", {"kind": "person"}), 409)
        assert says == "The image has already been withdrawn from the corpus."


def test_reviewers_page_through_what_is_open_and_what_is_withdrawn(
    annotator: Any, reviewer: Any, reviewer_api: APIClient, admin_api: APIClient
) -> None:
    images = [image_row(number) for number in range(1, 6)]
    for image in images:
        image_flag_raise(image=image, kind="person", by=annotator)
    image_flag_raise(image=images[1], kind="duplicate", by=annotator)
    image_withdraw(image=images[2], by=reviewer, note="a face")
    page = reviewer_api.get("/api/flags/?limit=2").json()
    assert page["count"] == 4
    assert page["next"].endswith("/api/flags/?limit=2&offset=2")
    assert [(one["image"], len(one["flags"])) for one in page["results"]] == [(2, 2), (5, 1)]
    rest = reviewer_api.get("/api/flags/?limit=2&offset=2").json()["results"]
    assert [one["image"] for one in rest] == [4, 1]
    [withdrawn] = admin_api.get("/api/flags/?state=withdrawn").json()["results"]
    assert (withdrawn["image"], withdrawn["withdrawal"]["note"]) == (3, "a face")
    refused(reviewer_api.get("/api/flags/?state=lost"), 400)


def test_the_page_is_for_reviewers_and_the_header_counts_images(
    image: Image, annotator: Any, other_annotator: Any, clients: dict[str, Client]
) -> None:
    for person in (annotator, other_annotator):
        image_flag_raise(image=image, kind="person", by=person)
    assert clients["anonymous"].get("/flags/")["Location"].startswith("/login/")
    assert clients["annotator"].get("/flags/").status_code == 403
    assert "/flags/" not in clients["annotator"].get("/corpus/").content.decode()
    for role in ("reviewer", "admin"):
        answer = clients[role].get("/flags/")
        assert answer.context["counts"] == {"open": 1, "withdrawn": 0}
        [shown] = answer.context["page"]["results"]
        assert (shown["image"], len(shown["flags"])) == (7, 2)
        assert clients[role].get("/flags/?state=withdrawn").context["page"]["results"] == []
        assert "data-flags-open>1</span>" in clients[role].get("/corpus/").content.decode()
