import pytest

from retrieval.importing.records import RecordRefused
from retrieval.importing.species_names import clean_name, iconic_group, species_from_folder


def test_inaturalists_folder_names_hold_the_lineage():
    species = species_from_folder("00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria")
    assert species.scientific_name == "Rana temporaria"
    assert (species.kingdom, species.phylum, species.class_name) == (
        "Animalia",
        "Chordata",
        "Amphibia",
    )
    assert (species.order, species.family, species.genus) == ("Anura", "Ranidae", "Rana")
    assert (species.specific_epithet, species.iconic_group) == ("temporaria", "Amphibians")


def test_a_subspecies_keeps_both_epithets():
    species = species_from_folder(
        "7_Animalia_Chordata_Mammalia_Carnivora_Canidae_Canis_lupus_dingo"
    )
    assert species.scientific_name == "Canis lupus dingo"
    assert species.specific_epithet == "lupus dingo"


@pytest.mark.parametrize("name", ["Rana temporaria", "Rana_temporaria", " Rana  temporaria "])
def test_plain_names(name):
    species = species_from_folder(name)
    assert (species.scientific_name, species.genus) == ("Rana temporaria", "Rana")


@pytest.mark.parametrize(
    "name", ["Salix ×sepulcralis", "Carex nigra-alba", "Kniphofia ×praecox", "Boö münsteri"]
)
def test_hybrids_hyphens_and_accents(name):
    assert species_from_folder(name).scientific_name == name


@pytest.mark.parametrize("name", ["frogs", "train", "rana temporaria", "Rana", "Rana 12", "2021"])
def test_other_folders_are_refused_with_what_to_do(name):
    with pytest.raises(RecordRefused, match="Name the folder after its species") as refused:
        species_from_folder(name)
    assert refused.value.field == "folder"


@pytest.mark.parametrize(
    ("lineage", "wanted"),
    [
        ({"supercategory": "Ray-finned Fishes"}, "Fish"),
        ({"supercategory": "Aves"}, "Birds"),
        ({"supercategory": "mammals"}, "Mammals"),
        ({"supercategory": "outdoor", "class_name": "Insecta"}, "Insects"),
        ({"class_name": "Elasmobranchii", "kingdom": "Animalia"}, "Fish"),
        ({"phylum": "Mollusca", "class_name": "Gastropoda"}, "Mollusks"),
        ({"kingdom": "Plantae", "class_name": "Magnoliopsida"}, "Plants"),
        ({"kingdom": "Fungi"}, "Fungi"),
        ({"kingdom": "Animalia", "class_name": "Malacostraca"}, "Animalia"),
        ({"kingdom": "Chromista"}, ""),
        ({}, ""),
    ],
)
def test_iconic_groups(lineage, wanted):
    assert iconic_group(**lineage) == wanted


def test_names_are_composed_and_single_spaced():
    assert clean_name(" Ba\u0308r\t im \n Wald ") == "Bär im Wald"
