import pytest

from retrieval.corpus.models import Species, SpeciesName
from retrieval.corpus.selectors import corpus_counts
from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert
from retrieval.species.selectors import (
    species_by_name,
    species_resolve,
    with_image_counts,
)
from tests.retrieval.making import image_row, species_create

pytestmark = pytest.mark.django_db


def names_of(results):
    species, missing = results
    return [s.scientific_name for s in species], missing


def test_names_resolve_to_species(animals):
    both = ["Ursus arctos", "Ursus maritimus"]
    orange = ["Danaus plexippus", "Limenitis archippus"]
    bear = animals["Ursus arctos"].pk
    assert names_of(species_resolve(["ursus arctos"])) == (both[:1], [])
    assert names_of(species_resolve([bear])) == (both[:1], [])
    assert names_of(species_resolve([str(bear)])) == (both[:1], [])
    assert names_of(species_resolve(["Ursus"])) == (both, [])
    assert names_of(species_resolve(["ursidae", "URSUS ARCTOS"])) == (both, [])
    assert names_of(species_resolve(["Braunbar", "Polar  bear"])) == (both, [])
    assert names_of(species_resolve(["Orange and black butterflies"])) == (orange, [])


def test_names_not_found_are_given_back_as_they_came(animals):
    missing = ["Rana", 10**9, "99999999999999999999999", "9" * 5000, 10**5000, -1, "", "urs"]
    assert names_of(species_resolve([*missing, "Ursus arctos", *missing])) == (
        ["Ursus arctos"],
        missing,
    )
    assert species_resolve([]) == ([], [])


def test_a_scientific_name_goes_before_a_group_of_the_same_name(db):
    species_upsert(
        records=[
            SpeciesRecord(scientific_name="Gorilla", genus="Gorilla"),
            SpeciesRecord(scientific_name="Gorilla beringei", genus="Gorilla"),
        ]
    )
    assert names_of(species_resolve(["gorilla"])) == (["Gorilla"], [])


def test_what_a_record_knows_replaces_and_what_it_leaves_empty_stays(db):
    first = SpeciesRecord(
        scientific_name="Rana temporaria", family="Ranidae", names=(("en", "Common Frog"),)
    )
    created = species_create(record=first)
    again = species_create(
        record=SpeciesRecord(
            scientific_name="Rana temporaria",
            iconic_group="Amphibians",
            names=(("de", "Grasfrosch"),),
        )
    )
    assert again.pk == created.pk
    species = Species.objects.get()
    assert (species.family, species.iconic_group) == ("Ranidae", "Amphibians")
    assert set(species.names.values_list("language", "name", "search_text")) == {
        ("", "Rana temporaria", "rana temporaria"),
        ("en", "Common Frog", "common frog"),
        ("de", "Grasfrosch", "grasfrosch"),
    }


def names_by_language(scientific_name):
    rows = SpeciesName.objects.filter(species__scientific_name=scientific_name).order_by("pk")
    found = {}
    for language, name in rows.values_list("language", "name"):
        found.setdefault(language, []).append(name)
    return found


def test_names_replace_those_of_the_same_language_only(animals):
    species_create(
        record=SpeciesRecord(
            scientific_name="Ursus arctos",
            names=(("en", "Grizzly"), ("en", "Brown Bear"), ("fr", "Ours brun"), ("it", "Orso")),
        )
    )
    assert names_by_language("Ursus arctos") == {
        "": ["Ursus arctos"],
        "en": ["Grizzly", "Brown Bear"],
        "de": ["Braunbär"],
        "fr": ["Ours brun"],
        "it": ["Orso"],
    }
    assert Species.objects.get(scientific_name="Ursus arctos").common_name == "Grizzly"
    assert names_by_language("Ursus maritimus")["en"] == ["Polar Bear"]


def test_records_of_one_species_give_their_names_together_and_always_the_same(db):
    records = [
        SpeciesRecord(scientific_name="Rana toy", names=(("en", "Frog"), ("de", "Frosch"))),
        SpeciesRecord(scientific_name="Rana toy", names=(("en", "Toad"), ("en", "Frog"))),
    ]
    species_upsert(records=records)
    before = list(SpeciesName.objects.order_by("pk").values())
    assert names_by_language("Rana toy") == {
        "": ["Rana toy"],
        "en": ["Frog", "Toad"],
        "de": ["Frosch"],
    }
    species_upsert(records=records)
    assert list(SpeciesName.objects.order_by("pk").values()) == before


def test_search_texts_have_no_case_and_no_accents(db):
    names = (("de", "Großer Ölkäfer"), ("pl", "Łoś"), ("da", "Ærfugl"))
    species_create(record=SpeciesRecord(scientific_name="Meloe toy", names=names))
    texts = dict(SpeciesName.objects.exclude(language="").values_list("language", "search_text"))
    assert texts == {"de": "grosser olkafer", "pl": "los", "da": "aerfugl"}


def test_english_is_the_common_name_then_others(animals, db):
    assert animals["Ursus arctos"].common_name == "Brown Bear"
    german = species_create(record=SpeciesRecord(scientific_name="X y", names=(("de", "Ding"),)))
    assert german.common_name == "Ding"
    assert species_create(record=SpeciesRecord(scientific_name="X z")).common_name == ""


def test_species_are_counted_with_their_images(animals):
    bear = animals["Ursus arctos"]
    for number in (1, 2):
        image_row(number, bear)
    rows = {s.scientific_name: s.image_count for s in with_image_counts(species_by_name())}
    assert rows["Ursus arctos"] == 2
    assert rows["Danaus plexippus"] == 0
    assert [s.scientific_name for s in species_by_name("bear")] == [
        "Ursus arctos",
        "Ursus maritimus",
    ]
    size = corpus_counts()
    assert (size.images, size.species, size.families) == (2, 5, 3)
