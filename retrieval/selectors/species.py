"""Finding species: by what a person types, and by the names that a file or a form gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection, transaction
from django.db.models import Count, F, Func, QuerySet, TextField
from django.db.models.functions import Lower

from retrieval.models import Species

# Trigram similarity of the typed text to the nearest stretch of a name. Where some name begins with
# the text there is no slip of the keys to forgive, and only near names are worth showing besides.
SIMILAR = 0.35
NEAR = 0.7
_ID_DIGITS = len(str(2**63))

# One row per species, with its best name: the whole name, then a name that begins so, then one with
# a word that begins so, then by trigrams. Both LIKE and <% use the trigram index.
_SEARCH = """
SELECT DISTINCT ON (species_id) species_id, name, language, class, similarity
FROM (
    SELECT species_id, name, language,
        CASE WHEN search_text = %(text)s THEN 0
             WHEN search_text LIKE %(start)s THEN 1
             WHEN search_text LIKE %(word)s THEN 2
             ELSE 3 END AS class,
        word_similarity(%(text)s, search_text) AS similarity
    FROM retrieval_speciesname
    WHERE search_text LIKE %(start)s OR search_text LIKE %(word)s OR %(text)s <%% search_text
) found
ORDER BY species_id, class, similarity DESC, name
"""


def species_search(text: str, limit: int = 20) -> list[Species]:
    """Return the species whose scientific or vernacular name, in any language, is like `text`.

    Whole names come first, then names and then words that begin so, then names with a slip of the
    keys. Case and accents do not matter. Each species comes once and carries `matched_name` and
    `matched_language` ("" for the scientific name).
    """
    text = _searchable([text])[text]
    if not text:
        return []
    pattern = text.replace("\\", r"\\").replace("%", r"\%").replace("_", r"\_")
    # The setting lasts for the transaction in which the query is evaluated.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('pg_trgm.word_similarity_threshold', %s, true)", [str(SIMILAR)]
        )
        cursor.execute(
            f"SELECT species_id, name, language FROM ({_SEARCH}) best "
            "WHERE class < 3 OR similarity >= %(near)s "
            "OR NOT EXISTS (SELECT FROM retrieval_speciesname WHERE search_text LIKE %(start)s) "
            "ORDER BY class, similarity DESC, length(name), name, species_id LIMIT %(limit)s",
            {
                "text": text,
                "start": pattern + "%",
                "word": f"% {pattern}%",
                "limit": limit,
                "near": NEAR,
            },
        )
        rows = cursor.fetchall()
    species = species_by_ids([row[0] for row in rows])
    for found, (_, name, language) in zip(species, rows, strict=True):
        found.matched_name, found.matched_language = name, language  # type: ignore[attr-defined]
    return species


def species_by_ids(ids: Sequence[int]) -> list[Species]:
    """Return the species with these ids, in this order, with their names; others are left out."""
    found = Species.objects.prefetch_related("names").in_bulk(list(ids))
    return [found[pk] for pk in dict.fromkeys(ids) if pk in found]


def species_resolve(names: Iterable[str | int]) -> tuple[list[Species], list[str | int]]:
    """Return the species that the names stand for, by scientific name, and the names not found.

    A name is an id, a scientific name, a vernacular name in any language, or a genus, family or
    look-alike group, which stands for all its species. A scientific name goes before the others;
    case and accents do not matter.
    """
    wanted = list(dict.fromkeys(names))
    ids = {name: int(name) for name in wanted if _is_id(name)}
    texts = _searchable(name for name in wanted if isinstance(name, str))
    known_ids = set(Species.objects.filter(pk__in=ids.values()).values_list("pk", flat=True))
    known_names = _species_ids_by_name(set(filter(None, texts.values())))
    found: set[int] = set()
    missing = []
    for name in wanted:
        meant = known_names.get(texts[name], set()) if isinstance(name, str) else set()
        if ids.get(name) in known_ids:
            meant = {ids[name]}
        found |= meant
        if not meant:
            missing.append(name)
    species = Species.objects.filter(pk__in=found).prefetch_related("names")
    return list(species.order_by("scientific_name")), missing


def species_with_counts(text: str = "") -> QuerySet[Species]:
    """Return species with `image_count`, all by name, or those that are called like `text`."""
    species = Species.objects.prefetch_related("names").annotate(image_count=Count("images"))
    if text:
        species = species.filter(pk__in=[s.pk for s in species_search(text, limit=200)])
    return species.order_by("scientific_name")


def _is_id(name: str | int) -> bool:
    if isinstance(name, str):
        # The length first: Python refuses to read numbers of thousands of digits.
        if len(name) > _ID_DIGITS or not (name.isascii() and name.isdigit()):
            return False
        name = int(name)
    return 0 <= name < 2**63


def _searchable(texts: Iterable[str]) -> dict[str, str]:
    """Return each text as `SpeciesName.search_text` holds names; blank ones stay empty."""
    clean = {text: " ".join(text.replace("\0", "").split()) for text in texts}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t, lower(unaccent(t)) FROM unnest(%s::text[]) AS t", [list(clean.values())]
        )
        forms = dict(cursor.fetchall())
    return {text: forms[value] for text, value in clean.items()}


def _species_ids_by_name(texts: set[str]) -> dict[str, set[int]]:
    """Return the ids of the species that each searchable text stands for."""
    if not texts:
        return {}
    scientific: dict[str, set[int]] = {}
    others: dict[str, set[int]] = {}
    rows = Species.objects.filter(names__search_text__in=texts).values_list(
        "names__search_text", "names__language", "pk"
    )
    for text, language, pk in rows:
        (others if language else scientific).setdefault(text, set()).add(pk)
    for group in ("genus", "family", "lookalike_group"):
        form = Lower(Func(F(group), function="unaccent", output_field=TextField()))
        for text, pk in (
            Species.objects.annotate(form=form).filter(form__in=texts).values_list("form", "pk")
        ):
            others.setdefault(text, set()).add(pk)
    return others | scientific
