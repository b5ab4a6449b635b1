import pytest
from django.utils import timezone

from retrieval.corpus.models import ImageWithdrawal
from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert
from retrieval.species.groups import (
    GroupKind,
    SpeciesGroup,
    group_species,
    groups_of,
    groups_search,
)
from retrieval.species.selectors import (
    names_resolve,
    with_picker_fields,
)
from tests.retrieval.making import image_row

pytestmark = pytest.mark.django_db

GENUS, FAMILY, LOOKALIKE = GroupKind.GENUS, GroupKind.FAMILY, GroupKind.LOOKALIKE
BEARS = SpeciesGroup(GENUS, "Ursus", 2)
BEAR_FAMILY = SpeciesGroup(FAMILY, "Ursidae", 2)
ORANGE = SpeciesGroup(LOOKALIKE, "orange and black butterflies", 2)


def withdraw(image, by):
    ImageWithdrawal.objects.create(image=image, withdrawn_by=by, withdrawn_at=timezone.now())


@pytest.fixture
def pictured(animals, admin):
    """Images 1 (withdrawn) to 3 of the brown bear and 4 of the polar bear."""
    brown, polar = animals["Ursus arctos"], animals["Ursus maritimus"]
    withdraw(image_row(1, brown), admin)
    image_row(3, brown)
    image_row(2, brown)
    image_row(4, polar)
    return animals


def found(text):
    return [(g.kind, g.name, g.species_count, g.image_count) for g in groups_search(text, limit=8)]


@pytest.mark.parametrize("text", ["ursus", "URSUS", "urs", "usrus", "urssus", "ürsus"])
def test_groups_are_found_by_their_beginning_and_with_slips(pictured, text):
    assert (GENUS, "Ursus", 2, 3) in found(text)


def test_a_look_alike_group_is_found_by_any_of_its_words(pictured):
    expected = [(LOOKALIKE, "orange and black butterflies", 2, 0)]
    assert found("butterfl") == found("black") == found("butterflies orange") == expected
    assert found("xyzzy") == found("") == found("%") == []


def test_best_groups_come_first_and_no_more_than_asked(db):
    species_upsert(
        records=[
            SpeciesRecord(scientific_name=f"{genus} {n}", genus=genus)
            for genus in ("Rana", "Ranata", "Ranoides")
            for n in ("a", "b")
        ]
    )
    assert [g.name for g in groups_search("rana", limit=8)] == ["Rana", "Ranata"]
    assert [g.name for g in groups_search("ran", limit=2)] == ["Rana", "Ranata"]


def test_each_species_knows_the_groups_in_which_there_are_others(animals):
    bear, monarch, cardinal = (
        animals[name] for name in ("Ursus arctos", "Danaus plexippus", "Cardinalis cardinalis")
    )
    groups = groups_of([bear, monarch, cardinal])
    assert groups[bear.pk] == [BEARS, BEAR_FAMILY]
    assert groups[monarch.pk] == [SpeciesGroup(FAMILY, "Nymphalidae", 2), ORANGE]
    assert groups[cardinal.pk] == []
    assert groups_of([]) == {}


def test_all_species_of_groups(animals):
    def names(*groups):
        return [species.scientific_name for species in group_species(groups)]

    assert names((GENUS, "Ursus")) == ["Ursus arctos", "Ursus maritimus"]
    assert names((GENUS, "Danaus"), (FAMILY, "Cardinalidae")) == [
        "Cardinalis cardinalis",
        "Danaus plexippus",
    ]
    assert names((FAMILY, "Ursus")) == names((GENUS, "")) == names() == []


def test_what_a_person_chooses_species_by(pictured):
    brown, polar, monarch = with_picker_fields(
        [pictured[n] for n in ("Ursus arctos", "Ursus maritimus", "Danaus plexippus")]
    )
    assert (brown.image_count, brown.first_image.pk) == (2, 2)
    assert (polar.image_count, polar.first_image.pk) == (1, 4)
    assert (monarch.image_count, monarch.first_image) == (0, None)
    assert brown.groups == polar.groups == [BEARS, BEAR_FAMILY]


def test_names_tell_which_groups_they_meant(animals):
    resolved = names_resolve(["ursus", "Ursus arctos", "Monarch", "Nessie", "ursidae", "Danaus"])
    assert [s.scientific_name for s in resolved.species] == [
        "Danaus plexippus",
        "Ursus arctos",
        "Ursus maritimus",
    ]
    assert resolved.missing == ["Nessie"]
    assert resolved.groups == [BEARS, BEAR_FAMILY, SpeciesGroup(GENUS, "Danaus", 1)]


@pytest.mark.parametrize(
    "name",
    [
        "Ursus arctos Linnaeus",
        "Ursus arctos Linnaeus, 1758",
        "Ursus arctos (Linnaeus",
        "Ursus  arctos L.",
    ],
)
def test_a_name_may_be_followed_by_who_gave_it(animals, name):
    assert names_resolve([name]).missing == [name]
    resolved = names_resolve([name], authors=True)
    assert ([s.scientific_name for s in resolved.species], resolved.missing) == (
        ["Ursus arctos"],
        [],
    )


def test_other_words_after_a_name_are_no_authors(animals):
    names = ["Ursus arctos horribilis", "brown bear Linnaeus", "Ursus Linnaeus"]
    assert names_resolve(names, authors=True).missing == names
