"""What the header of a column says in English, German, French and Spanish: a field, a unit, or that
its values are private.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an image that a column can stand for."""

    name: str
    """Also the canonical header."""
    label: str
    usual: str = ""
    """Usual headers, without accents, capitals, blanks and signs."""
    vague: str = ""
    """Headers that mean this field where no column is called by a usual one."""
    example: str = ""
    handed_on: bool = False
    """Read by the rule for obscured locations alone."""


_FIELDS: Final = (
    Field(
        "file_name", "File",
        "filename imagefilename imagefile imagename imagepath filepath file files fname photofile "
        "photoname photofilename dateiname datei bilddatei bildname fotodatei bildpfad dateipfad "
        "fichier nomfichier nomdufichier nomdefichier fichierimage fichierphoto archivo "
        "nombrearchivo nombredearchivo nombredelarchivo archivoimagen fichero",
        "image images picture photo foto bild bildnr bildnummer path pfad chemin ruta imagen "
        "fotografia filenameoriginal relativepath",
        "birds/0001.jpg",
    ),
    Field(
        "scientific_name", "Scientific name",
        "scientificname sciname latinname latinname binomial binomialname acceptedscientificname "
        "wissenschaftlichername wissname wisenschaftlichername lateinischername artnamelatein "
        "artwissenschaftlich nomscientifique nomlatin nombrecientifico nomcientifico nombrelatino",
        "species speciesname taxonname taxon taxa taxonspeciesname art artname spezies arten "
        "espece especes nomespece nomdelespece especie especies nombreespecie nombredelaespecie",
        "Turdus merula",
    ),
    Field(
        "common_name", "Common name",
        "commonname vernacularname vernacular englishname commonnameenglish deutschername "
        "artnamedeutsch artdeutsch trivialname volksname nomvernaculaire nomcommun nomfrancais "
        "nomusuel nombrecomun nombrevulgar nombrevernaculo",
        example="Common Blackbird",
    ),
    Field(
        "date", "Date",
        "observedon eventdate observationdate observeddate dateobserved dateobservation "
        "datetimeoriginal datetime timestamp aufnahmedatum beobachtungsdatum funddatum datum "
        "datumuhrzeit datumzeit datedobservation dateprise dateprisedevue datedeprisedevue "
        "fecha fechahora fechaobservacion fechadeobservacion datetaken capturedate captureddate "
        "dateofobservation photodate",
        "zeitpunkt timeobservedat",
        "2024-05-30 14:05",
    ),
    Field("time", "Time of day", "eventtime uhrzeit zeit heure hora timeofday observationtime"),
    Field(
        "latitude", "Latitude",
        "lat decimallatitude latitudedecimal latitudewgs84 latwgs84 breite breitengrad "
        "geographischebreite geobreite gpslat gpslatitude latitud latituddecimal",
        example="52.5163",
    ),
    Field(
        "longitude", "Longitude",
        "lon lng long decimallongitude longitudedecimal longitudewgs84 lonwgs84 lange langengrad "
        "laenge laengengrad geographischelange geographischelaenge geolange gpslon gpslong gpslng "
        "gpslongitude longitud longituddecimal",
        example="13.3777",
    ),
    Field(
        "coordinates", "Latitude and longitude",
        "latlon latlong latlng latitudelongitude coords koordinaten koordinate gpskoordinaten "
        "coordonnees coordonneesgps coordenadas coordenadasgps gps gpscoordinates",
        "coordinate",
    ),
    Field(
        "location_uncertainty", "Uncertainty of the location (m)",
        "coordinateuncertaintyinmeters coordinateuncertainty positionalaccuracy accuracy "
        "gpsaccuracy uncertainty genauigkeit lagegenauigkeit ortsgenauigkeit "
        "unscharfe unschaerfe koordinatengenauigkeit precisiongps precisioncoordonnees incertitude "
        "incertidumbre precision precisiondelacoordenada exactitud",
        example="20",
    ),
    Field(
        "elevation", "Elevation (m)",
        "altitude elevationinmeters altitudeinmeters minimumelevationinmeters hohe hoehe "
        "meereshohe meereshoehe hoheunn hoheumeer hohenn hoheuberdemmeer hoheumm altitud elevacion "
        "seehohe",
        "elev",
        "34",
    ),
    Field(
        "license", "License",
        "licence lizenz lizenzen licenses licencia licencecode licensecode photolicense "
        "imagelicense bildlizenz nutzungsrechte",
        "rights",
        "CC BY 4.0",
    ),
    Field(
        "license_url", "Address of the license",
        "licenseurl licenceurl lizenzurl licenselink urllicence urllicencia lizenzadresse",
    ),
    Field("license_text", "License in the source's words"),
    Field(
        "rights_holder", "Rights holder",
        "rightsholder copyrightholder copyright rechteinhaber urheber urheberrecht bildautor "
        "detenteurdesdroits ayantdroit titulardelosderechos titular photographer fotograf "
        "fotografin photographe fotografo",
        "author auteur autor autorin creator credit bildnachweis",
        "A. Meyer",
    ),
    Field(
        "observer", "Observer",
        "recordedby observedby recorder beobachter beobachterin beobachtet observateur "
        "observatrice observador observadora userlogin melder finder",
        "userid",
        "17",
    ),
    Field("coordinates_obscured", "Coordinates obscured", "coordinatesobscured obscured",
          handed_on=True),
    Field("geoprivacy", "Geoprivacy", handed_on=True),
    Field("taxon_geoprivacy", "Geoprivacy of the taxon", "taxongeoprivacy", handed_on=True),
    Field("public_positional_accuracy", "Public positional accuracy", "publicpositionalaccuracy",
          handed_on=True),
    Field("private_latitude", "Private latitude (not stored)", handed_on=True),
    Field("private_longitude", "Private longitude (not stored)", handed_on=True),
    Field("informationWithheld", "Information withheld", handed_on=True),
    Field("dataGeneralizations", "Data generalizations", handed_on=True),
)  # fmt: skip
FIELDS: Final = {field.name: field for field in _FIELDS}
OBSCURING: Final = tuple(field.name for field in _FIELDS if field.handed_on)
"""Fields that say whether a location may be obscured."""

#: Languages of common names by words of their headers; others are English.
_LANGUAGES: Final = {
    "de": "deutschername artnamedeutsch artdeutsch trivialname volksname",
    "fr": "nomvernaculaire nomcommun nomfrancais nomusuel",
    "es": "nombrecomun nombrevulgar nombrevernaculo",
}
_BRACKETS: Final = re.compile(r"[(\[{].*?[)\]}]")
_UNITS: Final = {
    "m": 1.0, "meter": 1.0, "meters": 1.0, "metre": 1.0, "metres": 1.0, "metern": 1.0,
    "metros": 1.0, "mnn": 1.0, "munn": 1.0, "mumeer": 1.0, "masl": 1.0, "msnm": 1.0, "mumm": 1.0,
    "mnhn": 1.0, "munhn": 1.0,
    "km": 1000.0, "kilometer": 1000.0, "cm": 0.01, "ft": 0.3048, "feet": 0.3048, "fuss": 0.3048,
}  # fmt: skip
_UNIT_AT_END: Final = re.compile(r"(?:[\s_,/]+(?:in[\s_]+)?)(m|km|ft|meter|meters|metern|feet)$")
_PRIVATE: Final = re.compile(
    r"^private|e?mail|correo|courriel|phone|telefon|handy|mobil(nummer|nr|e)?$|adresse|address|"
    r"direccion|password|geburt|birth|latitud|longitud|breitengrad|langengrad|laengengrad|"
    r"^(geo|gps|geographische)?(breite|lange|laenge)$|^(gps|decimal|orig)?(lat|lon|lng|long)$|"
    r"coord|koord|gps|utm|geom(etry|etrie|etria)?$|username|userlogin|userid|firstname|lastname|"
    r"surname|vorname|nachname|fullname|personname|beobachter|observer|observateur|observador|"
    r"recordedby|identifiedby|bestimmer|determinador|determinateur|collector|sammler|colector|"
    r"finder|melder|kontakt|contact|photograph(er|e)$|fotograf(in|o)?$|autor(in)?$|author$|auteur$"
)
_NAME_ALONE: Final = frozenset({"name", "person", "nom", "nombre", "people", "names", "leute"})


@cache
def plain(header: str) -> str:
    """A header without accents, capitals, blanks, signs and what stands in brackets."""
    text = unicodedata.normalize("NFKD", _BRACKETS.sub(" ", header).replace("ß", "ss"))
    return "".join(one for one in text.casefold() if one.isalnum())


def unit_of(text: str) -> float | None:
    """How many meters a unit is; None for what is no unit of length."""
    return _UNITS.get(plain(text))


def header_unit(header: str) -> float | None:
    """The unit that a header names, as in “Höhe (m)” or “altitude_ft”, in meters."""
    for found in _BRACKETS.findall(header):
        if factor := unit_of(found[1:-1]):
            return factor
    found = _UNIT_AT_END.search(header.casefold())
    return _UNITS[found[1]] if found else None


@cache
def _meanings() -> dict[str, tuple[str, int]]:
    """(field, rank) by plain headers: rank 1 for usual ones and 2 for vague ones."""
    meant: dict[str, tuple[str, int]] = {}
    for rank, names in ((1, "usual"), (2, "vague")):
        for field in _FIELDS:
            for name in (plain(field.name), *getattr(field, names).split()):
                meant.setdefault(name, (field.name, rank))
    return meant


def field_of(header: str) -> tuple[str, int]:
    """The field that a header usually means, and how sure that is: 0 for the canonical name, 1 for
    a usual one, 2 for a vague one. An empty field where it means none.
    """
    if header.strip().lower() in _CANONICAL:
        return _CANONICAL[header.strip().lower()], 0
    meanings = _meanings()
    found = meanings.get(plain(header))
    if found is None and (match := _UNIT_AT_END.search(header.casefold())):
        found = meanings.get(plain(header[: match.start()]))
    return found or ("", 9)


_CANONICAL: Final = {name.lower(): name for name in FIELDS}


def is_canonical(cells: Iterable[str]) -> bool:
    """Whether a header has the names that tables had to have before columns could be chosen."""
    return {"file_name", "scientific_name"} <= {cell.strip().lower() for cell in cells}


def fields_named(cells: Sequence[str]) -> int:
    """How many fields the cells of a header name."""
    return len({field for cell in cells if cell.strip() and (field := field_of(cell)[0])})


def language_of(header: str) -> str:
    """The language of common names under a header."""
    name = plain(header)
    return next((code for code, names in _LANGUAGES.items() if name in names.split()), "en")


def is_private(header: str) -> bool:
    """Whether a column may hold people's names, addresses or exact locations."""
    name = plain(header)
    return name in _NAME_ALONE or _PRIVATE.search(name) is not None


def unnamed(number: int) -> str:
    """What the column of this number is called where its header is blank."""
    return f"Column {number}"


def is_unnamed(header: str) -> bool:
    """Whether a column has no header of its own."""
    return re.fullmatch(r"Column \d+", header) is not None
