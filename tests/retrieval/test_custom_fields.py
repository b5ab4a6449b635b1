"""Custom fields: their page, who changes them, and what becomes of their values."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry

from core.errors import Conflict, Invalid
from core.locks import lock_key, try_session_lock
from retrieval.corpus.models import CustomField, Image
from retrieval.custom_fields.selectors import custom_fields_used, value_text
from retrieval.custom_fields.services import custom_field_change, custom_field_delete
from tests.conftest import api_of, client_of
from tests.retrieval.making import image_row

pytestmark = pytest.mark.django_db

HOSTILE = "<b>=habitat"


@pytest.fixture
def habitat(db: None) -> CustomField:
    """A field of two images; another field is of one."""
    image_row(1, custom_fields={HOSTILE: "bog", "count": 3.0})
    image_row(2, custom_fields={HOSTILE: "fen<i>"})
    image_row(3)
    CustomField.objects.create(name="count", kind="number")
    return CustomField.objects.create(name=HOSTILE, kind="text")


def values() -> dict[int, dict[str, Any]]:
    return dict(Image.objects.exclude(custom_fields={}).values_list("pk", "custom_fields"))


def said() -> list[tuple[str, str]]:
    return list(LogEntry.objects.order_by("pk").values_list("object_repr", "change_message"))


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "yes"), (False, "no"), (3.0, "3"), (3, "3"), (-2.5, "-2.5"), (1e300, "1e+300"),
     (0.1, "0.1"), ("2024-09-27", "2024-09-27"), ("", "")],
)  # fmt: skip
def test_values_are_read_as_people_write_them(value: Any, text: str) -> None:
    assert value_text(value) == text


def test_the_uses_of_fields(habitat: CustomField) -> None:
    CustomField.objects.create(name="empty", kind="date")
    uses = {one.field.name: (one.images, one.values) for one in custom_fields_used()}
    assert uses == {
        HOSTILE: (2, ["bog", "fen<i>"]),
        "count": (1, ["3"]),
        "empty": (0, []),
    }


def test_a_name_changes_in_all_images_and_the_log_says_so(habitat: CustomField, admin: Any) -> None:
    custom_field_change(field=habitat, by=admin, name=" Lebensraum ", in_releases=True)
    custom_field_change(field=habitat, by=admin, name="Lebensraum", in_releases=True)
    custom_field_change(field=habitat, by=admin, shown_to_annotators=True)
    assert values() == {1: {"Lebensraum": "bog", "count": 3.0}, 2: {"Lebensraum": "fen<i>"}}
    for name in ("", " ", "count", "x" * 101, "a\x1bb"):
        with pytest.raises(Invalid):
            custom_field_change(field=habitat, by=admin, name=name, in_releases=False)
    habitat.refresh_from_db()
    assert (habitat.in_releases, habitat.shown_to_annotators) == (True, True)
    assert custom_field_delete(field=habitat, by=admin) == 2
    assert values() == {1: {"count": 3.0}}
    assert said() == [
        ("Lebensraum", f"Renamed it from “{HOSTILE}”; Put it into releases"),
        ("Lebensraum", "Showed it to annotators"),
        ("Lebensraum", "Deleted it with 2 values"),
    ]


def test_an_import_at_work_keeps_its_names(habitat: CustomField, admin: Any) -> None:
    with try_session_lock(lock_key("importing")):
        with pytest.raises(Conflict, match="being imported"):
            custom_field_change(field=habitat, by=admin, name="other")
        with pytest.raises(Conflict, match="being imported"):
            custom_field_delete(field=habitat, by=admin)
        custom_field_change(field=habitat, by=admin, name=HOSTILE, in_releases=True)
    assert values()[2] == {HOSTILE: "fen<i>"}


def test_the_page_switches_renames_and_deletes(habitat: CustomField, admin: Any) -> None:
    client, address = client_of(admin), f"/custom-fields/{habitat.pk}/"
    for name in ("shown_to_annotators", "in_releases"):
        for state, expected in (("on", True), ("on", True), ("off", False)):
            assert client.post(address, {name: state})["Location"] == "/custom-fields/"
            habitat.refresh_from_db()
            assert getattr(habitat, name) is expected
    page = client.get("/custom-fields/").content.decode()
    assert (page.count('aria-checked="false"'), page.count('aria-checked="true"')) == (4, 0)
    assert "&lt;b&gt;=habitat" in page
    assert "fen&lt;i&gt;" in page
    assert not any(bare in page for bare in ("<b>=habitat", "fen<i>"))
    assert 'href="/custom-fields/"' in client.get("/manage/").content.decode()
    assert 'href="/custom-fields/"' in client.get("/corpus/").content.decode()
    assert client.post(address, {"name": "count"})["Location"] == address
    assert "Another field is called “count”." in client.get(address).content.decode()
    client.post(address, {"name": "biotope"})
    assert values()[2] == {"biotope": "fen<i>"}
    asked = client.get(f"{address}delete/").content.decode()
    assert "<strong>2</strong> images have a value in it." in asked
    assert values()[2] == {"biotope": "fen<i>"}
    client.post(f"{address}delete/")
    assert values() == {1: {"count": 3.0}}
    assert client.get(address).status_code == 404
    assert "Deleted it with 2 values" in client.get("/log/").content.decode()


def test_the_api_does_the_same_for_admins_alone(
    habitat: CustomField, researcher: Any, annotator: Any, reviewer: Any, admin: Any
) -> None:
    address = f"/api/custom-fields/{habitat.pk}/"
    for user in (researcher, annotator, reviewer):
        api, browser = api_of(user), client_of(user)
        answers = [
            api.get("/api/custom-fields/"),
            api.patch(address, {"in_releases": True}, format="json"),
            api.delete(address),
            browser.get("/custom-fields/"),
            browser.post(f"/custom-fields/{habitat.pk}/", {"in_releases": "on"}),
            browser.post(f"/custom-fields/{habitat.pk}/delete/"),
        ]
        assert {answer.status_code for answer in answers} == {403}, user
    api = api_of(admin)
    listed = {one["name"]: one for one in api.get("/api/custom-fields/").json()["results"]}
    assert listed[HOSTILE] == {
        "id": habitat.pk,
        "name": HOSTILE,
        "kind": "text",
        "shown_to_annotators": False,
        "in_releases": False,
        "images": 2,
        "values": ["bog", "fen<i>"],
    }
    for body, status in (
        ({"name": "biotope", "shown_to_annotators": True}, 200),
        ({"name": "count"}, 400),
        ({"name": 3}, 400),
        ({"in_releases": "perhaps"}, 400),
        ({}, 200),
    ):
        assert api.patch(address, body, format="json").status_code == status, body
    assert values()[2] == {"biotope": "fen<i>"}
    assert api.delete(address).json() == {"images": 2}
    assert api.delete(address).status_code == 404
