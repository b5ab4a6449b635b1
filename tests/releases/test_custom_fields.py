"""Custom fields in releases: only those that an admin put there, and only from then on."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from releases.importing.services import benchmark_import
from releases.making.services import release_export, release_verify
from releases.models import Release
from releases.snapshot.snapshot import FieldValue, Snapshot, SnapshotWriter
from releases.statistics.field_numbers import bin_width, field_numbers
from retrieval.corpus.models import CustomField, Image
from tests.conftest import api_of, client_of
from tests.releases.test_croissant import dataset, records
from tests.releases.test_takedown import stored_texts, take_down
from tests.releases.toy import make_query

pytestmark = pytest.mark.django_db

KINDS = {"habitat": "text", "weight, g": "number", "seen": "date", "<b>=1+1": "yes_no"}
VALUES: dict[int, dict[str, Any]] = {
    1: {"habitat": "=forest", "weight, g": 12.0, "seen": "2024-09-27", "secret": "a toad"},
    2: {"habitat": "bog", "weight, g": -2.5, "<b>=1+1": True},
    3: {"seen": "2023-01-02", "<b>=1+1": False},
    6: {"habitat": "of no released image"},
}


@pytest.fixture
def judged(images: Any, judge: Any, annotator: Any, var_dir: Path) -> None:
    """A validation query with images 1 and 2, a test query with 3; all have fields but 4 and 5."""
    for query, numbers in (
        (make_query(7, "a bear", split="val"), (1, 2)),
        (make_query(30, "two storks"), (3, 4)),
    ):
        for number in numbers:
            judge(query, number, annotator, "relevant")
    for pk, values in VALUES.items():
        Image.objects.filter(pk=pk).update(custom_fields=values)
    CustomField.objects.bulk_create(
        CustomField(name=name, kind=kind) for name, kind in {**KINDS, "secret": "text"}.items()
    )


def export(folder: Path, **options: Any) -> Release:
    return release_export(name="Birds", directory=folder, new=True, options=options)


def rows(release: Release, name: str = "custom_fields.csv") -> list[list[str]]:
    with (release.directory / name).open(newline="") as file:
        return list(csv.reader(file))


def test_releases_have_the_fields_that_an_admin_put_there(
    judged: None, admin: Any, researcher: Any, annotator: Any, tmp_path: Path
) -> None:
    before = export(tmp_path / "one", test_labels="hidden")
    assert not [one for one in before.file_list if "custom" in one["name"]]
    assert "custom" not in (before.directory / "croissant.json").read_text()
    CustomField.objects.exclude(name="secret").update(in_releases=True)
    after = export(tmp_path / "two", test_labels="hidden")
    assert release_verify(release=before) == release_verify(release=after) == []
    everything = [
        ["image_id", "field", "kind", "value"],
        ["1", "habitat", "text", "'=forest"],
        ["1", "seen", "date", "2024-09-27"],
        ["1", "weight, g", "number", "12"],
        ["2", "<b>=1+1", "yes_no", "yes"],
        ["2", "habitat", "text", "bog"],
        ["2", "weight, g", "number", "-2.5"],
        ["3", "<b>=1+1", "yes_no", "no"],
        ["3", "seen", "date", "2023-01-02"],
    ]
    assert rows(after, "custom_fields_all.csv") == everything
    assert rows(after) == everything[:7]
    access = {one["name"]: one["access"] for one in after.file_list}
    assert (access["custom_fields.csv"], access["custom_fields_all.csv"]) == ("open", "labels")
    sheet = (after.directory / "DATASHEET.md").read_text()
    assert r"`custom_fields.csv`: \<b\>=1+1, habitat, seen, weight, g. A pair" in sheet
    found = records(dataset(after), "custom_fields")
    assert found[0] == {"image_id": 1, "field": "habitat", "kind": "text", "value": "=forest"}
    assert len(found) == 8
    assert not [text for _, text in stored_texts() if "a toad" in text and "snapshot" in text]

    # Whoever may see a release sees these fields in its statistics; of open images alone.
    address = f"/releases/{after.pk}/statistics/"
    page = client_of(researcher).get(address).content.decode()
    assert "&lt;b&gt;=1+1" in page
    assert "<b>=1" not in page
    assert "2 of 2 images have a value." in page
    assert "1 of 2 images have a value. The most frequent is “yes”, in 1." in page
    assert "2 of 4 images have a value." in client_of(admin).get(address).content.decode()
    assert client_of(annotator).get(address).status_code == 403
    assert "secret" not in page
    got = api_of(researcher).get(f"/api/releases/{after.pk}/files/custom_fields_all.csv")
    assert got.status_code in (403, 404)


def test_a_release_comes_back_with_its_fields_and_a_takedown_empties_them(
    judged: None, admin: Any, tmp_path: Path
) -> None:
    CustomField.objects.exclude(name="secret").update(in_releases=True)
    release = export(tmp_path / "one", test_labels="public")
    whole = rows(release)
    imported = benchmark_import(directory=release.directory, name="Back").release
    assert rows(imported) == whole
    CustomField.objects.all().delete()
    assert release_verify(release=release) == release_verify(release=imported) == []
    take_down(1, admin)
    left = [row for row in whole if row[0] != "1"]
    for one in (release, imported):
        one.refresh_from_db()
        assert rows(one) == left
        assert release_verify(release=one) == []
    assert not [place for place, text in stored_texts() if "=forest" in text]


def test_the_numbers_of_each_kind(tmp_path: Path) -> None:
    def numbers(kind: str, *values: str) -> dict[str, Any]:
        folder = tmp_path / kind / str(len(values))
        folder.mkdir(parents=True)
        given = (FieldValue(at, "f", kind, value) for at, value in enumerate(values))
        SnapshotWriter(folder).table("custom_fields", given)
        [about] = field_numbers(Snapshot(folder))
        assert (about["field"], about["kind"], about["images"]) == ("f", kind, len(values))
        return about

    assert numbers("yes_no", "yes", "no", "yes")["bars"] == [["yes", 2], ["no", 1]]
    texts = [f"t{number:02}" for number in range(20)] + ["t03", "t03", "t01"]
    bars = numbers("text", *texts)["bars"]
    assert (bars[:3], len(bars)) == ([["t03", 3], ["t01", 2], ["t00", 1]], 12)
    assert numbers("date", "2024-02-01", "2024-01-05", "2024-01-31")["bars"] == [
        ["2024-01", 2],
        ["2024-02", 1],
    ]
    many = [f"{2000 + number // 12}-{number % 12 + 1:02}-01" for number in range(30)]
    assert numbers("date", *many)["bars"] == [["2000", 12], ["2001", 12], ["2002", 6]]
    assert numbers("number", "0.1", "0.3", "0.3", "-0.2")["bins"] == [
        [-0.2, -0.15, 1], [-0.15, -0.1, 0], [-0.1, -0.05, 0], [-0.05, 0, 0], [0, 0.05, 0],
        [0.05, 0.1, 0], [0.1, 0.15, 1], [0.15, 0.2, 0], [0.2, 0.25, 0], [0.25, 0.3, 0],
        [0.3, 0.35, 2],
    ]  # fmt: skip
    assert numbers("number", "1e30")["bins"] == [[1e30, 2e30, 1]]
    assert [bin_width(*ends) for ends in ((3, 3), (0, 10), (0, 12), (1990, 2024), (0, 1e6))] == [
        *(1, 1, 2, 5, 100_000)
    ]
    assert field_numbers(Snapshot(tmp_path)) == []
