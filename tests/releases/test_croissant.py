"""croissant.json, validated and read by mlcroissant."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import mlcroissant
import pytest

from releases.making.services import release_claim, release_fill, release_verify
from releases.models import Release
from tests.releases.conftest import World
from tests.releases.snapshots import COMMAS, empty_snapshot, toy_pairs, toy_snapshot

pytestmark = pytest.mark.django_db

ABOUT_FILES = {"croissant.json", "croissant_open.json", "manifest.json", "manifest_open.json"}


def made(name: str = "Toy", test_labels: str = "hidden", snapshot: Any = toy_snapshot) -> Release:
    """A release of a snapshot with all of its files."""
    options = {"rerank_model": "", "test_labels": test_labels}
    release = release_claim(name=name, created_by=None, options=options)

    def take(directory: Path, progress: Any) -> None:
        values = {"test_labels": test_labels} if snapshot is toy_snapshot else {}
        snapshot(directory, **values)

    return release_fill(release=release, steps=(), take=take)


@pytest.fixture(scope="module")
def release(world: World) -> Release:
    return made()


def dataset(release: Release, name: str = "croissant.json") -> mlcroissant.Dataset:
    """What mlcroissant reads; ValidationError for a file that isn't Croissant."""
    found = mlcroissant.Dataset(jsonld=str(release.directory / name))
    assert found.metadata.ctx.issues.warnings == set()
    return found


def records(found: mlcroissant.Dataset, name: str) -> list[dict[str, Any]]:
    """A record set; reading checks the SHA-256 of the files that it is read from."""
    return [
        {
            key.removeprefix(f"{name}/"): value.decode() if isinstance(value, bytes) else value
            for key, value in record.items()
        }
        for record in found.records(name)
    ]


def test_it_describes_every_file_and_is_valid(release: Release) -> None:
    metadata = dataset(release).metadata
    assert (metadata.name, metadata.version) == ("Toy & Söhne v2", "2.0.0")
    assert [one.name for one in metadata.creators] == ["ada"]
    assert metadata.cite_as.startswith("@misc{release, title = {Toy & Söhne v2}, author = {ada}")
    assert "https://creativecommons.org/licenses/by-nc/4.0/" in metadata.license
    listed = {entry["name"]: entry["sha256"] for entry in release.file_list}
    assert {one.id: one.sha256 for one in metadata.distribution} == {
        name: sha256 for name, sha256 in listed.items() if name not in ABOUT_FILES
    }
    manifest = json.loads((release.directory / "manifest.json").read_text())
    described = {entry["name"]: entry["sha256"] for entry in manifest["files"]}
    assert described["croissant.json"] == listed["croissant.json"]
    assert release_verify(release=release) == []


def test_queries_images_annotations_and_splits_are_loaded(release: Release) -> None:
    found = dataset(release)
    queries = {one["query_id"]: one for one in records(found, "queries")}
    assert (queries[3]["text"], queries[3]["split"]) == (COMMAS, "val")
    assert list(queries) == [3, 8, 13, 21, 34]
    assert records(found, "annotations") == [
        {"query_id": one.query_id, "image_id": one.image_id, "relevant": one.relevant}
        for one in toy_pairs()
    ]
    images = {one["image_id"]: one for one in records(found, "images")}
    assert (images[7]["latitude"], images[6]["latitude"]) == (0.0, None)
    assert [one["name"] for one in records(found, "splits")] == ["val", "test"]


def test_the_open_one_names_open_files_and_their_labels_alone(release: Release) -> None:
    access = {entry["name"]: entry["access"] for entry in release.file_list}
    assert (access["croissant.json"], access["croissant_open.json"]) == ("labels", "open")
    found = dataset(release, "croissant_open.json")
    names = {one.id for one in found.metadata.distribution}
    assert names == {name for name, who in access.items() if who == "open"} - ABOUT_FILES
    with zipfile.ZipFile(release.directory / release.archive["open"]["name"]) as archive:
        assert {f"{release.slug}/{name}" for name in names} <= set(archive.namelist())
    assert {one["query_id"] for one in records(found, "annotations")} == {3, 21}
    assert len(records(found, "queries")) == 5


def test_public_labels_need_no_second_file_and_a_release_with_nothing_is_described(
    world: World,
) -> None:
    release = made("Public", "public", empty_snapshot)
    access = {entry["name"]: entry["access"] for entry in release.file_list}
    assert access["croissant.json"] == "open"
    assert "croissant_open.json" not in access
    assert [str(one.name) for one in dataset(release).metadata.license] == [
        "Each image has a license of its own: see attribution.csv."
    ]
