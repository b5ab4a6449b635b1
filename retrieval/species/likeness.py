"""How like a name is to what a person typed: slips of the keys, and words in another order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_WORD = re.compile(r"[^\W_]+")
# What a word that goes on after the typed letters counts less than one that ends there.
_GOES_ON = 0.02
# Two letters in the wrong order are a likelier slip than a wrong letter.
_SWAP = 0.75


def words_of(text: str) -> list[str]:
    """Return the words of a text: runs of letters and digits."""
    return _WORD.findall(text)


def swaps_of(word: str) -> Iterator[str]:
    """Yield the word with each two neighbouring letters swapped, where that makes another word."""
    for at in range(len(word) - 1):
        if word[at] != word[at + 1]:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]


def slips_forgiven(length: int) -> int:
    """Return how many slips a typed word of this many letters may hold."""
    return 0 if length < 3 else 1 if length < 5 else 2 if length < 9 else 3


@lru_cache(maxsize=20_000)
def word_likeness(typed: str, word: str) -> float:
    """Return how like `word`, or its beginning, is to `typed`: 1 for the same word, a little less
    for one that goes on, less for each slip, 0 for too many.

    A slip is a letter left out, put in, replaced, or swapped with its neighbour.
    """
    if word.startswith(typed):
        return 1.0 if word == typed else 1 - _GOES_ON
    most = slips_forgiven(len(typed))
    if not most or len(typed) > len(word) + most:
        return 0.0
    slips = _slips_to_beginnings(typed, word[: len(typed) + most + 1])
    fewest = min(slips)
    if fewest > most:
        return 0.0
    ends_there = slips[-1] == fewest and len(word) < len(slips)
    return 1 - fewest / len(typed) - (0 if ends_there else _GOES_ON)


def likeness(typed: str, name: str) -> tuple[bool, float]:
    """Return whether each typed word is like a word of the name, and how like all are (0..1).

    Both texts are in lower case without accents. Words count by their length, in any order. Words
    written apart or together are the same.
    """
    wanted, known = words_of(typed), words_of(name)
    if not wanted or not known:
        return False, 0.0
    found = [max(word_likeness(word, other) for other in known) for word in wanted]
    letters = sum(map(len, wanted))
    score = sum(len(word) * like for word, like in zip(wanted, found, strict=True)) / letters
    together = word_likeness("".join(wanted), "".join(known))
    return all(found) or together > 0, max(score, together)


def _slips_to_beginnings(typed: str, word: str) -> list[float]:
    """Return the slips between `typed` and each beginning of `word`, the empty one first."""
    before: list[float] = []
    last: list[float] = [float(column) for column in range(len(word) + 1)]
    for row, letter in enumerate(typed, start=1):
        line: list[float] = [float(row)]
        for column, other in enumerate(word, start=1):
            slips = min(last[column] + 1, line[-1] + 1, last[column - 1] + (letter != other))
            swapped = row > 1 and column > 1 and letter == word[column - 2]
            if swapped and typed[row - 2] == other:
                slips = min(slips, before[column - 2] + _SWAP)
            line.append(slips)
        before, last = last, line
    return last
