"""Species from the names of folders, and the groups that people know."""

from __future__ import annotations

import pytest

from retrieval.importing.records import RecordRefused
from retrieval.importing.species_names import clean_name, iconic_group, species_from_folder

pytestmark = pytest.mark.pure


def test_inaturalists_folder_names_hold_the_lineage() -> None:
    species = species_from_folder("00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria")
    lineage = (species.kingdom, species.phylum, species.class_name, species.order, species.family)
    assert lineage == ("Animalia", "Chordata", "Amphibia", "Anura", "Ranidae")
    assert (species.scientific_name, species.genus) == ("Rana temporaria", "Rana")
    assert (species.specific_epithet, species.iconic_group) == ("temporaria", "Amphibians")
    dingo = species_from_folder("7_Animalia_Chordata_Mammalia_Carnivora_Canidae_Canis_lupus_dingo")
    assert (dingo.scientific_name, dingo.specific_epithet) == ("Canis lupus dingo", "lupus dingo")


@pytest.mark.parametrize("name", ["Rana temporaria", "Rana_temporaria", " Rana  temporaria "])
def test_plain_names(name: str) -> None:
    species = species_from_folder(name)
    assert (species.scientific_name, species.genus) == ("Rana temporaria", "Rana")


@pytest.mark.parametrize("name", ["Salix ×sepulcralis", "Carex nigra-alba", "Boö münsteri"])
def test_hybrids_hyphens_and_accents(name: str) -> None:
    assert species_from_folder(name).scientific_name == name


@pytest.mark.parametrize("name", ["frogs", "rana temporaria", "Rana", "Rana 12", "2021"])
def test_other_folders_are_refused_with_what_to_do(name: str) -> None:
    with pytest.raises(RecordRefused, match="Name the folder after its species") as refused:
        species_from_folder(name)
    assert refused.value.field == "folder"


@pytest.mark.parametrize(
    ("lineage", "wanted"),
    [
        ({"supercategory": "Ray-finned Fishes"}, "Fish"),
        ({"supercategory": "mammals"}, "Mammals"),
        ({"supercategory": "outdoor", "class_name": "Insecta"}, "Insects"),
        ({"phylum": "Mollusca", "class_name": "Gastropoda"}, "Mollusks"),
        ({"kingdom": "Plantae", "class_name": "Magnoliopsida"}, "Plants"),
        ({"kingdom": "Animalia", "class_name": "Malacostraca"}, "Animalia"),
        ({}, ""),
    ],
)
def test_iconic_groups(lineage: dict[str, str], wanted: str) -> None:
    assert iconic_group(**lineage) == wanted


def test_names_are_composed_and_single_spaced() -> None:
    assert clean_name(" Ba\u0308r\t im \n Wald ") == "Bär im Wald"
