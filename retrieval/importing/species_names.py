"""Species from the names of folders, and iconic groups from lineages."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from core.text import has_controls
from retrieval.importing.records import RecordRefused, SpeciesRecord

# Names of INQUIRE's groups in other data sets (iNat21, iNat2017).
_ICONIC_SYNONYMS: Final = {
    "ray-finned fishes": "Fish",
    "fishes": "Fish",
    "actinopterygii": "Fish",
    "amphibia": "Amphibians",
    "arachnida": "Arachnids",
    "aves": "Birds",
    "insecta": "Insects",
    "mammalia": "Mammals",
    "mollusca": "Mollusks",
    "molluscs": "Mollusks",
    "plantae": "Plants",
    "reptilia": "Reptiles",
}
_ICONIC_GROUPS: Final = (
    "Animalia", "Amphibians", "Arachnids", "Birds", "Fish", "Fungi", "Insects", "Mammals",
    "Mollusks", "Plants", "Reptiles",
)  # fmt: skip
_ICONIC_BY_CLASS: Final = {
    "actinopterygii": "Fish",
    "chondrichthyes": "Fish",
    "elasmobranchii": "Fish",
    "amphibia": "Amphibians",
    "arachnida": "Arachnids",
    "aves": "Birds",
    "insecta": "Insects",
    "mammalia": "Mammals",
    "reptilia": "Reptiles",
}
_NUMBER: Final = re.compile(r"\d+")
_GENUS: Final = re.compile(r"[A-Z][a-zà-öø-ÿ-]+")
_EPITHET: Final = re.compile(r"[a-zà-öø-ÿ×.-]+")
_INAT_RANKS: Final = 6


def clean_name(text: str) -> str:
    """Return a name in NFC with single blanks."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def iconic_group(*, supercategory: str = "", kingdom: str = "", phylum: str = "",
                 class_name: str = "") -> str:  # fmt: skip
    """Return INQUIRE's iconic group for a data set's supercategory, else for a lineage, else ""."""
    name = clean_name(supercategory).lower()
    if name in _ICONIC_SYNONYMS:
        return _ICONIC_SYNONYMS[name]
    for group in _ICONIC_GROUPS:
        if group.lower() == name:
            return group
    if class_name.lower() in _ICONIC_BY_CLASS:
        return _ICONIC_BY_CLASS[class_name.lower()]
    if phylum.lower() == "mollusca":
        return "Mollusks"
    return {"animalia": "Animalia", "plantae": "Plants", "fungi": "Fungi"}.get(kingdom.lower(), "")


@dataclass(frozen=True, slots=True)
class Taxon:
    """What a name of a taxon says: a species, or else the text as it is."""

    species: SpeciesRecord | None = None
    text: str = ""


def taxon_of(name: str) -> Taxon:
    """Read the name of a folder, or a table's cell, as a species; else keep it as a text."""
    try:
        return Taxon(species=species_from_folder(name))
    except RecordRefused:
        return Taxon(text=clean_name(name))


def species_from_folder(name: str) -> SpeciesRecord:
    """Read a species from a folder's name.

    Accepted are iNaturalist's `00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria`,
    `Rana temporaria` and `Rana_temporaria`. Raises RecordRefused for anything else.
    """
    if has_controls(name):
        raise RecordRefused("folder", f"holds control characters: {name!r}")
    parts = clean_name(name.replace("_", " ")).split(" ")
    if len(parts) > _INAT_RANKS + 1 and _NUMBER.fullmatch(parts[0]):
        kingdom, phylum, class_name, order, family, genus, *epithets = parts[1:]
        if all(map(_GENUS.fullmatch, (kingdom, genus))):
            return SpeciesRecord(
                scientific_name=" ".join([genus, *epithets]),
                kingdom=kingdom,
                phylum=phylum,
                class_name=class_name,
                order=order,
                family=family,
                genus=genus,
                specific_epithet=" ".join(epithets),
                iconic_group=iconic_group(kingdom=kingdom, phylum=phylum, class_name=class_name),
            )
    genus, *epithets = parts
    if epithets and _GENUS.fullmatch(genus) and all(map(_EPITHET.fullmatch, epithets)):
        return SpeciesRecord(
            scientific_name=" ".join(parts), genus=genus, specific_epithet=" ".join(epithets)
        )
    raise RecordRefused(
        "folder",
        f"“{name}” is not a species name. Name the folder after its species, such as "
        "“Rana temporaria” or “00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria”.",
    )
