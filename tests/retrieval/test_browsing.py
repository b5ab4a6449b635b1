"""The images' page and its API: what each filter finds and counts, for whom; the list as CSV."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from retrieval.browsing import selectors
from retrieval.browsing.models import SavedFilter
from retrieval.corpus.models import CustomField, Image
from retrieval.embedding.embedding_models import embedding_model_get_or_create
from retrieval.flags.services import image_flag_raise, image_withdraw
from tests.conftest import api_of
from tests.retrieval.making import embed_rows, image_row
from tests.toy_model import toy_model

pytestmark = pytest.mark.django_db

MATCHES = "/api/images/matches/"
SIZE = 60


@pytest.fixture
def api(
    annotator: Any, reviewer: Any, admin: Any, researcher: Any, anonymous_api: APIClient
) -> dict[str, APIClient]:
    """A client of each role, by name."""
    people = {person.role: api_of(person) for person in (annotator, reviewer, admin, researcher)}
    return people | {"anonymous": anonymous_api}


@pytest.fixture
def corpus(settings: Any, animals: Any, reviewer: Any) -> list[Image]:
    """Sixty images of every kind; the last is withdrawn, and half are embedded."""
    settings.EMBEDDING_MODEL = toy_model()
    for name, kind in (
        ("habitat", "text"), ("habitat: fine", "text"), ("depth", "number"),
        ("juvenile", "yes_no"), ("seen", "date"),
    ):  # fmt: skip
        CustomField.objects.create(name=name, kind=kind)
    CustomField.objects.filter(name="juvenile").update(shown_to_annotators=True)
    species = [animals["Ursus arctos"], animals["Danaus plexippus"], None]
    for n in range(1, SIZE + 1):
        fields = (
            {"habitat": ["forest", "50 %_off", "river"][n % 3], "depth": n / 4} if n % 5 else {}
        )
        image_row(
            n,
            species[n % 3],
            dataset=f"set {n % 2}",
            folder=["birds/owls", "birds_x", "birds", "", "birds/owls/tawny"][n % 5],
            taxon_text="Turdus sp." if species[n % 3] is None else "",
            license=["CC0", "", "CC BY 4.0"][n % 3],
            observed_at=datetime(2018 + n % 4, 1 + n % 12, 5, 23, tzinfo=UTC) if n % 7 else None,
            latitude=1.5 if n % 4 else None,
            longitude=2.5 if n % 4 else None,
            custom_fields=fields
            | ({"juvenile": n % 2 == 0, "seen": f"2020-{1 + n % 12:02}-28"} if n % 6 else {})
            | ({"habitat: fine": "edge"} if n == 8 else {}),
        )
    for kind, n in (("person", 3), ("person", 4), ("duplicate", 4)):
        image_flag_raise(image=Image(pk=n), kind=kind, by=reviewer)
    image_withdraw(image=Image(pk=SIZE), by=reviewer)
    model = embedding_model_get_or_create(name=toy_model())
    embed_rows(model, {n: [SIZE - n, n] for n in range(2, SIZE + 1, 2)})
    return list(Image.objects.select_related("species").order_by("pk"))


def below(image: Image, folder: str) -> bool:
    return image.folder == folder or image.folder.startswith(f"{folder}/")


def day(image: Image) -> str:
    return image.observed_at.date().isoformat() if image.observed_at else ""


YES_NO = {True: "yes", False: "no", None: ""}
#: An address and which images of the corpus it means.
CASES: list[tuple[str, Callable[[Image], bool]]] = [
    ("", lambda i: True),
    ("dataset=set 1", lambda i: i.dataset == "set 1"),
    ("dataset=set 1&dataset=set 0", lambda i: True),
    ("dataset=none", lambda i: False),
    ("folder=birds", lambda i: below(i, "birds")),
    ("folder=birds/owls/", lambda i: below(i, "birds/owls")),
    ("folder=", lambda i: i.folder == ""),
    ("species=none", lambda i: i.species_id is None),
    ("taxon=TURDUS", lambda i: i.taxon_text != ""),
    ("taxon=%25", lambda i: False),
    ("license=CC0", lambda i: i.license == "CC0"),
    ("license=&license=CC0", lambda i: i.license in ("", "CC0")),
    ("flag=any", lambda i: i.pk in (3, 4)),
    ("flag=duplicate", lambda i: i.pk == 4),
    ("date=2019-01-01..2020-12-31", lambda i: "2019" <= day(i) < "2021"),
    ("date=2019-02-05..2019-02-05", lambda i: day(i) == "2019-02-05"),
    ("date=..2018-12-31", lambda i: "" < day(i) < "2019"),
    ("date=none", lambda i: i.observed_at is None),
    ("location=known", lambda i: i.latitude is not None),
    ("location=none", lambda i: i.latitude is None),
    ("field=habitat:forest", lambda i: i.custom_fields.get("habitat") == "forest"),
    ("field=habitat:50 %25_off", lambda i: i.custom_fields.get("habitat") == "50 %_off"),
    ("field=habitat:", lambda i: "habitat" not in i.custom_fields),
    ("field=habitat: fine:edge", lambda i: i.pk == 8),
    ("field=depth:2..3.5", lambda i: 2 <= i.custom_fields.get("depth", 0) <= 3.5),
    ("field=depth:14..", lambda i: i.custom_fields.get("depth", 0) >= 14),
    ("field=depth:none", lambda i: "depth" not in i.custom_fields),
    ("field=juvenile:yes", lambda i: i.custom_fields.get("juvenile") is True),
    ("field=juvenile:no&field=juvenile:", lambda i: not i.custom_fields.get("juvenile")),
    ("field=seen:2020-03-01..2020-05-28",
     lambda i: "2020-03" < i.custom_fields.get("seen", "") < "2020-06"),
    ("dataset=set 1&species=none&license=CC BY 4.0&field=depth:1..9",
     lambda i: i.dataset == "set 1" and i.species_id is None and i.license == "CC BY 4.0"
     and 1 <= i.custom_fields.get("depth", 0) <= 9),
]  # fmt: skip


def test_filters_find_and_count_what_a_recount_does(
    corpus: list[Image], reviewer_api: APIClient
) -> None:
    """Of each filter the numbers are those of images that pass all others; a text ranks what its
    filters find and no other image.
    """
    present = [image for image in corpus if image.pk != SIZE]
    for address, passes in CASES:
        wanted = [image for image in present if passes(image)]
        found = reviewer_api.get(f"{MATCHES}?{address}").json()
        assert found["ids"] == [image.pk for image in wanted], address
        ranked = reviewer_api.get(f"{MATCHES}?text=a bear&{address}").json()
        assert ranked["ids"] == [pk for pk in found["ids"] if pk % 2 == 0], address
        assert ranked["ranked"]["total"] == len(ranked["ids"])
        assert ranked["scores"] == sorted(ranked["scores"], reverse=True)
        counts = reviewer_api.get(f"/api/images/counts/?{address}").json()
        assert counts["total"] == len(wanted), address
        filters = {one["key"]: one for one in counts["filters"]}
        assert len(filters) == 13
        assert all(one["values"] is not None for one in filters.values())
        for key, value in {
            "dataset": lambda i: i.dataset,
            "license": lambda i: i.license,
            "field:habitat": lambda i: i.custom_fields.get("habitat", ""),
            "field:juvenile": lambda i: YES_NO[i.custom_fields.get("juvenile")],
            "species": lambda i: "none" if i.species_id is None else str(i.species_id),
        }.items():  # fmt: skip
            if key.removeprefix("field:") in address:
                continue
            listed = {one["value"]: one["count"] for one in filters[key]["values"]}
            assert listed == Counter(map(value, wanted)), (address, key)
        for key, value in {
            "date": day,
            "field:seen": lambda i: i.custom_fields.get("seen", ""),
            "field:depth": lambda i: i.custom_fields.get("depth"),
        }.items():
            if key.removeprefix("field:") in address:
                continue
            values = [known for image in wanted if (known := value(image)) not in ("", None)]
            bins = filters[key]["values"]
            assert sum(one["count"] for one in bins) == len(values), (address, key)
            kind = type(values[0]) if values else str
            for one in filter(lambda one: one["count"], bins):
                start, end = map(kind, one["value"].split(".."))
                inside = [v for v in values if start <= v <= end]
                assert one["count"] == len(inside), (address, key, one)


def test_folders_are_counted_below_the_chosen_one(
    corpus: list[Image], reviewer_api: APIClient
) -> None:
    def folders(address: str) -> list[tuple[str, str, int]]:
        answer = reviewer_api.get(f"/api/images/counts/?by=folder&{address}").json()
        return [tuple(one.values()) for one in answer["filters"][0]["values"]]

    assert folders("") == [
        ("birds", "birds", 35), ("", "No folder", 12), ("birds_x", "birds_x", 12),
    ]  # fmt: skip
    assert folders("folder=birds") == [("birds/owls", "owls", 23)]
    assert folders("folder=birds/owls") == [("birds/owls/tawny", "tawny", 12)]


def test_matches_come_from_any_position_with_their_tiles(
    corpus: list[Image], annotator_api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = annotator_api.get(f"{MATCHES}?text=a bear&limit=500").json()
    assert (whole["more"], whole["ranked"]["total"], len(whole["ids"])) == (False, 29, 29)
    newest = annotator_api.get(f"{MATCHES}?order=newest").json()["ids"]
    assert newest == list(range(SIZE - 1, 0, -1))
    for text in ("", "&order=newest", "&text=a bear", "&like=30"):
        every = annotator_api.get(f"{MATCHES}?limit=500{text}").json()
        parts = [
            annotator_api.get(f"{MATCHES}?limit=7&offset={at}{text}").json()
            for at in range(0, len(every["ids"]), 7)
        ]
        assert [pk for part in parts for pk in part["ids"]] == every["ids"]
        assert [part["more"] for part in parts] == [True] * (len(parts) - 1) + [False]
    first = annotator_api.get(f"{MATCHES}?tiles=2").json()["tiles"]
    assert [(one["id"], one["name"], one["file_name"], one["flagged"]) for one in first] == [
        (1, "Monarch", "1.jpg", False), (2, "Turdus sp.", "2.jpg", False),
    ]  # fmt: skip
    tiles = annotator_api.get("/api/images/tiles/?id=60&id=4&id=999&id=3").json()["results"]
    assert [(one["id"], one["flagged"]) for one in tiles] == [(4, True), (3, True)]
    monkeypatch.setattr(selectors, "MOST_POSITIONS", 10)
    for text, ids in (("", list(range(7, 11))), ("&text=a bear", [14, 16, 18, 20])):
        last = annotator_api.get(f"{MATCHES}?limit=7&offset=6{text}").json()
        assert (last["ids"], last["more"]) == (ids, False)


def test_counting_ends_in_time(
    corpus: list[Image], reviewer_api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selectors, "COUNT_SECONDS", 0)
    counts = reviewer_api.get("/api/images/counts/?license=CC0").json()
    assert counts["total"] is None
    assert [one["values"] for one in counts["filters"]] == [None] * 13


WRONG = [
    "species=x", "date=2019", "date=2019-02-30..", "date=..", "flag=odd", "location=here",
    "order=odd", "like=x", "taxon= ", "field=depth:a..b", "field=depth:nan..", "field=juvenile:1",
    "field=unknown:1", "field=habitat", "flag=withdrawn&text=a bear", "odd=1",
]  # fmt: skip


def test_what_a_filter_does_not_know_is_refused(
    corpus: list[Image], reviewer_api: APIClient, clients: dict[str, Client]
) -> None:
    for address in WRONG:
        assert reviewer_api.get(f"{MATCHES}?{address}").status_code == 400, address
        if address != "odd=1":
            assert clients["reviewer"].get(f"/corpus/?{address}").status_code == 404, address


def columns(answer: Any) -> list[str]:
    return list(rows(answer)[0])


def rows(answer: Any) -> list[list[str]]:
    assert answer.status_code == 200
    return list(csv.reader(io.StringIO(b"".join(answer).decode())))


ALL = "dataset folder species taxon date license flag location"
USUAL = ["id", "file_name", "data_set", "species", "taxon_text", "folder", "license", "date"]
CUSTOM = ["depth", "habitat", "habitat: fine", "juvenile", "seen"]


def test_who_may_see_what(
    corpus: list[Image],
    api: dict[str, APIClient],
    clients: dict[str, Client],
    settings: Any,
) -> None:
    """Withdrawn images are for reviewers; fields that no admin shows, and where names are hidden
    all that tells them, is neither shown nor a filter.
    """
    hidden = ("folder=birds", "taxon=Turdus", "species=none", "species=1")
    for role, names_hidden, parameters, seen in (
        ("reviewer", True, ALL, CUSTOM),
        ("annotator", False, ALL, ["juvenile"]),
        ("annotator", True, "dataset date license flag location", ["juvenile"]),
    ):  # fmt: skip
        settings.HIDE_SPECIES_NAMES = names_hidden
        keys = [*parameters.split(), *(f"field:{name}" for name in seen)]
        counts = api[role].get("/api/images/counts/").json()["filters"]
        assert [one["key"] for one in counts] == keys
        page = clients[role].get("/corpus/")
        assert [one["key"] for one in page.context["page"]["filters"]] == keys
        blind = role == "annotator" and names_hidden
        told = [word for word in ("Monarch", "Turdus", "owls", ".jpg", "depth", "habitat")
                if word in page.content.decode().replace("-thumb.jpg", "")]  # fmt: skip
        assert told == (
            [] if blind else ["Monarch", "Turdus", ".jpg"] if role == "annotator"
            else ["Monarch", "Turdus", ".jpg", "depth", "habitat"]
        )  # fmt: skip
        listed = columns(api[role].get("/api/images/matches.csv"))
        assert (
            listed
            == [
                name for name in USUAL if not blind or name in ("id", "data_set", "license", "date")
            ]
            + seen
        )
        for address in hidden:
            assert (api[role].get(f"{MATCHES}?{address}").status_code == 400) == blind, address
        for address in ("field=habitat:forest", "flag=withdrawn"):
            status = 400 if role == "annotator" else 200
            assert api[role].get(f"{MATCHES}?{address}").status_code == status
            assert api[role].get(f"/api/images/counts/?{address}").status_code == status
            assert api[role].get(f"/api/images/matches.csv?{address}").status_code == status
        if blind:
            assert api[role].get("/api/images/tiles/?id=1").json()["results"][0]["name"] == ""
    assert api["reviewer"].get(f"{MATCHES}?flag=withdrawn").json()["ids"] == [SIZE]
    flags = api["reviewer"].get("/api/images/counts/?by=flag").json()["filters"][0]["values"]
    assert [(one["value"], one["count"]) for one in flags] == [
        ("any", 2), ("person", 2), ("duplicate", 1), ("withdrawn", 1),
    ]  # fmt: skip
    settings.HIDDEN_PLACES = ["CR"]
    assert api["annotator"].get(f"{MATCHES}?location=known").status_code == 400
    for address in (MATCHES, "/api/images/counts/", "/api/images/matches.csv", "/api/filters/"):
        assert api["researcher"].get(address).status_code == 403
        assert api["anonymous"].get(address).status_code == 401


def test_the_list_is_a_csv(corpus: list[Image], api: dict[str, APIClient]) -> None:
    Image.objects.filter(pk=7).update(file_name="=1+1, a\r.jpg")
    reviewer = api["reviewer"]
    all_rows = rows(reviewer.get("/api/images/matches.csv"))
    assert all_rows[0] == USUAL + CUSTOM
    assert [row[0] for row in all_rows[1:]] == [str(n) for n in range(1, SIZE)]
    assert all_rows[7][1] == "'=1+1, a\r.jpg"
    assert all_rows[8] == [
        "8", "8.jpg", "set 0", "", "Turdus sp.", "", "CC BY 4.0", "2018-09-05T23:00:00+00:00",
        "2.0", "river", "edge", "yes", "2020-09-28",
    ]  # fmt: skip
    ranked = rows(reviewer.get("/api/images/matches.csv?text=a bear&dataset=set 0"))
    found = reviewer.get(f"{MATCHES}?text=a bear").json()
    assert ranked[0] == [*USUAL, "score", *CUSTOM]
    assert [(int(row[0]), float(row[8])) for row in ranked[1:]] == list(
        zip(found["ids"], found["scores"], strict=True)
    )
    some = {"ids": [9, SIZE, 2, 9]}
    for role, ids in (("reviewer", ["9", "60", "2"]), ("annotator", ["9", "2"])):
        answer = api[role].post("/api/images/matches.csv", some, format="json")
        assert [row[0] for row in rows(answer)[1:]] == ids


def test_filters_are_saved_by_name(
    corpus: list[Image], api: dict[str, APIClient], settings: Any
) -> None:
    def save(role: str, name: str, address: str, status: int = 200, **more: Any) -> Any:
        body = {"name": name, "address": address, **more}
        answer = api[role].post("/api/filters/", body, format="json")
        assert answer.status_code == status, answer.content
        return answer.json()

    def listed(role: str) -> list[tuple[str, bool]]:
        return [(f["name"], f["shared"]) for f in api[role].get("/api/filters/").json()]

    save("annotator", "free", "license=CC0")
    mine = save("annotator", "free", "license=CC0&text=a+bear")
    save("annotator", "x", "order=odd", 400)
    save("annotator", "x", "license=CC0", 403, shared=True)
    of_all = save("admin", "bears", "species=1", shared=True)
    save("admin", "own", "field=depth:1..2")
    assert listed("annotator") == [("bears", True), ("free", False)]
    assert listed("reviewer") == [("bears", True)]
    settings.HIDE_SPECIES_NAMES = True
    assert listed("annotator") == [("free", False)]
    assert api["admin"].delete(f"/api/filters/{mine['id']}/").status_code == 404
    assert api["annotator"].delete(f"/api/filters/{of_all['id']}/").status_code == 404
    assert api["annotator"].delete(f"/api/filters/{mine['id']}/").status_code == 204
    assert set(SavedFilter.objects.values_list("name", flat=True)) == {"bears", "own"}


def test_what_may_be_done_with_images_goes_by_role(
    corpus: list[Image], clients: dict[str, Client]
) -> None:
    may = {
        role: [one["name"] for one in clients[role].get("/corpus/").context["page"]["actions"]]
        for role in ("annotator", "reviewer", "admin")
    }
    assert may == {
        "annotator": ["flag"],
        "reviewer": ["flag", "withdraw", "put-before"],
        "admin": ["flag", "withdraw", "put-before", "examples"],
    }
