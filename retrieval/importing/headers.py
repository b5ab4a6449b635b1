"""What the header of a column says in English, German, French and Spanish: a field, a unit, or that
its values are private.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final


@dataclass(frozen=True, slots=True)
class Field:
    """A field of an image that a column can stand for."""

    name: str
    """Also the canonical header."""
    label: str
    example: str = ""
    """In the table to fill in; fields without one aren't in it."""
    usual: str = ""
    """Usual headers, without accents, capitals, blanks and signs."""
    vague: str = ""
    """Headers that mean this field where no column is called by a usual one."""


_FIELDS: Final = (
    Field("file_name", "File", "birds/0001.jpg",
          "imagefilename imagefile imagename imagepath filepath file files fname photofile "
          "photoname photofilename dateiname datei bilddatei bildname fotodatei bildpfad "
          "dateipfad fichier nomfichier nomdufichier nomdefichier archivo nombrearchivo "
          "nombredearchivo nombredelarchivo fichero",
          "image images picture photo foto bild bildnr pfad path chemin ruta imagen fotografia"),
    Field("scientific_name", "Scientific name", "Turdus merula",
          "sciname latinname binomial acceptedscientificname wissenschaftlichername wissname "
          "lateinischername artnamelatein artwissenschaftlich nomscientifique nomlatin "
          "nombrecientifico nombrelatino",
          "species speciesname taxonname taxon taxa taxonspeciesname art artname spezies espece "
          "especes nomespece nomdelespece especie especies nombredelaespecie"),
    Field("common_name", "Common name", "Common Blackbird",
          "vernacularname vernacular englishname deutschername artnamedeutsch artdeutsch "
          "nomvernaculaire nomcommun nomfrancais nombrecomun nombrevulgar"),
    Field("date", "Date", "2024-05-30 14:05",
          "observedon eventdate observationdate observeddate dateobserved dateobservation "
          "datetime datetimeoriginal timestamp aufnahmedatum beobachtungsdatum funddatum datum "
          "datumuhrzeit datedobservation dateprise dateprisedevue datedeprisedevue fecha "
          "fechahora fechaobservacion fechadeobservacion datetaken capturedate photodate",
          "zeitpunkt timeobservedat"),
    Field("time", "Time of day", "",
          "eventtime uhrzeit zeit heure hora timeofday observationtime"),
    Field("latitude", "Latitude", "52.5163",
          "lat decimallatitude latitudedecimal latitudewgs84 breite breitengrad "
          "geographischebreite gpslat gpslatitude latitud latituddecimal"),
    Field("longitude", "Longitude", "13.3777",
          "lon lng long decimallongitude longitudedecimal longitudewgs84 lange laenge langengrad "
          "laengengrad geographischelange geographischelaenge gpslon gpslong gpslng gpslongitude "
          "longitud longituddecimal"),
    Field("location_uncertainty", "Uncertainty of the location (m)", "20",
          "coordinateuncertaintyinmeters coordinateuncertainty positionalaccuracy accuracy "
          "gpsaccuracy uncertainty genauigkeit lagegenauigkeit ortsgenauigkeit unscharfe "
          "unschaerfe koordinatengenauigkeit precision precisiongps incertitude incertidumbre "
          "exactitud"),
    Field("elevation", "Elevation (m)", "34",
          "elev altitude elevationinmeters altitudeinmeters minimumelevationinmeters hohe hoehe "
          "meereshohe meereshoehe seehohe hoheunn hoheumeer altitud elevacion"),
    Field("license", "License", "CC BY 4.0",
          "licence lizenz licencia licencecode licensecode photolicense imagelicense bildlizenz "
          "nutzungsrechte",
          "rights"),
    Field("license_url", "Address of the license", "",
          "licenceurl lizenzurl urllicence urllicencia"),
    Field("license_text", "License in the source's words"),
    Field("rights_holder", "Rights holder", "A. Meyer",
          "copyrightholder copyright rechteinhaber urheber bildautor detenteurdesdroits "
          "ayantdroit titular titulardelosderechos photographer fotograf fotografin photographe "
          "fotografo",
          "author auteur autor autorin creator credit bildnachweis"),
    Field("observer", "Observer", "17",
          "recordedby observedby recorder beobachter beobachterin observateur observatrice "
          "observador observadora userlogin melder finder",
          "userid"),
    # What follows may say that a location is obscured.
    Field("coordinates_obscured", "Coordinates obscured", usual="obscured"),
    Field("geoprivacy", "Geoprivacy"),
    Field("taxon_geoprivacy", "Geoprivacy of the taxon"),
    Field("public_positional_accuracy", "Public positional accuracy"),
    Field("private_latitude", "Private latitude (not stored)"),
    Field("private_longitude", "Private longitude (not stored)"),
    Field("informationWithheld", "Information withheld"),
    Field("dataGeneralizations", "Data generalizations"),
)  # fmt: skip
FIELDS: Final = {field.name: field for field in _FIELDS}

_BRACKETS: Final = re.compile(r"[(\[{].*?[)\]}]")
_UNITS: Final = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres", "metern", "metros"), 1.0),
    # Above sea level.
    **dict.fromkeys(("mnn", "munn", "mumeer", "masl", "msnm"), 1.0),
    "km": 1000.0, "kilometer": 1000.0, "cm": 0.01, "ft": 0.3048, "feet": 0.3048, "fuss": 0.3048,
}  # fmt: skip
_UNIT_AT_END: Final = re.compile(r"[\s_,/]+(?:in[\s_]+)?(m|km|ft|meter|meters|metern|feet)$")
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


@lru_cache(maxsize=10_000)
def plain(header: str) -> str:
    """A header without accents, capitals, blanks, signs and what stands in brackets."""
    text = unicodedata.normalize("NFKD", _BRACKETS.sub(" ", header).replace("ß", "ss"))
    return "".join(one for one in text.casefold() if one.isalnum())


#: (field, rank) by headers: 0 for the canonical name, 1 for usual ones and 2 for vague ones.
_MEANINGS: Final = {
    **{name: (field.name, 2) for field in _FIELDS for name in field.vague.split()},
    **{name: (field.name, 1) for field in _FIELDS for name in field.usual.split()},
    **{plain(field.name): (field.name, 1) for field in _FIELDS},
    **{field.name.lower(): (field.name, 0) for field in _FIELDS},
}


def unit_of(text: str) -> float | None:
    """How many meters a unit is; None for what is no unit of length."""
    return _UNITS.get(plain(text))


def header_unit(header: str) -> float | None:
    """The unit that a header names, as in “Höhe (m)” or “altitude_ft”, in meters."""
    units = (*_BRACKETS.findall(header), *_UNIT_AT_END.findall(header.casefold()))
    return next((factor for one in units if (factor := unit_of(one.strip("()[]{}")))), None)


def field_of(header: str) -> tuple[str, int]:
    """The field that a header usually means, and how sure that is: 0 for the canonical name, 1 for
    a usual one, 2 for a vague one. An empty field where it means none.
    """
    whole = header.strip().lower()
    for name in (whole, plain(header), plain(_UNIT_AT_END.sub("", whole))):
        if found := _MEANINGS.get(name):
            return found
    return "", 9


def is_canonical(cells: Iterable[str]) -> bool:
    """Whether a header has the names that tables had to have before columns could be chosen."""
    return {"file_name", "scientific_name"} <= {cell.strip().lower() for cell in cells}


def fields_named(cells: Sequence[str]) -> int:
    """How many fields the cells of a header name."""
    return len({field for cell in cells if cell.strip() and (field := field_of(cell)[0])})


def language_of(header: str) -> str:
    """The language of common names under a header: of a German, French or Spanish one its own."""
    found = re.search("(deutsch)|(nom[vcf])|(nombre)", plain(header))
    return ("de", "fr", "es")[found.lastindex - 1] if found and found.lastindex else "en"


def is_private(header: str, *, of_texts: bool = True) -> bool:
    """Whether a column may hold people's names, addresses or exact locations: “Nombre” is a name in
    Spanish, and of numbers a number in French.
    """
    name = plain(header)
    return (of_texts and name in _NAME_ALONE) or _PRIVATE.search(name) is not None
