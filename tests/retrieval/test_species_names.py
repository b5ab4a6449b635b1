"""Species from the names of folders, and the groups that people know."""

from __future__ import annotations

import pytest

from retrieval.importing.records import RecordRefused, SpeciesRecord
from retrieval.importing.species_names import (
    KnownNames,
    Taxon,
    clean_name,
    iconic_group,
    species_from_folder,
    taxon_of,
)

pytestmark = pytest.mark.pure

# What names stand for: (a species, what follows it), or a text that is a taxon's, or another name.
SPECIES = {
    "Turdus merula": "Turdus merula",
    "turdus merula": "Turdus merula",
    "TURDUS MERULA": "Turdus merula",
    "Turdus Merula": "Turdus merula",
    "Turdus_merula": "Turdus merula",
    "turdus_merula": "Turdus merula",
    "turdus-merula": "Turdus merula",
    "  Turdus   merula ": "Turdus merula",
    "Turdus merula Linnaeus, 1758": "Turdus merula",
    "Turdus merula (Linnaeus, 1758)": "Turdus merula",
    "Turdus_merula_Linnaeus,_1758": "Turdus merula",
    "turdus merula linnaeus, 1758": "Turdus merula",
    "TURDUS MERULA LINNAEUS, 1758": "Turdus merula",
    "Turdus merula L.": "Turdus merula",
    "Turdus merula Linnaeus 1758": "Turdus merula",
    "Abies alba Mill.": "Abies alba",
    "Abies alba (L.) Mill.": "Abies alba",
    "Lavandula stoechas Müll.Arg. ex Hook.f.": "Lavandula stoechas",
    "Papilio machaon Denis & Schiffermüller, 1775": "Papilio machaon",
    "Cicinnurus regius d'Orbigny, 1840": "Cicinnurus regius",
    "Gerygone fusca de Vis": "Gerygone fusca",
    "Larus fuscus van der Meer, 1901": "Larus fuscus",
    "Quercus × hispanica Lam.": "Quercus × hispanica",
    "Quercus x hispanica": "Quercus x hispanica",
    "Salix ×sepulcralis": "Salix ×sepulcralis",
    "×Cupressocyparis leylandii": "×Cupressocyparis leylandii",
    "× Cupressocyparis leylandii": "×Cupressocyparis leylandii",
    "Canis lupus dingo": "Canis lupus dingo",
    "Canis lupus dingo Meyer, 1793": "Canis lupus dingo",
    "canis lupus dingo": "Canis lupus dingo",
    "Carex nigra subsp. nigra": "Carex nigra subsp. nigra",
    "Carex nigra var. juncea (Fr.) Hyl.": "Carex nigra var. juncea",
    "Bombus (Pyrobombus) pratorum": "Bombus pratorum",
    "Atropa bella-donna": "Atropa bella-donna",
    "Boö münsteri": "Boö münsteri",
    "Oncorhynchus mykiss": "Oncorhynchus mykiss",
    "pan paniscus": "Pan paniscus",
    "Pan troglodytes": "Pan troglodytes",
    "rana temporaria": "Rana temporaria",
    "rosa canina": "Rosa canina",
    "python regius": "Python regius",
    "Picea abies": "Picea abies",
    "Zantedeschia aethiopica": "Zantedeschia aethiopica",
    "zantedeschus aethiopicus": "Zantedeschus aethiopicus",
    "012 Turdus merula": "Turdus merula",
    "03_Turdus_merula": "Turdus merula",
    "1. Turdus merula": "Turdus merula",
    "00019_Animalia_Chordata_Amphibia_Anura_Ranidae_Rana_temporaria": "Rana temporaria",
}
SPECIES_AND_MORE = {
    "Turdus merula (juv.)": "(juv.)",
    "Turdus merula juv.": "juv.",
    "turdus merula male": "male",
    "Turdus merula Weibchen": "Weibchen",
    "Turdus merula - nest": "- nest",
    "Turdus merula, hembra": "hembra",
    "Turdus merula 2023": "2023",
    "Turdus_merula-02": "02",
    "Turdus merula Berlin 2023": "Berlin 2023",
    "Turdus merula mâle adulte": "mâle adulte",
}
TAXA = (
    "Turdus", "Turdus Linnaeus, 1758", "Quercus L.", "Turdus (juv.)", "turdus", "Aves", "aves",
    "Insecta", "Turdidae", "Fabaceae", "Passeriformes", "Lepidoptera",
)  # fmt: skip
OPEN = (
    "Turdus sp.", "Turdus sp",
    "Turdus_sp.", "turdus sp", "Turdus spp.", "Turdus sp1", "Rana cf. temporaria",
    "rana cf temporaria", "cf. Rana temporaria", "Rana aff. temporaria", "Rana nr. temporaria",
    "Pelophylax kl. esculentus", "Taraxacum officinale agg.", "Turdus indet.", "Aves indet.",
    "Anas platyrhynchos × Anas acuta", "Anas platyrhynchos x acuta", "Quercus robur × petraea",
    "Begonia elatostemmoides Hook.f. × minutifolia N.Hallé", "BOLD:AAA1234", "BOLD_AAA1234",
    "SH1507512.08FU", "Tulipa ‘Queen of Night’", "Rosa rugosa 'Alba'", "T. merula",
    "Rana temporaria?",
)  # fmt: skip
OTHERS = (
    "animals", "animals birds", "Käfer & Co.", "Käfer", "2023", "IMG", "train", "test", "100CANON",
    "red fox", "Red fox", "Red Fox", "my photos", "My photos", "garden birds", "Garden birds",
    "Rote Liste", "Rote liste", "rotes haus", "Rotes haus", "chat noir", "Chat noir", "New folder",
    "Neuer Ordner", "Neuer ordner", "Nueva carpeta", "Nouveau dossier", "Photos from 2023",
    "Mis fotos", "mariposa negra", "rana verde", "Rana verde", "serpiente grande", "casa blanca",
    "Costa Rica", "Sierra nevada", "flora alpina", "Google Photos", "Lynx photos", "lynx kitten",
    "python code", "rosa", "iris blume", "Bilder vom Garten", "bus status", "Campus nord",
    "001.Black_footed_Albatross", "Rana 12", "Urlaub 2023", "Rana temporaria & Bufo bufo",
    "Rana temporaria / Rana dalmatina", "Rana temporaria, Bufo bufo", "Kleine tiere", "DCIM",
    "virus data", "Vögel im Garten", "les oiseaux", "grandes felinos", "unknown species", "",
    "Vanessa Maria", "Polar bear", "Alpine ibex", "Feather boa", "Saudi arabia", "Station wagon",
    "Balaclava ski", "Rhinoceros beetle", "Black-and-white colobus", "Costa verde", "animals",
)  # fmt: skip


FOLDERS = KnownNames(by_form=False)


def test_names_are_read_for_what_they_say() -> None:
    for name, scientific in SPECIES.items():
        taxon = taxon_of(name, FOLDERS)
        assert taxon.species is not None, name
        assert (taxon.species.scientific_name, taxon.text) == (scientific, ""), name
    for name, more in SPECIES_AND_MORE.items():
        taxon = taxon_of(name, FOLDERS)
        assert taxon.species is not None, name
        assert (taxon.species.scientific_name, taxon.text) == ("Turdus merula", more), name
    for names, recognized, is_open in (
        (TAXA, True, False), (OPEN, True, True), (OTHERS, False, False)
    ):  # fmt: skip
        for name in names:
            assert taxon_of(name, FOLDERS) == Taxon(None, name, recognized, is_open), name


def test_what_the_corpus_knows_decides() -> None:
    known = KnownNames(
        species={
            name.lower(): name
            for name in ("Red fox", "Rana sp.", "Xus yus", "Bombus (Pyrobombus) pratorum", "human")
        },
        genera=frozenset({"ixa"}),
        others=frozenset({"amsel", "rotkehlchen", "rana verde", "felidae", "petit duc"}),
    )
    for name, scientific in (
        ("Red fox", "Red fox"),  # imported before these rules
        ("red_fox", "Red fox"),
        ("Rana sp.", "Rana sp."),
        ("ixa alba", "Ixa alba"),
        ("XUS YUS", "Xus yus"),
        ("Bombus (Pyrobombus) pratorum", "Bombus (Pyrobombus) pratorum"),
    ):
        species = taxon_of(name, known).species
        assert species is not None, name
        assert species.scientific_name == scientific
    assert taxon_of("human", known).species is None
    for name in ("Amsel", "amsel", "Rana verde", "petit_duc", "Felidae", "Ixa", "ixa"):
        assert taxon_of(name, known) == Taxon(None, name, True)
        assert taxon_of(name).recognized == (name == "Felidae")
    of_import = known.with_lineages(
        [SpeciesRecord("Oxus boxus", genus="Oxus", family="Oxuidae", order="Oxa")]
    )
    assert taxon_of("oxus alba", of_import).species is not None
    assert taxon_of("Oxa", of_import).recognized
    assert taxon_of("Amsel", of_import).recognized


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
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(
        RecordRefused, match="is not a species name, such as “Rana temporaria”"
    ) as refused:
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
