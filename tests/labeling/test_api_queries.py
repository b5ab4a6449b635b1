"""The queries' API: what it takes, what it answers, and how it names what is wrong."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from labeling.lifecycle.imports import LARGEST_UPLOAD
from labeling.lifecycle.services import query_transition
from labeling.queries.models import Query
from retrieval.corpus.models import Image
from tests.labeling.conftest import fields, make_images, make_species, run_jobs
from tests.labeling.judging import judge

HEADER = b"query_id,query_text,supercategory,category,iconic_group\n"
NEWT = HEADER + b"7,a newt,Species,Species ID,Amphibians\n"


@pytest.fixture
def images(toy_model) -> list[Image]:
    return make_images(5)


def test_a_query_from_draft_to_complete(images, admin_api, annotator_api, reviewer_api, settings):
    settings.STOP_STREAK = 2
    answer = admin_api.post(
        "/api/queries/",
        {"text": "a toad", "category": "Feeding and Hydration", "split": "val", "query_id": 12},
    )
    body = answer.json()
    assert answer.status_code == 201
    address = f"/api/queries/{body['id']}/"
    assert answer["Location"].endswith(address)
    assert (body["query_id"], body["supercategory"], body["state"]) == (12, "Behavior", "draft")
    assert body["species"] == []
    assert body["list"]["state"] == "none"
    assert annotator_api.get(address).status_code == 404

    body = admin_api.patch(address, {"state": "open"}).json()
    assert (body["state"], body["list"]["state"]) == ("open", "building")
    waiting = annotator_api.get(address + "candidates/").json()
    assert (waiting["results"], waiting["count"], waiting["list"]["state"]) == ([], 0, "building")
    run_jobs()

    page = annotator_api.get(address + "candidates/", {"start_rank": 2, "limit": 2}).json()
    assert [one["rank"] for one in page["results"]] == [2, 3]
    assert page["count"] == page["list"]["size"] == 5
    assert page["next"].endswith("?start_rank=4&limit=2")
    assert page["results"][0]["image"] == images[1].pk
    last = annotator_api.get(address + "candidates/", {"start_rank": 4}).json()
    assert (len(last["results"]), last["next"]) == (2, None)

    sent = [
        {"image": one.pk, "relevance": "not_relevant", "client_id": f"mine-{n}", "seconds": 1.5}
        for n, one in enumerate(images[:2])
    ]
    answer = annotator_api.post(address + "judgments/", sent)
    assert answer.status_code == 200
    assert answer.json()["results"] == [
        {
            "client_id": f"mine-{n}",
            "image": images[n].pk,
            "status": "stored",
            "code": "",
            "detail": "",
            "relevance": "not_relevant",
            "current": "not_relevant",
            "rank": n + 1,
        }
        for n in range(2)
    ]
    assert answer.json()["progress"] == {
        "candidates": 5,
        "judged": 2,
        "relevant": 0,
        "unsure": 0,
        "streak": 2,
        "prefix": 2,
        "remaining": 3,
        "next_rank": 3,
        "seconds_per_image": 1.5,
        "active_seconds": 3.0,
        "stop": {
            "rule": "streak",
            "met": True,
            "streak_met": True,
            "exhausted": False,
            "required": 2,
            "minimum": 0,
            "minimum_met": True,
        },
    }
    again = annotator_api.post(address + "judgments/", sent).json()
    assert [one["status"] for one in again["results"]] == ["repeated", "repeated"]

    body = annotator_api.patch(address, {"state": "submitted"}).json()
    assert (body["state"], body["transitions"]) == ("submitted", [])
    body = reviewer_api.patch(address, {"state": "complete", "note": "Enough."}).json()
    assert (body["state"], body["progress"]["judged"], body["own_progress"]["judged"]) == (
        "complete",
        2,
        0,
    )


def test_a_query_can_be_created_open(images, admin_api):
    given = {"text": "a toad", "category": "Species ID", "state": "open"}
    body = admin_api.post("/api/queries/", given).json()
    assert (body["state"], body["list"]["state"]) == ("open", "building")
    answer = admin_api.post("/api/queries/", given | {"state": "complete"})
    assert (answer.status_code, fields(answer)) == (400, ["state"])


def test_what_is_wrong_with_a_new_query_is_named(new_query, admin_api):
    new_query("the seventh", query_id=7)
    for given, field in (
        ({"text": "  "}, "text"),
        ({"text": None}, "text"),
        ({"category": "Dances"}, "category"),
        ({"query_id": "x"}, "query_id"),
        ({"query_id": 10**30}, "query_id"),
        ({"query_id": 7}, "query_id"),
        ({"species": "Bufo bufo"}, "species"),
        ({"species": ["Nix nix"]}, "species"),
        ({"species": [None]}, "species.0"),
        ({"species": [{}]}, "species.0"),
        ({"species": [-1]}, "species"),
        ({"speices": []}, "speices"),
        ({"reject_reason": "other"}, "reject_reason"),
    ):
        answer = admin_api.post(
            "/api/queries/", {"text": "a newt", "category": "Species ID"} | given
        )
        assert (answer.status_code, fields(answer)) == (400, [field])
    for body in ([], "text", 3, None):
        assert admin_api.post("/api/queries/", body).status_code == 400
    assert Query.objects.count() == 1


def test_species_are_names_ids_or_groups(new_query, admin_api):
    toad = make_species("Bufo bufo", family="Bufonidae")
    cane = make_species("Rhinella marina", family="Bufonidae")
    frog = make_species("Rana temporaria", family="Ranidae")
    address = f"/api/queries/{new_query().pk}/"

    def filtered(*names: Any) -> list[str]:
        body = admin_api.patch(address, {"species": names}).json()
        return [one["scientific_name"] for one in body["species"]]

    assert filtered("Bufo bufo") == ["Bufo bufo"]
    assert filtered("Bufonidae") == ["Bufo bufo", "Rhinella marina"]
    assert filtered(frog.pk, str(cane.pk), "bufo BUFO") == [
        toad.scientific_name,
        frog.scientific_name,
        cane.scientific_name,
    ]
    assert filtered() == []


def test_queries_are_filtered_and_paged(images, open_query, new_query, admin_api):
    open_query("a red toad", split="val", query_id=31)
    new_query("a green toad", split="test", query_id=32)
    new_query("a newt", split="test", query_id=33, category="Human Impact")

    def found(**parameters: Any) -> list[int]:
        results = admin_api.get("/api/queries/", parameters).json()["results"]
        return [one["query_id"] for one in results]

    assert found() == [31, 32, 33]
    assert found(search="TOAD") == [31, 32]
    assert found(search="33") == [33]
    assert found(search="human") == [33]
    assert found(state="open") == [31]
    assert found(split="test") == [32, 33]
    assert found(split="test", search="newt", state="draft", category="Human Impact") == [33]
    assert found(search="100%_") == []
    page = admin_api.get("/api/queries/", {"limit": 2}).json()
    assert (page["count"], len(page["results"])) == (3, 2)
    assert page["next"].endswith("/api/queries/?limit=2&offset=2")
    for parameter in ("state", "split", "category"):
        answer = admin_api.get("/api/queries/", {parameter: "nix"})
        assert (answer.status_code, fields(answer)) == (400, [parameter])


def test_conflicts_are_told(images, open_query, admin, annotator, admin_api):
    query = open_query()
    judge(query, annotator, [0], "relevant")
    address = f"/api/queries/{query.pk}/"
    answer = admin_api.delete(address)
    assert (answer.status_code, "reject it instead" in answer.json()["detail"]) == (409, True)
    query_transition(query=query, to_state="complete", by=admin, note="Enough.")
    assert admin_api.patch(address, {"text": "other"}).status_code == 409
    assert admin_api.patch(address, {"state": "draft"}).status_code == 409
    assert admin_api.post(address + "refresh/").status_code == 409
    answer = admin_api.patch(address, {"state": "rejected"})
    assert (answer.status_code, fields(answer)) == (400, ["reject_reason"])
    answer = admin_api.patch(address, {"reject_reason": "other"})
    assert (answer.status_code, fields(answer)) == (400, ["state"])
    body = admin_api.patch(
        address, {"state": "rejected", "reject_reason": "other", "reject_note": "Blurred."}
    ).json()
    assert (body["reject_reason"], body["reject_note"]) == ("other", "Blurred.")


def test_a_change_of_fields_and_state_is_made_whole_or_not_at_all(new_query, admin_api):
    query = new_query()
    answer = admin_api.patch(f"/api/queries/{query.pk}/", {"text": "new", "state": "complete"})
    assert answer.status_code == 409
    query.refresh_from_db()
    assert (query.text, query.state) == ("a toad", "draft")


def test_what_was_read_can_be_sent_back(new_query, admin_api):
    address = f"/api/queries/{new_query().pk}/"
    body = admin_api.get(address).json()
    sent = body | {"text": "a new toad", "reject_reason": "", "reject_note": ""}
    assert admin_api.patch(address, sent).json()["text"] == "a new toad"


def test_csv_uploads_and_bodies_are_imported(admin_api):
    files = [
        SimpleUploadedFile("q_val.csv", NEWT),
        SimpleUploadedFile("q_test.csv", HEADER + b"8,a frog,Species,Species ID,\n"),
    ]
    answer = admin_api.post("/api/queries/import/", {"file": files}, format="multipart")
    nothing = {"added": 0, "updated": 0, "unchanged": 0, "left": 0, "rows": [], "cut": []}
    assert answer.json() == nothing | {"added": 2}
    answer = admin_api.post("/api/queries/import/?name=q_val.csv", NEWT, content_type="text/csv")
    assert answer.json() == nothing | {"unchanged": 1}
    splits = Query.objects.order_by("query_id").values_list("query_id", "split")
    assert list(splits) == [(7, "val"), (8, "test")]


def test_an_import_names_what_it_leaves_as_it_is(new_query, admin_api):
    new_query("a toad", query_id=7)
    for form in ({}, {"update_queries": [7], "dry_run": True}, {"update_queries": [7]}):
        assert Query.objects.get().text == "a toad"
        sent = {"file": [SimpleUploadedFile("q_val.csv", NEWT)]} | form
        report = admin_api.post("/api/queries/import/", sent, format="multipart").json()
        assert (report["updated"], report["left"]) == ((1, 0) if form else (0, 1))
        [row] = report["rows"]
        assert (row["query_id"], bool(row["left"])) == (7, not form)
        assert {"field": "text", "here": "a toad", "file": "a newt"} in row["changes"]
    assert Query.objects.get().text == "a newt"


def test_each_change_is_in_the_history_with_who_and_when(new_query, admin_api, admin):
    query = new_query()
    admin_api.patch(f"/api/queries/{query.pk}/", {"text": "a crested newt", "guidelines": ""})
    admin_api.patch(f"/api/queries/{query.pk}/", {"split": "test", "hand_in_rule": "exhausted"})
    edits = [(edit.made_by, edit.changes) for edit in query.edits.all()]
    assert edits == [
        (admin, [["text", "a toad", "a crested newt"]]),
        (admin, [["split", "val", "test"], ["hand_in_rule", "", "exhausted"]]),
    ]


def test_a_bad_csv_is_refused_with_lines_and_fields(admin_api):
    answer = admin_api.post(
        "/api/queries/import/", NEWT + b"x,,Species,Species ID,\n", content_type="text/csv"
    )
    assert answer.status_code == 400
    assert sorted(fields(answer)) == ["query_id", "query_text"]
    details = [error["detail"] for error in answer.json()["errors"]]
    assert all(detail.startswith("body.csv, line 3: ") for detail in details)
    assert not Query.objects.exists()


def test_what_is_no_import_is_refused(admin_api):
    large = bytes(LARGEST_UPLOAD + 1)
    for address, body, content_type, detail in (
        (
            "?name=q_val.csv",
            b"",
            "Text/CSV; charset=utf-8",
            "q_val.csv, line 1: the file is empty;",
        ),
        ("?name=q_val.csv", large, "text/csv", "q_val.csv is larger than 5 MB."),
        ("", {"file": SimpleUploadedFile("a.csv", large)}, None, "a.csv is larger than 5 MB."),
        ("", {"split": "val"}, None, "No file was sent; upload a CSV as “file”, or send it as"),
    ):
        kind = {"content_type": content_type} if content_type else {"format": "multipart"}
        answer = admin_api.post(f"/api/queries/import/{address}", body, **kind)
        assert (answer.status_code, fields(answer)) == (400, ["file"])
        assert answer.json()["errors"][0]["detail"].startswith(detail)
    answer = admin_api.post("/api/queries/import/?split=train", NEWT, content_type="text/csv")
    assert (answer.status_code, fields(answer)) == (400, ["split"])
    answer = admin_api.post("/api/queries/import/", b"{}", content_type="application/json")
    assert answer.status_code == 415
    assert not Query.objects.exists()
