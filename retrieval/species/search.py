"""Species search: by parts of names first, then by names with typos."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from django.db import connection, transaction
from rapidfuzz.distance import OSA
from rapidfuzz.utils import default_process

from core.sql import fetch_all
from retrieval.corpus.models import Species

#: Trigram similarity of a text to the nearest part of a name from which on the two are compared:
#: low enough for a word of five letters with two swapped.
SIMILAR: Final = 0.2
#: Names that are compared, those of the highest similarity.
COMPARED: Final = 1000
#: The least likeness of a name to the text, and how much less than the best it may be.
LEAST_LIKENESS: Final = 0.65
BELOW_BEST: Final = 0.15

# Most names contain any shorter text somewhere.
SHORTEST_PART: Final = 3

# One row per species, with its best name: the whole name, then a name that begins so, then one with
# a word that begins so, then one that holds the text within a word (“hüpfer” in “Moorhüpfer”). LIKE
# uses the trigram index.
_PARTS = """
SELECT species_id, name, language, class FROM (
    SELECT DISTINCT ON (species_id) species_id, name, language, class, similarity
    FROM (
        SELECT species_id, name, language,
            CASE WHEN search_text = %(text)s THEN 0
                 WHEN search_text LIKE %(start)s THEN 1
                 WHEN search_text LIKE %(word)s THEN 2
                 ELSE 3 END AS class,
            word_similarity(%(text)s, search_text) AS similarity
        FROM retrieval_speciesname
        WHERE search_text LIKE %(start)s OR search_text LIKE %(word)s OR search_text LIKE %(part)s
    ) found
    ORDER BY species_id, class, similarity DESC, name
) best
ORDER BY class, similarity DESC, length(name), name, species_id LIMIT %(limit)s
"""

# The names worth comparing. A database may make no trigrams of letters beyond ASCII, so for a text
# with such they are those that hold a half of a word: one typo leaves the other half.
_SIMILAR = """
SELECT species_id, name, language, search_text
FROM retrieval_speciesname
WHERE {condition}
ORDER BY word_similarity(%(text)s, search_text) DESC, length(name), name, species_id
LIMIT %(compared)s
"""


@dataclass(frozen=True, slots=True)
class _Match:
    species_id: int
    name: str
    language: str


def species_search(text: str, limit: int = 20) -> list[Species]:
    """Return species with a scientific or vernacular name, in any language, that matches `text`.

    Whole names come first, then names that begin with the text, then names with a word that does,
    then names that contain it. If no word begins with it, names follow that are like it but for
    typos or the order of words. Case and accents do not matter. Each species comes once, with
    `matched_name` and `matched_language` ("" for the scientific name).
    """
    text = searchable([text])[text]
    if not text:
        return []
    matches, begins = _names_with_part(text, limit)
    if not begins:
        ids = {match.species_id for match in matches}
        matches += [match for match in _similar_names(text) if match.species_id not in ids]
        matches = matches[:limit]
    by_id = Species.objects.prefetch_related("names").in_bulk(
        [match.species_id for match in matches]
    )
    for match in matches:
        species = by_id[match.species_id]
        species.matched_name, species.matched_language = match.name, match.language  # type: ignore[attr-defined]
    return [by_id[match.species_id] for match in matches]


def searchable(texts: Iterable[str]) -> dict[str, str]:
    """Return each text in the form of `SpeciesName.search_text`; blank ones become empty."""
    clean = {text: " ".join(text.replace("\0", "").split()) for text in texts}
    if not clean:
        return {}
    rows = fetch_all("SELECT t, lower(unaccent(t)) FROM unnest(%s::text[]) t", [[*clean.values()]])
    forms = dict(rows)
    return {text: forms[value] for text, value in clean.items()}


def like_pattern(text: str) -> str:
    """Escape a text for use in a pattern of LIKE."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


def most_alike(text: str, names: list[str]) -> list[int]:
    """Return the indexes of the names that are like `text` but for typos and the order of words;
    the most alike comes first, of equals the earlier.
    """
    scores = [likeness(text, name) for name in names]
    least = max(LEAST_LIKENESS, max(scores, default=0) - BELOW_BEST)
    indexes = [index for index, score in enumerate(scores) if score >= least]
    return sorted(indexes, key=lambda index: -scores[index])


def likeness(text: str, name: str) -> float:
    """Return how like a name is to a text, from 0 to 1: its words to the typed ones, in any order,
    or all of them written together. Swapped letters are one typo.
    """
    words, others = default_process(text).split(), default_process(name).split()
    alike = OSA.normalized_similarity
    if not words or not others:
        return 0.0
    together = alike("".join(words), "".join(others))
    apart = sum(len(word) * max(alike(word, other) for other in others) for word in words)
    return max(together, apart / sum(map(len, words)))


def _names_with_part(text: str, limit: int) -> tuple[list[_Match], bool]:
    """Return the names that contain the text, and whether some word begins with it."""
    pattern = like_pattern(text)
    start, word = f"{pattern}%", f"% {pattern}%"
    part = f"%{pattern}%" if len(text) >= SHORTEST_PART else start
    values = {"text": text, "start": start, "word": word, "part": part, "limit": limit}
    rows = fetch_all(_PARTS, values)
    return [_Match(*row[:3]) for row in rows], bool(rows) and rows[0][3] < 3


def _similar_names(text: str) -> list[_Match]:
    """Return for each species with names like the text the one most like it."""
    condition = "%(text)s <%% search_text" if text.isascii() else "search_text LIKE ANY(%(halves)s)"
    halves = [
        f"%{like_pattern(half)}%"
        for word in text.split()
        for half in (word[: len(word) // 2], word[len(word) // 2 :])
        if half
    ]
    values = {"text": text, "halves": halves, "compared": COMPARED}
    with transaction.atomic(), connection.cursor() as cursor:
        # PostgreSQL underestimates the cost of <% and reads 40,000 names in 200 ms, where the index
        # answers in 20. The settings last until the end of the outermost transaction, unless reset.
        cursor.execute(
            "SELECT set_config('pg_trgm.word_similarity_threshold', %s, true),"
            " set_config('enable_seqscan', 'off', true)",
            [str(SIMILAR)],
        )
        rows = fetch_all(_SIMILAR.format(condition=condition), values)
        cursor.execute(
            "SET LOCAL pg_trgm.word_similarity_threshold TO DEFAULT;"
            "SET LOCAL enable_seqscan TO DEFAULT"
        )
    best: dict[int, _Match] = {}
    for index in most_alike(text, [row[3] for row in rows]):
        best.setdefault(rows[index][0], _Match(*rows[index][:3]))
    return list(best.values())
