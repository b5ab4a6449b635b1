"""How similar a name is to what a person typed, with typos and words in another order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from rapidfuzz.distance import OSA, Levenshtein

_WORD = re.compile(r"[^\W_]+")
# A word that continues after the typed letters scores this much less than one that ends there.
_CONTINUES = 0.02
# Two letters in the wrong order are a likelier typo than a wrong letter.
_SWAP = 0.75


def words_of(text: str) -> list[str]:
    """The words of a text: runs of letters and digits."""
    return _WORD.findall(text)


def swaps_of(word: str) -> Iterator[str]:
    """The word with each two neighboring letters swapped, where that makes another word."""
    for at in range(len(word) - 1):
        if word[at] != word[at + 1]:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def typos_allowed(length: int) -> int:
    """How many typos are allowed in a typed word of this many letters."""
    return 0 if length < 3 else 1 if length < 5 else 2 if length < 9 else 3


@lru_cache(maxsize=20_000)
def word_likeness(typed: str, word: str) -> float:
    """The similarity of `word`, or its beginning, to `typed`: 1 for the same word, a little less
    for one that continues, less for each typo, 0 for more than `typos_allowed`.

    A typo is a letter left out, inserted, replaced, or swapped with its neighbor.
    """
    if word.startswith(typed):
        return 1.0 if word == typed else 1 - _CONTINUES
    most = typos_allowed(len(typed))
    if not most or len(typed) > len(word) + most:
        return 0.0
    lengths = range(max(len(typed) - most, 0), min(len(typed) + most, len(word)) + 1)
    typos = {length: _typos(typed, word[:length]) for length in lengths}
    fewest = min(typos.values())
    if fewest > most:
        return 0.0
    return 1 - fewest / len(typed) - (0 if typos.get(len(word)) == fewest else _CONTINUES)


def _typos(typed: str, word: str) -> float:
    """The typos between two words; a swap is one in OSA's distance and two in Levenshtein's."""
    typos = OSA.distance(typed, word)
    return typos - (1 - _SWAP) * (Levenshtein.distance(typed, word) - typos)


def likeness(typed: str, name: str) -> tuple[bool, float]:
    """Whether each typed word is like a word of the name, and the similarity of all (0..1).

    Both texts are in lower case without accents. Words weigh by their length, in any order. Words
    written apart or together are the same.
    """
    words, known = words_of(typed), words_of(name)
    if not words or not known:
        return False, 0.0
    found = [max(word_likeness(word, other) for other in known) for word in words]
    letters = sum(map(len, words))
    score = sum(len(word) * like for word, like in zip(words, found, strict=True)) / letters
    together = word_likeness("".join(words), "".join(known))
    return all(found) or together > 0, max(score, together)
