"""How like a typed word or name is to a stored one."""

from __future__ import annotations

import pytest

from retrieval.species.likeness import likeness, swaps_of, typos_allowed, word_likeness, words_of

pytestmark = pytest.mark.pure


def test_words_are_runs_of_letters_and_digits() -> None:
    assert words_of("bee-eater (s. aluco) 2_x") == ["bee", "eater", "s", "aluco", "2", "x"]
    assert words_of("%_\\ -") == []


def test_every_swap_of_neighbors_that_makes_another_word() -> None:
    assert [list(swaps_of(word)) for word in ("owl", "bee", "a")] == [["wol", "olw"], ["ebe"], []]


def test_longer_words_may_hold_more_slips() -> None:
    assert [typos_allowed(length) for length in (2, 3, 4, 5, 8, 9, 20)] == [0, 1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("typed", "word", "like"),
    [
        ("tawny", "tawny", 1),
        ("taw", "tawny", 0.98),
        ("tawmy", "tawny", 0.8),
        ("tawn", "tauny", 0.73),
        ("stirx", "strix", 0.85),
        ("stirx", "strixus", 0.83),
        ("hoper", "hopper", 0.8),
        ("marrsh", "marsh", 1 - 1 / 6),
        ("olw", "owl", 0.75),
        ("olw", "old", 1 - 1 / 3),
        ("ow", "wo", 0),
        ("marsh", "mouse", 0),
        ("woodpecker", "wood", 0),
    ],
)
def test_how_like_a_word_is(typed: str, word: str, like: float) -> None:
    assert word_likeness(typed, word) == pytest.approx(like)


@pytest.mark.parametrize(
    ("typed", "name", "all_words", "score"),
    [
        ("owl tawny", "tawny owl", True, 1),
        ("stirx alcuo", "strix aluco", True, 0.85),
        ("tawny owl", "tawny frogmouth", False, 5 / 8),
        ("wood pecker", "woodpecker", True, 1),
        ("woodpecker", "wood pecker", True, 1),
        ("bee eater", "bee-eater", True, 1),
        ("owl", "", False, 0),
        ("", "owl", False, 0),
    ],
)
def test_how_like_a_name_is(typed: str, name: str, all_words: bool, score: float) -> None:
    whole, found = likeness(typed, name)
    assert (whole, round(found, 6)) == (all_words, round(score, 6))
