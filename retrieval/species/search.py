"""Species search: by parts of names first, then by names with typos."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from retrieval.corpus.models import Species
from retrieval.species.likeness import likeness, swaps_of, typos_allowed, words_of

# Trigram similarity of a typed word, or of all of them, to the nearest part of a name: low enough
# that a word of five letters with one typo is among those that are then compared by letters.
SIMILAR = 0.3
COMPARED = 400
SHORT = 6
MOST_WORDS = 8
# Names that are similar to only some of the typed words, if none is similar to all.
HALF_LIKE = 0.6
# How much less similar than the best a name may be.
BESIDE = 0.2

# Most names contain any shorter text somewhere.
SHORTEST_PART = 3

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

# The names worth comparing letter by letter; <% and LIKE use the trigram index.
_ALIKE = """
SELECT species_id, name, language, search_text, word_similarity(%(text)s, search_text)
FROM retrieval_speciesname
WHERE {condition}
ORDER BY search_text LIKE ANY(%(patterns)s) DESC, 5 DESC, length(name), name, species_id
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
    then names that contain it. If no word begins with it, names follow whose words are similar to
    the typed ones, in any order and with typos. Case and accents do not matter. Each species comes
    once, with `matched_name` and `matched_language` ("" for the scientific name).
    """
    text = searchable([text])[text]
    if not text:
        return []
    found, begins = _with_part(text, limit)
    if not begins:
        ids = {match.species_id for match in found}
        found += [match for match in _alike(text) if match.species_id not in ids]
        found = found[:limit]
    known = Species.objects.prefetch_related("names").in_bulk([one.species_id for one in found])
    species = []
    for match in found:
        one = known[match.species_id]
        one.matched_name, one.matched_language = match.name, match.language  # type: ignore[attr-defined]
        species.append(one)
    return species


def searchable(texts: Iterable[str]) -> dict[str, str]:
    """Return each text in the form of `SpeciesName.search_text`; blank ones become empty."""
    clean = {text: " ".join(text.replace("\0", "").split()) for text in texts}
    if not clean:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t, lower(unaccent(t)) FROM unnest(%s::text[]) AS t", [list(clean.values())]
        )
        forms = dict(cursor.fetchall())
    return {text: forms[value] for text, value in clean.items()}


def like_pattern(text: str) -> str:
    """Escape a text for use in a pattern of LIKE."""
    return text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")


@contextmanager
def trigram_search(*, index_only: bool = False) -> Iterator[Any]:
    """Yield a cursor for which <% is true from the similarity SIMILAR on.

    With `index_only` no table is read whole: PostgreSQL underestimates the cost of <% and reads
    40,000 names in 200 ms, where the index answers in 20.
    """
    settings = {"pg_trgm.word_similarity_threshold": str(SIMILAR)}
    if index_only:
        settings["enable_seqscan"] = "off"
    # The settings last until the end of the outermost transaction, which may not be this one.
    with transaction.atomic(), connection.cursor() as cursor:
        for name, value in settings.items():
            cursor.execute("SELECT set_config(%s, %s, true)", [name, value])
        yield cursor
        for name in settings:
            cursor.execute(f"SET LOCAL {name} TO DEFAULT")


def _with_part(text: str, limit: int) -> tuple[list[_Match], bool]:
    """Return the names that contain the text, and whether some word begins with it."""
    pattern = like_pattern(text)
    start, word = f"{pattern}%", f"% {pattern}%"
    part = f"%{pattern}%" if len(text) >= SHORTEST_PART else start
    with connection.cursor() as cursor:
        cursor.execute(
            _PARTS, {"text": text, "start": start, "word": word, "part": part, "limit": limit}
        )
        rows = cursor.fetchall()
    return [_Match(*row[:3]) for row in rows], bool(rows) and rows[0][3] < 3


def _alike(text: str) -> list[_Match]:
    words = words_of(text)[:MOST_WORDS]
    if not words:
        return []
    arguments: dict[str, Any] = {"text": text, "compared": COMPARED, "patterns": []}
    conditions = []
    for number, word in enumerate(words):
        options = []
        if word.isascii():
            arguments[f"word{number}"] = word
            options.append(f"%(word{number})s <%% search_text")
        patterns = likely_patterns(word)
        if patterns:
            arguments[f"patterns{number}"] = patterns
            arguments["patterns"] += patterns
            options.append(f"search_text LIKE ANY(%(patterns{number})s)")
        conditions.append(f"({' OR '.join(options)})")
    condition = " AND ".join(conditions)
    if text.isascii():
        condition = f"%(text)s <%% search_text OR {condition}"
    # Letters without trigrams are not in the index, so for them the table is faster.
    with trigram_search(index_only=text.isascii()) as cursor:
        cursor.execute(_ALIKE.format(condition=condition), arguments)
        rows = cursor.fetchall()
    return _best_by_letters(text, rows)


def likely_patterns(word: str) -> list[str]:
    """Return patterns of LIKE for names that a search by trigrams misses when a word has a typo.

    Swapped letters change most trigrams of a short word, so each swap is undone. A database may
    make no trigrams of letters beyond ASCII, so each half is searched: one typo leaves the other.
    """
    if not word.isascii():
        half = len(word) // 2 if len(word) > SHORTEST_PART else len(word)
        return [f"%{like_pattern(part)}%" for part in (word[:half], word[half:]) if part]
    if typos_allowed(len(word)) and len(word) <= SHORT:
        return [f"%{like_pattern(swap)}%" for swap in swaps_of(word)]
    return []


def _best_by_letters(text: str, rows: list[tuple[int, str, str, str, float]]) -> list[_Match]:
    """Return each species' most similar name, the most similar first."""
    scored = []
    for species_id, name, language, search_text, similarity in rows:
        whole, score = likeness(text, search_text)
        if whole or score >= HALF_LIKE:
            match = _Match(species_id, name, language)
            scored.append(((not whole, -score, -similarity, len(name), name, species_id), match))
    scored.sort(key=lambda pair: pair[0])
    best: dict[int, _Match] = {}
    for key, match in scored:
        if key[0] == scored[0][0][0] and key[1] <= scored[0][0][1] + BESIDE:
            best.setdefault(match.species_id, match)
    return list(best.values())
