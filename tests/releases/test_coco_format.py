"""COCO JSON, read by pycocotools and by this application's own importer."""

import json

import pytest
from pycocotools.coco import COCO

from releases.formats.base import Access
from releases.formats.coco import write
from retrieval.importing.coco import CocoSource
from tests.releases.photos import photo_snapshot
from tests.releases.snapshots import empty_snapshot, format_files, toy_snapshot

pytestmark = pytest.mark.pure


@pytest.fixture
def path(tmp_path):
    """The toy snapshot's file."""
    (file,) = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    assert (file.name, file.access) == ("coco/images.json", Access.OPEN)
    return tmp_path / file.name


def test_pycocotools_reads_images_species_and_licenses(path):
    coco = COCO(str(path))
    assert coco.getImgIds() == list(range(1, 13))
    (stork,) = coco.getCatIds(catNms=["Ciconia ciconia"])
    assert set(coco.getImgIds(catIds=[stork])) == {1, 2, 3, 4, 7, 8, 12}
    assert {one["name"] for one in coco.loadCats(coco.getCatIds())} == {
        "Aptenodytes forsteri", "Ciconia ciconia", "Vulpes vulpes",
    }  # fmt: skip
    assert coco.getAnnIds(imgIds=[10, 11]) == []
    (image,) = coco.loadImgs([5])
    assert image["file_name"] == 'train/a, "b"/5 🦊.jpg'
    assert image["rights_holder"] == 'Müller, "狐"\n<b>'
    (annotation,) = coco.loadAnns(coco.getAnnIds(imgIds=[5]))
    assert coco.loadCats([annotation["category_id"]]) == [
        {
            "id": annotation["category_id"],
            "name": "Vulpes vulpes",
            "common_name": 'Fox, "red"',
            "supercategory": "Mammals",
            "kingdom": "Animalia",
            "phylum": "Chordata",
            "class": "Mammalia",
            "order": "Carnivora",
            "family": "Canidae",
            "genus": "Vulpes",
            "specific_epithet": "vulpes",
        }
    ]

    document = json.loads(path.read_text(encoding="utf-8"))
    licenses = {one["id"]: one for one in document["licenses"]}
    images = {one["id"]: one for one in document["images"]}
    assert licenses[images[1]["license"]] == {
        "id": images[1]["license"],
        "name": "CC BY-NC 4.0",
        "url": "https://creativecommons.org/licenses/by-nc/4.0/",
    }
    assert images[1]["attribution"] == "Jo Doe, CC BY-NC 4.0"
    assert images[4]["license"] is None
    assert images[4]["attribution"] == "Jo Doe, no licence given"
    bare = ("width", "height", "license", "date", "date_captured", "latitude", "longitude")
    assert {images[10][name] for name in (*bare, "location_uncertainty")} == {None}
    assert (images[10]["dataset"], images[10]["source_id"]) == ("toy", "10")
    assert (images[7]["latitude"], images[7]["longitude"]) == (0.0, 180.0)
    assert document["info"]["version"] == "2"


def test_a_release_with_nothing_is_a_document(tmp_path):
    format_files(write, empty_snapshot(tmp_path / "snapshot"), tmp_path)
    coco = COCO(str(tmp_path / "coco/images.json"))
    assert coco.getImgIds() == coco.getCatIds() == coco.getAnnIds() == []


def test_real_photographs_come_out_as_they_went_in(tmp_path, shared_dir):
    snapshot, _ = photo_snapshot(tmp_path / "snapshot", shared_dir / "photos", changes={})
    format_files(write, snapshot, tmp_path)
    refusals = []
    before = CocoSource(shared_dir / "photos/train.json", refusals.append)
    after = CocoSource(tmp_path / "coco/images.json", refusals.append)
    records = [
        sorted(
            (
                int(one.source_id), one.file_name, one.scientific_name, one.license,
                one.license_url, one.rights_holder, one.observed_at, one.latitude,
            )
            for one in source.images()
        )
        for source in (before, after)
    ]  # fmt: skip
    assert records[0] == records[1]
    assert len(records[0]) == 127
    lineages = [
        {one.scientific_name: one for one in source.species()} for source in (before, after)
    ]
    assert lineages[0] == lineages[1]
    assert refusals == []
    assert len(COCO(str(tmp_path / "coco/images.json")).getImgIds()) == 127
