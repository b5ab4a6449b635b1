"""What a record says of its location, in the names of many exports, and what may be obscured."""

from __future__ import annotations

import pytest

from retrieval.importing.fields import OptionalFields
from retrieval.importing.locations import location_of, unread
from retrieval.importing.records import Refusal

pytestmark = pytest.mark.pure

HERE = {"latitude": 26.6, "longitude": 93.3}
#: What a record says beside its coordinates; whether it is obscured, and its uncertainty.
SAID = [
    ({}, False, None),
    ({"coordinates_obscured": "true"}, True, None),
    ({"Coordinates Obscured": "WAHR"}, True, None),
    ({"coordinates_obscured": True}, True, None),
    ({"coordinates_obscured": 1}, True, None),
    ({"obscured": "perhaps"}, True, None),
    ({"coordinates_obscured": "False"}, False, None),
    ({"coordinates_obscured": "0"}, False, None),
    ({"coordinates_obscured": False}, False, None),
    ({"coordinates_obscured": None}, False, None),
    ({"coordinates_obscured": "nein"}, False, None),
    ({"geoprivacy": "obscured"}, True, None),
    ({"geoprivacy": "private"}, True, None),
    ({"geoprivacy": "open", "taxon_geoprivacy": ""}, False, None),
    ({"geoprivacy": "open", "taxon_geoprivacy": "obscured"}, True, None),
    ({"private_latitude": "26.61"}, True, None),
    ({"private_latitude": "", "private_longitude": ""}, False, None),
    ({"informationWithheld": "Coordinates hidden by the observer"}, True, None),
    ({"informationWithheld": "Genauer Fundort auf Anfrage"}, True, None),
    ({"informationWithheld": "Field notes withheld"}, False, None),
    ({"dataGeneralizations": "Rounded to a 10 km grid"}, True, None),
    ({"dataGeneralizations": "none"}, False, None),
    ({"location_uncertainty": 40}, False, 40),
    ({"location_uncertainty": 28123}, True, 28123),
    ({"coordinateUncertaintyInMeters": "28123"}, True, 28123),
    ({"coordinateUncertaintyInMeters": "250"}, False, 250),
    ({"positional_accuracy": "32 m"}, False, 32),
    ({"positional_accuracy": "12", "public_positional_accuracy": "12"}, False, 12),
    ({"positional_accuracy": "12", "public_positional_accuracy": "900"}, True, 900),
    ({"positional_accuracy": "", "public_positional_accuracy": "28500"}, True, 28500),
    ({"coordinates_obscured": "true", "public_positional_accuracy": "28500"}, True, 28500),
]


def read(item: dict[str, object]) -> tuple[tuple[object, ...], list[Refusal]]:
    refused: list[Refusal] = []
    return location_of(OptionalFields(item, "file", "record", refused.append)), refused


@pytest.mark.parametrize(("said", "obscured", "uncertainty"), SAID)
def test_what_may_be_obscured_counts_as_obscured(said, obscured, uncertainty):
    assert read(HERE | said) == ((26.6, 93.3, uncertainty, obscured), [])


def test_coordinates_under_their_usual_names_both_or_neither():
    for names in (("decimalLatitude", "decimalLongitude"), ("lat", "lng"), ("Latitude", "Long")):
        assert read(dict(zip(names, ("52,5", " 13.4"), strict=True)))[0][:2] == (52.5, 13.4)
    assert read({"latitude": 1.0})[0][:2] == (None, None)
    # Those that are secret are never read.
    assert read({"private_latitude": "1", "private_longitude": "2"})[0][:2] == (None, None)
    location, refused = read({**HERE, "latitude": "91", "positional_accuracy": "near"})
    assert location[:3] == (None, None, None)
    assert [one.field for one in refused] == ["latitude", "positional_accuracy"]


def test_columns_that_are_not_read_are_named_near_names_too():
    header = ["file_name", "rightsholder", "Geo_Privacy", "habitat", "", "habitat", "lat"]
    assert unread(header, ["file_name", "rights_holder"]) == ["rightsholder", "habitat"]
