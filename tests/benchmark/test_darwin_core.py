"""Darwin Core archives: read by pandas as they are, and by what meta.xml says."""

import json
from xml.etree import ElementTree

import pandas as pd
import pytest

from benchmark.releases.formats.base import Access
from benchmark.releases.formats.darwin_core import write
from tests.benchmark.photos import photo_snapshot
from tests.benchmark.snapshots import LINES, empty_snapshot, no_image_files, toy_snapshot

TEXT = "{http://rs.tdwg.org/dwc/text/}"


@pytest.fixture
def written(tmp_path):
    files = write(toy_snapshot(tmp_path / "snapshot"), tmp_path, no_image_files)
    assert {file.name for file in files if file.access is Access.LABELS} == {
        "darwin_core/all/occurrence.csv"
    }
    assert len(files) == 6
    return tmp_path / "darwin_core"


def read(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_pandas_reads_where_and_when_a_query_was_seen(written):
    frame = pd.read_csv(written / "all/occurrence.csv", parse_dates=["eventDate"])
    assert list(zip(frame["query_id"], frame["catalogNumber"], strict=True)) == [
        (3, 1), (3, 2), (8, 1), (8, 7), (13, 5), (21, 9), (21, 10), (21, 11),
    ]  # fmt: skip
    assert frame["occurrenceID"].is_unique
    assert frame["eventDate"].dt.year.dropna().unique().tolist() == [2022]
    placed = frame.dropna(subset=["decimalLatitude"])
    assert placed.groupby("query_id")["decimalLatitude"].max().to_dict() == {
        3: 52.5, 8: 52.5, 13: 52.5, 21: 52.5,
    }  # fmt: skip
    assert frame.drop_duplicates("catalogNumber").shape[0] == 7


def test_an_observation_has_its_terms(written):
    row = read(written / "all/occurrence.csv").set_index("occurrenceID").loc["5:13"]
    assert row["query"] == LINES
    about = json.loads(row["dynamicProperties"])
    assert (about["query_id"], about["query"], about["split"]) == (13, LINES, "test")
    assert row.drop(["dynamicProperties", "query"]).to_dict() == {
        "catalogNumber": "5",
        "basisOfRecord": "HumanObservation",
        "occurrenceStatus": "present",
        "scientificName": "Vulpes vulpes",
        "kingdom": "Animalia",
        "phylum": "Chordata",
        "class": "Mammalia",
        "order": "Carnivora",
        "family": "Canidae",
        "genus": "Vulpes",
        "taxonRank": "species",
        "vernacularName": 'Fox, "red"',
        "eventDate": "2022-06-01T10:00:00+00:00",
        "decimalLatitude": "52.5",
        "decimalLongitude": "-13.25",
        "geodeticDatum": "EPSG:4326",
        "coordinateUncertaintyInMeters": "30.0",
        "license": "https://creativecommons.org/licenses/by-nc/4.0/",
        "rightsHolder": 'Müller, "狐"\n<b>',
        "associatedMedia": 'train/a, "b"/5 🦊.jpg',
        "otherCatalogNumbers": "toy:5",
        "datasetName": "Toy & Söhne v2",
        "query_id": "13",
        "supercategory": "Species",
        "category": "Species ID",
        "split": "test",
    }


def test_what_is_unknown_is_blank(written):
    row = read(written / "val/occurrence.csv").set_index("occurrenceID").loc["10:21"]
    blank = ["scientificName", "taxonRank", "eventDate", "decimalLatitude", "geodeticDatum",
             "coordinateUncertaintyInMeters", "license"]  # fmt: skip
    assert row[blank].tolist() == [""] * len(blank)


def test_the_open_archive_holds_the_validation_split(written):
    everything = read(written / "all/occurrence.csv")
    val = read(written / "val/occurrence.csv")
    assert set(val["query_id"]) == {"3", "21"}
    expected = everything[everything["split"] == "val"].reset_index(drop=True)
    pd.testing.assert_frame_equal(val, expected)


@pytest.mark.parametrize("part", ["val", "all"])
def test_the_archive_is_read_by_what_its_description_says(written, part):
    archive = ElementTree.parse(written / part / "meta.xml").getroot()
    assert archive.tag == f"{TEXT}archive"
    core = archive.find(f"{TEXT}core")
    assert core.get("rowType") == "http://rs.tdwg.org/dwc/terms/Occurrence"
    location = core.find(f"{TEXT}files/{TEXT}location").text
    frame = pd.read_csv(
        written / part / location,
        sep=core.get("fieldsTerminatedBy"),
        quotechar=core.get("fieldsEnclosedBy"),
        skiprows=int(core.get("ignoreHeaderLines")),
        encoding=core.get("encoding"),
        header=None,
        dtype=str,
        keep_default_na=False,
    )
    terms = {
        int(field.get("index")): field.get("term").rpartition("/")[2]
        for field in core.findall(f"{TEXT}field")
    }
    named = frame[list(terms)].rename(columns=terms)
    pd.testing.assert_frame_equal(
        named, read(written / part / "occurrence.csv")[list(terms.values())]
    )
    assert terms[int(core.find(f"{TEXT}id").get("index"))] == "occurrenceID"
    eml = ElementTree.parse(written / part / archive.get("metadata")).getroot()
    assert eml.find("dataset/title").text == "Toy & Söhne v2: images relevant to its queries"
    assert eml.find("dataset/pubDate").text == "2026-05-01"
    assert eml.find("dataset/creator/organizationName").text == "ada"


def test_without_relevant_images_there_are_columns(tmp_path):
    write(empty_snapshot(tmp_path / "snapshot"), tmp_path, no_image_files)
    frame = read(tmp_path / "darwin_core/all/occurrence.csv")
    assert len(frame) == 0
    assert "scientificName" in frame.columns


def test_real_photographs_as_observations(tmp_path, shared_dir):
    snapshot, _ = photo_snapshot(tmp_path / "snapshot", shared_dir / "photos", changes={})
    write(snapshot, tmp_path, no_image_files)
    frame = read(tmp_path / "darwin_core/all/occurrence.csv")
    assert len(frame) == 10
    assert (frame["scientificName"] != "").all()
    assert (frame["decimalLatitude"] == "").all()
    assert set(frame["license"]) == {"https://www.gnu.org/licenses/old-licenses/gpl-2.0.html"}
    assert "A frog." in set(frame["query"])
