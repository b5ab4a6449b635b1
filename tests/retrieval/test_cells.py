"""Values of tables as people write them, and what headers say."""

from __future__ import annotations

import pytest

from retrieval.importing.cells import (
    ColumnValues,
    coordinate_of,
    custom_value,
    decimal_mark,
    iso_date,
    number_of,
)
from retrieval.importing.headers import field_of, header_unit, is_private, language_of
from retrieval.importing.records import RecordRefused

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "day_first", "month_first"),
    [
        ("27.09.2024", "2024-09-27", "2024-09-27"),
        ("27/09/2024", "2024-09-27", "2024-09-27"),
        ("09/27/2024", "2024-09-27", "2024-09-27"),
        ("09-27-2024", "2024-09-27", "2024-09-27"),
        ("3/4/24", "2024-04-03", "2024-03-04"),
        ("3.4.1998", "1998-04-03", "1998-03-04"),
        ("3. 4. 98", "1998-04-03", "1998-03-04"),
        ("03.04.2024 14:05", "2024-04-03 14:05:00", "2024-03-04 14:05:00"),
        ("03.04.2024, 14:05:33 Uhr", "2024-04-03 14:05:33", "2024-03-04 14:05:33"),
        ("3/4/2024 2:05 PM", "2024-04-03 14:05:00", "2024-03-04 14:05:00"),
        ("27.09.2024 12:30 a.m.", "2024-09-27 00:30:00", "2024-09-27 00:30:00"),
        ("27/09/2024 14h05", "2024-09-27 14:05:00", "2024-09-27 14:05:00"),
        ("2024:09:27 14:05:33", "2024-09-27 14:05:33", "2024-09-27 14:05:33"),
        ("2024.9.7", "2024-09-07", "2024-09-07"),
        ("2024-09-07 14:05:33 UTC", "2024-09-07 14:05:33+00:00", "2024-09-07 14:05:33+00:00"),
        # No dates.
        *((text, text, text) for text in ("31.02.2024", "32.1.2024", "13.13.2024", "soon", "2024",
                                          "27.09.2024 25:00", "3 Foo 2024", "1.2.3.4", "09.2024")),
    ],
)  # fmt: skip
def test_dates(text: str, day_first: str, month_first: str) -> None:
    assert (iso_date(text, True), iso_date(text, False)) == (day_first, month_first)
    # Nothing is guessed.
    assert iso_date(text, None) == (day_first if day_first == month_first else text)


@pytest.mark.parametrize(
    ("texts", "kind", "orders", "open_dates"),
    [
        (["27.09.2024", "03.04.2024", ""], "date", {True}, 1),
        (["09/27/2024", "04/04/2024"], "date", {False}, 0),
        (["03/04/2024", "2024-05-06"], "date", set(), 1),
        (["13/04/2024", "04/13/2024"], "date", {True, False}, 0),
        (["1", "2,5", "n/a"], "number", set(), 0),
        (["007", "12"], "text", set(), 0),
        (["ja", "Nein", " "], "yes_no", set(), 0),
        (["Sí", "no"], "yes_no", set(), 0),
        (["yes", "maybe"], "text", set(), 0),
        (["0", "1"], "number", set(), 0),
        (["32 m", "5"], "text", set(), 0),
        (["", "NA", "#N/A"], "text", set(), 0),
        # Kept as they are, and nothing of them is lost.
        (["yes (sure)", "no"], "text", set(), 0),
        (["1.2.3", "1.5"], "text", set(), 0),
        (["27 09 2024", "1"], "text", set(), 0),
        (["31.04.2024", "27.04.2024"], "text", {True}, 0),
    ],
)
def test_columns_say_how_they_are_written(
    texts: list[str], kind: str, orders: set[bool], open_dates: int
) -> None:
    values = ColumnValues()
    for text in texts:
        values.add(text)
    assert (values.kind, values.day_first, values.open_dates) == (kind, orders, open_dates)


@pytest.mark.parametrize(
    ("text", "mark", "open_marks", "number"),
    [
        ("52,5", "", ",", 52.5),
        ("52.5", "", ",.", 52.5),
        ("-0,25", "", ",", -0.25),
        ("0,125", "", ",.", 0.125),
        ("1.2.3", ",", ",.", None),
        ("−3", "", ",", -3.0),
        ("32 m", "", ",", 32.0),
        ("30 m ü. NN", "", ",", 30.0),
        ("1.2 km", "", ",", 1200.0),
        ("1,2 km", "", ",", 1200.0),
        ("100 ft", "", ",", 30.48),
        ("1.234,5", "", ",", 1234.5),
        ("1,234.5", "", ",", 1234.5),
        ("1 234,5", "", ",", 1234.5),
        ("1'234", "", ",", 1234.0),
        ("1.234.567", "", ",", 1234567.0),
        ("1.200", "", ",", 1.2),  # as it has always been
        ("1.200", ",", ",.", 1200.0),
        ("1,200", ".", ",", 1200.0),
        ("1,200", ",", ",.", 1.2),
        ("1,200", "", ",", "may be 1.2 or 1200"),
        ("1.200 m", "", ",.", "may be 1.2 or 1200"),
        ("1e3", "", ",", 1000.0),
        ("30-40", "", ",", None),
        ("5 kg", "", ",", None),
        ("<10 m", "", ",", None),
        ("high", "", ",", None),
    ],
)
def test_numbers(text: str, mark: str, open_marks: str, number: float | str | None) -> None:
    if isinstance(number, str):
        with pytest.raises(RecordRefused, match=number):
            number_of(text, mark, open_marks)
    else:
        assert number_of(text, mark, open_marks) == pytest.approx(number)


def test_units_of_headers_and_marks_of_decimals() -> None:
    headers = ("Höhe (m)", "Höhe [km]", "altitude_ft", "Altitude in m", "Höhe m", "height")
    assert [header_unit(header) for header in headers] == [1, 1000, 0.3048, 1, 1, None]
    assert number_of("2", "", ",", unit=1000) == 2000
    assert number_of("2 m", "", ",", unit=1000) == 2
    marks = {"52,5": ",", "52.5": ".", "1.234": "", "27.09.2024": "", "1.234,56": ",", "5": ""}
    assert {text: decimal_mark(text) for text in marks} == marks


@pytest.mark.parametrize(
    ("text", "latitude", "longitude"),
    [
        ("52,5", 52.5, 52.5),
        ("52.123", 52.123, 52.123),
        ("-33,9", -33.9, -33.9),
        ("52.5° N", 52.5, None),
        ("N 52,5", 52.5, None),
        ("33.9 S", -33.9, None),
        ("13.4°E", None, 13.4),
        ("70 W", None, -70.0),
        ("-5 S", None, None),
        ("north", None, None),
        ("33U 391777", None, None),
    ],
)
def test_coordinates(text: str, latitude: float | None, longitude: float | None) -> None:
    assert coordinate_of(text, "N", "S") == pytest.approx(latitude)
    assert coordinate_of(text, "E", "W") == pytest.approx(longitude)


def test_values_of_custom_fields() -> None:
    def read(text: str, kind: str) -> object:
        try:
            return custom_value(text, kind, "", ",", None)
        except RecordRefused as error:
            return error.reason

    assert read("2,5", "number") == 2.5
    assert read("27.09.2024", "date") == "2024-09-27"
    assert read("Ja", "yes_no") is True
    assert read(" two\n lines ", "text") == "two lines"
    assert [read("n/a", kind) for kind in ("number", "date", "text", "yes_no")] == [None] * 4
    assert read("many", "number") == "must be a number, not 'many'"
    assert read("3/4/2024", "date") == "must be a date, not '3/4/2024'"
    assert read("1", "yes_no") == "must be yes or no, not '1'"
    assert read("x" * 1001, "text") == "has 1,001 letters; at most 1,000 are kept"


def test_usual_headers_of_four_languages() -> None:
    expected = {
        "file_name": "File_Name, filename, Dateiname, DATEI, Bild, Foto, fichier, Nom du fichier, "
        "archivo, Nombre de archivo, image path, file, photo, Bild-Datei",
        "scientific_name": "Art, Artname, wissenschaftlicher Name, Wiss. Name, espèce, Espece, "
        "nom scientifique, especie, nombre científico, species, taxon, scientificName, "
        "taxon_species_name",
        "common_name": "deutscher Name, nom vernaculaire, Nombre común, vernacularName",
        "date": "Datum, Aufnahmedatum, Fecha, observed_on, eventDate, Date/Time, datetime",
        "time": "Uhrzeit, heure, hora",
        "latitude": "Breite, Breitengrad, lat, Latitude (°), decimalLatitude, latitud, GPS-Lat",
        "longitude": "Länge, Laenge, Längengrad, lon, lng, Long, longitud",
        "location_uncertainty": "positional_accuracy, coordinateUncertaintyInMeters, "
        "Genauigkeit (m), Genauigkeit [m]",
        "elevation": "Höhe, Höhe (m), Hoehe, Höhe ü. NN, Altitude_m, elevation in m, altitud",
        "license": "Lizenz, licence, licencia",
        "rights_holder": "Urheber, Fotograf, auteur, author, rightsHolder, Photographer",
        "observer": "Beobachter, Beobachter/in, observateur, recordedBy, user_login",
        "coordinates_obscured": "Coordinates_Obscured",
        "geoprivacy": "geoprivacy",
        "public_positional_accuracy": "public_positional_accuracy",
        "informationWithheld": "informationWithheld",
        "private_latitude": "private_latitude, Private Latitude",
        "": "Koordinaten, id, habitat, Bemerkung, captive_cultivated, label, Nr., x, alt",
    }
    for field, headers in expected.items():
        for header in headers.split(", "):
            assert field_of(header)[0] == field, header
    assert [language_of(header) for header in ("Deutscher Name", "common_name")] == ["de", "en"]


def test_private_columns() -> None:
    private = (
        "private_place_guess, E-Mail, user email, Telefon, GPS x, decimalLatitude, user_name, "
        "Beobachter, Finder, Name, Kontaktperson, Länge"
    )
    assert [one for one in private.split(", ") if not is_private(one)] == []
    other = "habitat, Körperlänge, Schnabelbreite, place_guess, file size, Geschlecht, weather"
    assert [one for one in other.split(", ") if is_private(one)] == []
    # A name in Spanish, and of numbers a number in French.
    assert is_private("Nombre")
    assert not is_private("Nombre", of_texts=False)
