"""Darwin Core Archives: read by python-dwca-reader and by pandas, described by GBIF's profile."""

import re
from collections import Counter
from xml.etree import ElementTree

import pandas as pd
import pytest
from dwca.read import DwCAReader

from releases.formats.base import Access
from releases.formats.darwin_core import write
from tests.releases.photos import photo_snapshot
from tests.releases.snapshots import (
    format_files,
    header,
    image,
    pair,
    query,
    toy_snapshot,
    write_snapshot,
)

DWC = "http://rs.tdwg.org/dwc/terms/"
DC = "http://purl.org/dc/terms/"
URN = re.compile(r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

#: The elements of a data set in GBIF's metadata profile 1.3 in its order (eml-gbif-profile.xsd).
PROFILE = (
    "alternateIdentifier shortName title creator metadataProvider associatedParty pubDate language "
    "abstract keywordSet additionalInfo intellectualRights licensed distribution coverage purpose "
    "maintenance contact publisher methods project literatureCited"
)
NEEDED = {"title", "creator", "pubDate", "abstract", "contact"}

pytestmark = pytest.mark.pure


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    tmp_path = tmp_path_factory.mktemp("written")
    files = format_files(write, toy_snapshot(tmp_path / "snapshot"), tmp_path)
    names = ("eml.xml", "measurement.csv", "meta.xml", "multimedia.csv", "occurrence.csv")
    assert sorted((file.name, file.access) for file in files) == [
        *((f"darwin_core/all/{name}", Access.LABELS) for name in names),
        *((f"darwin_core/val/{name}", Access.OPEN) for name in names),
    ]
    return tmp_path / "darwin_core"


def opened(folder):
    """Catalog number -> (terms of the occurrence, terms of each of its extension rows)."""
    with DwCAReader(str(folder)) as archive:
        assert archive.descriptor.core.type == f"{DWC}Occurrence"
        assert archive.metadata is not None
        rows = {
            row.data[f"{DWC}catalogNumber"]: (row.data, [one.data for one in row.extensions])
            for row in archive
        }
        assert len(rows) == len(list(archive))
    return rows


def read(path):
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def test_both_archives_are_read_with_an_observation_for_each_photo(written):
    # Images 10 and 11 have no species.
    for part, images in (("all", "123456789"), ("val", "12349")):
        found = opened(written / part)
        assert sorted(found) == list(images)
        ids = [row[f"{DWC}occurrenceID"] for row, _ in found.values()]
        assert len(set(ids)) == len(ids)
        assert all(map(URN.fullmatch, ids))


def test_a_photo_is_measured_against_each_of_its_queries(written):
    found = opened(written / "all")
    value, remarks = f"{DWC}measurementValue", f"{DWC}measurementRemarks"
    assert [(row[value], row[remarks]) for row in found["6"][1]] == [
        ("not relevant", "=cmd()|' /C calc'!A0"),
        ("not relevant", "two lines of text: 狐 🦊 café </title> & <b>bold</b>"),
    ]
    assert [row[value] for row in found["1"][1]] == ["relevant", "relevant"]
    measured = [row for _, rows in found.values() for row in rows]
    assert len({row[f"{DWC}measurementID"] for row in measured}) == len(measured) == 11
    assert {row[f"{DWC}measurementType"] for row in measured} == {"relevance to the query"}
    open_queries = Counter(read(written / "val/measurement.csv")["query_id"])
    assert open_queries == {"3": 4, "21": 1}


def test_an_observation_has_its_terms(written):
    row = read(written / "all/occurrence.csv").set_index("catalogNumber").loc["5"]
    expected = {
        "otherCatalogNumbers": "toy:5",
        "basisOfRecord": "HumanObservation",
        "scientificName": "Vulpes vulpes",
        "class": "Mammalia",
        "vernacularName": 'Fox, "red"',
        "eventDate": "2022-06-01T10:00:00+00:00",
        "decimalLatitude": "52.5",
        "decimalLongitude": "-13.25",
        "geodeticDatum": "EPSG:4326",
        "coordinateUncertaintyInMeters": "30.0",
        "datasetName": "Toy & Söhne v2",
        "license": "https://creativecommons.org/licenses/by-nc/4.0/",
        "rightsHolder": 'Müller, "狐" <b>',
        "image_path": 'train/a, "b"/5 🦊.jpg',
    }
    assert {name: row[name] for name in expected} == expected
    assert opened(written / "all")["5"][0][f"{DC}rightsHolder"] == 'Müller, "狐" <b>'
    unknown = read(written / "all/occurrence.csv").set_index("catalogNumber").loc["6"]
    blank = ["decimalLatitude", "decimalLongitude", "geodeticDatum",
             "coordinateUncertaintyInMeters"]  # fmt: skip
    assert unknown[blank].tolist() == [""] * len(blank)


def test_pandas_joins_what_was_measured_with_what_was_observed(written):
    observed = pd.read_csv(written / "all/occurrence.csv", parse_dates=["eventDate"])
    measured = pd.read_csv(written / "all/measurement.csv")
    frame = measured[measured["measurementValue"] == "relevant"].merge(observed, on="occurrenceID")
    assert list(zip(frame["query_id"], frame["catalogNumber"], strict=True)) == [
        (3, 1), (8, 1), (3, 2), (13, 5), (8, 7), (21, 9),
    ]  # fmt: skip
    assert frame["eventDate"].dt.year.dropna().unique().tolist() == [2022]


def small(folder, images, **values):
    """A release of one query over these images, of which the first is relevant, as an archive."""
    snapshot = write_snapshot(
        folder / "snapshot",
        header=header(**values),
        queries=[query(3, split="val")],
        pairs=[pair(3, one.image_id, place == 0) for place, one in enumerate(images)],
        images=images,
    )
    format_files(write, snapshot, folder)
    return opened(folder / "darwin_core/val")


def test_a_photo_keeps_its_id_from_release_to_release(tmp_path):
    first = small(tmp_path / "a", [image(1), image(2)], version=1)
    again = small(tmp_path / "b", [image(2), image(5)], version=2, name="Another")
    ids = [found["2"][0][f"{DWC}occurrenceID"] for found in (first, again)]
    assert ids[0] == ids[1]
    # The same number in another data set, and in a benchmark whose images aren't here.
    other = small(tmp_path / "c", [image(2, dataset="other")])["2"][0][f"{DWC}occurrenceID"]
    absent = [
        small(tmp_path / name, [image(2, dataset="", source_id="")], name=name)["2"][0]
        for name in ("d", "e")
    ]
    ids += [other, *(row[f"{DWC}occurrenceID"] for row in absent)]
    assert len(set(ids)) == 4
    assert absent[0][f"{DWC}otherCatalogNumbers"] == ""


def test_media_have_absolute_addresses_or_none(tmp_path):
    # What shows no organism, or has no species, is no observation.
    images = [image(1), image(2, no_organism=True), image(3, scientific_name="")]
    assert list(small(tmp_path / "few", images)) == ["1"]
    address = "https://inaturalist-open-data.s3.amazonaws.com/photos/7/original.jpg"
    found = small(tmp_path, [image(1), image(2, address=address)])
    assert found["1"][0][f"{DWC}associatedMedia"] == ""
    assert found["2"][0][f"{DWC}associatedMedia"] == address
    media = [row for _, rows in found.values() for row in rows if f"{DC}identifier" in row]
    assert media == [
        {
            f"{DC}type": "StillImage",
            f"{DC}identifier": address,
            f"{DC}license": "https://creativecommons.org/licenses/by-nc/4.0/",
            f"{DC}rightsHolder": "Jo Doe",
        }
    ]


def test_metadata_have_the_structure_of_the_profile(written):
    root = ElementTree.parse(written / "all" / "eml.xml").getroot()
    assert root.tag == "{https://eml.ecoinformatics.org/eml-2.2.0}eml"
    assert URN.fullmatch(root.get("packageId"))
    assert (root.get("scope"), bool(root.get("system"))) == ("system", True)
    (dataset,) = root
    assert dataset.tag == "dataset"
    tags = [element.tag for element in dataset]
    assert tags == sorted(tags, key=PROFILE.split().index)
    assert set(tags) >= NEEDED
    for name in ("creator", "metadataProvider", "contact"):
        assert dataset.find(f"{name}/organizationName").text == "ada"
    for name in ("abstract", "additionalInfo", "intellectualRights"):
        assert dataset.find(f"{name}/para").text
    assert dataset.find("title").text.startswith("Toy & Söhne v2: photos judged for its queries")
    assert dataset.find("pubDate").text == "2026-05-01"


def test_real_photographs_as_observations(tmp_path, shared_dir):
    snapshot, _ = photo_snapshot(tmp_path / "snapshot", shared_dir / "photos", changes={})
    format_files(write, snapshot, tmp_path)
    found = opened(tmp_path / "darwin_core/all")
    judged = {str(one.image_id) for one in snapshot.pairs()}
    assert set(found) == judged
    rows = [row for row, _ in found.values()]
    assert all(row[f"{DWC}scientificName"] for row in rows)
    licenses = {row[f"{DC}license"] for row in rows}
    assert licenses == {"https://www.gnu.org/licenses/old-licenses/gpl-2.0.html"}
    remarks = {one[f"{DWC}measurementRemarks"] for _, more in found.values() for one in more}
    assert "A frog." in remarks
