import pytest
from django.db import connection

from retrieval.importing.records import SpeciesRecord
from retrieval.importing.species import species_upsert
from retrieval.species.search import species_search

pytestmark = pytest.mark.django_db


def found(text, limit=20):
    return [s.scientific_name for s in species_search(text, limit)]


def test_whole_names_go_before_beginnings_and_beginnings_before_likeness(db):
    species_upsert(
        records=[
            SpeciesRecord(scientific_name="Aa longa", names=(("en", "Bee-eater"),)),
            SpeciesRecord(scientific_name="Ab longa", names=(("en", "Honey Bee"),)),
            SpeciesRecord(scientific_name="Ac longa", names=(("en", "Bee"),)),
            SpeciesRecord(scientific_name="Ad longa", names=(("en", "Honey beetle"),)),
        ]
    )
    assert found("bee") == ["Ac longa", "Aa longa", "Ab longa", "Ad longa"]


@pytest.mark.parametrize("text", ["", "   ", "\0", "xyzzy", "%", "_", "\\"])
def test_what_is_like_nothing_finds_nothing(animals, text):
    assert found(text) == []


OWLS = {
    "Strix aluco": (("en", "Tawny Owl"), ("de", "Waldkauz"), ("ru", "Серая неясыть")),
    "Strix uralensis": (("en", "Ural Owl"), ("de", "Habichtskauz")),
    "Athene noctua": (("en", "Little Owl"), ("fr", "Chevêche d’Athéna")),
    "Paludisaltus communis": (("en", "Marsh Hopper"), ("de", "Moorhüpfer")),
    "Equus ferus": (("en", "Wild Horse"), ("en", "Long-tailed Woodpecker Horse")),
}


@pytest.fixture
def owls(db):
    return species_upsert(
        records=[SpeciesRecord(scientific_name=name, names=names) for name, names in OWLS.items()]
    )


@pytest.mark.parametrize(
    ("text", "first", "by", "language"),
    [
        ("owl tawny", "Strix aluco", "Tawny Owl", "en"),
        ("stirx aluco", "Strix aluco", "Strix aluco", ""),
        ("aluco strix", "Strix aluco", "Strix aluco", ""),
        ("aluco, Strix", "Strix aluco", "Strix aluco", ""),
        ("alcuo stirx", "Strix aluco", "Strix aluco", ""),
        ("S. aluco", "Strix aluco", "Strix aluco", ""),
        ("hoper marsh", "Paludisaltus communis", "Marsh Hopper", "en"),
        ("hoppper mrash", "Paludisaltus communis", "Marsh Hopper", "en"),
        ("hupfer", "Paludisaltus communis", "Moorhüpfer", "de"),
        ("MOORHÜPFER", "Paludisaltus communis", "Moorhüpfer", "de"),
        ("moorhufper", "Paludisaltus communis", "Moorhüpfer", "de"),
        ("cheveche d'athena", "Athene noctua", "Chevêche d’Athéna", "fr"),
        ("Athéna chevèche", "Athene noctua", "Chevêche d’Athéna", "fr"),
        ("неясыть", "Strix aluco", "Серая неясыть", "ru"),
        ("неясыть серая", "Strix aluco", "Серая неясыть", "ru"),
        ("неясить серая", "Strix aluco", "Серая неясыть", "ru"),
        ("litle olw", "Athene noctua", "Little Owl", "en"),
        ("hrose", "Equus ferus", "Wild Horse", "en"),
        ("tailed long wood pecker", "Equus ferus", "Long-tailed Woodpecker Horse", "en"),
        ("the tawny owl", "Strix aluco", "Tawny Owl", "en"),
    ],
)
def test_words_in_any_order_each_with_a_slip(owls, text, first, by, language):
    best = species_search(text)[0]
    assert (best.scientific_name, best.matched_name) == (first, by)
    assert best.matched_language == language


def test_what_is_less_like_is_left_out_beside_what_is_alike(owls):
    assert found("owl tawny") == ["Strix aluco"]
    assert found("uralensis stirx") == ["Strix uralensis"]


def test_names_that_hold_the_text_follow_those_that_begin_so(db):
    names = ("Kauz", "Kauzing", "Der Kauz", "Waldkauz", "Kazu")
    species_upsert(
        records=[
            SpeciesRecord(scientific_name=f"Species {n}", names=(("de", name),))
            for n, name in enumerate(names)
        ]
    )
    assert [s.matched_name for s in species_search("kauz")] == list(names[:4])
    assert [s.matched_name for s in species_search("auz")] == [
        "Kauz",
        "Der Kauz",
        "Waldkauz",
        "Kauzing",
    ]


def test_all_words_are_searched_though_only_the_first_eight_choose(owls):
    assert sorted(found(" ".join(["owl"] * 12))) == [
        "Athene noctua",
        "Strix aluco",
        "Strix uralensis",
    ]
    assert found("x " * 90) == []


def test_the_search_leaves_the_connection_as_it_was(owls):
    def settings():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('enable_seqscan'),"
                " current_setting('pg_trgm.word_similarity_threshold')"
            )
            return cursor.fetchone()

    species_search("owl")
    before = settings()
    species_search("stirx alcuo")
    assert settings() == before
    assert before[0] == "on"
