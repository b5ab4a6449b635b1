"""Species by id, and by the names in a file, a form or a pasted list."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from django.db.models import QuerySet

from core.ids import id_of
from core.sql import fetch_all
from retrieval.corpus.counts import image_counts
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.species.groups import SpeciesGroup, groups_by_form, groups_of
from retrieval.species.search import searchable, species_search

# “Strix aluco Linnaeus”, and “Strix aluco (Linnaeus” of a list that was split at its commas.
_WITH_AUTHOR = re.compile(r"([A-Z][a-z-]+(?: [a-z-]+){1,2}) [A-Z(].*")


@dataclass
class Resolved:
    """The species and groups that a list of names means."""

    species: list[Species] = field(default_factory=list)
    """By scientific name, with their names."""
    missing: list[str | int] = field(default_factory=list)
    """Names that were not found, as given, in their order."""
    groups: list[SpeciesGroup] = field(default_factory=list)
    """The groups among the names, in the order of the names."""


def species_by_ids(ids: Sequence[int]) -> list[Species]:
    """Return the species with these ids, in this order, with their names; others are left out."""
    by_id = Species.objects.prefetch_related("names").in_bulk(list(ids))
    return [by_id[pk] for pk in dict.fromkeys(ids) if pk in by_id]


def species_resolve(names: Iterable[str | int]) -> tuple[list[Species], list[str | int]]:
    """Return the species with these names, ordered by scientific name, and the names not found.

    A name is an id, a scientific name, a vernacular name in any language, or a genus, family or
    look-alike group, which means all its species. A scientific name takes precedence; case and
    accents do not matter.
    """
    resolved = names_resolve(names)
    return resolved.species, resolved.missing


def names_resolve(names: Iterable[str | int], *, authors: bool = False) -> Resolved:
    """Resolve names as `species_resolve` does, in a fixed number of queries.

    With `authors`, a scientific name may be followed by its author: “Strix aluco Linnaeus”.
    """
    given = list(dict.fromkeys(names))
    ids = {name: int(name) for name in given if _is_id(name)}
    known_ids = set(Species.objects.filter(pk__in=ids.values()).values_list("pk", flat=True))
    texts: dict[str | int, list[str]] = {
        name: [name, *_without_author(name)] if authors else [name]
        for name in given
        if isinstance(name, str)
    }
    forms = searchable({text for variants in texts.values() for text in variants})
    lookup = _Lookup({form for form in forms.values() if form})
    species_ids: set[int] = set()
    groups: dict[SpeciesGroup, None] = {}
    resolved = Resolved()
    for name in given:
        ids_of_name: set[int] = set()
        if ids.get(name) in known_ids:
            ids_of_name = {ids[name]}
        for text in texts.get(name, []):
            if not ids_of_name:
                ids_of_name, groups_of_name = lookup.meaning(forms[text])
                groups |= dict.fromkeys(groups_of_name)
        species_ids |= ids_of_name
        if not ids_of_name:
            resolved.missing.append(name)
    species = Species.objects.filter(pk__in=species_ids).prefetch_related("names")
    resolved.species = list(species.order_by("scientific_name"))
    resolved.groups = list(groups)
    return resolved


def with_picker_fields(species: Sequence[Species]) -> list[Species]:
    """Add to species what the species picker shows, in a fixed number of queries.

    Each gets `image_count` (without withdrawn images), `first_image` (or None) and `groups` (those
    of two or more species).
    """
    ids = [each.pk for each in species]
    counts, first = image_counts(ids), first_image_ids(ids)
    images = Image.objects.in_bulk([pk for image_ids in first.values() for pk in image_ids])
    groups = groups_of(species)
    for each in species:
        each.image_count, each.groups = counts.get(each.pk, 0), groups[each.pk]  # type: ignore[attr-defined]
        each.first_image = next((images.get(pk) for pk in first[each.pk]), None)  # type: ignore[attr-defined]
    return list(species)


# Ordered by both columns of the index of species, so that each look-up reads just the first few.
_FIRST = f"""
SELECT s.id, i.id FROM unnest(%s::bigint[]) s (id) CROSS JOIN LATERAL (
    SELECT id FROM {Image._meta.db_table} i
     WHERE i.species_id = s.id
       AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                        WHERE w.image_id = i.id AND w.restored_at IS NULL)
     ORDER BY i.species_id, i.id LIMIT %s
) i
ORDER BY i.id
"""


def first_image_ids(species_ids: Iterable[int], *, each: int = 1) -> dict[int, list[int]]:
    """Return for every species the lowest ids of its images, at most `each`, without withdrawn
    ones. One SQL query.
    """
    image_ids: dict[int, list[int]] = {pk: [] for pk in species_ids}
    for species_id, image_id in fetch_all(_FIRST, [list(image_ids), each]):
        image_ids[species_id].append(image_id)
    return image_ids


def species_by_name(text: str = "") -> QuerySet[Species]:
    """Return all species by name, or those whose names match `text`."""
    species = Species.objects.prefetch_related("names").order_by("scientific_name")
    if text:
        species = species.filter(pk__in=[s.pk for s in species_search(text, limit=200)])
    return species


def with_image_counts(species: Iterable[Species]) -> list[Species]:
    """Add `image_count` (without withdrawn images) to species. One SQL query beside their own."""
    listed = list(species)
    counts = image_counts([each.pk for each in listed])
    for each in listed:
        each.image_count = counts.get(each.pk, 0)  # type: ignore[attr-defined]
    return listed


class _Lookup:
    """Species and groups by names in their searchable form."""

    def __init__(self, forms: set[str]) -> None:
        self.scientific: dict[str, set[int]] = {}
        self.vernacular: dict[str, set[int]] = {}
        rows = Species.objects.filter(names__search_text__in=forms).values_list(
            "names__search_text", "names__language", "pk"
        )
        for form, language, pk in rows:
            names = self.vernacular if language else self.scientific
            names.setdefault(form, set()).add(pk)
        self.groups = groups_by_form(forms)

    def meaning(self, form: str) -> tuple[set[int], list[SpeciesGroup]]:
        """Return the ids of the species that a name means, and the groups that it names."""
        if form in self.scientific:
            return self.scientific[form], []
        groups = self.groups.get(form, [])
        species = self.vernacular.get(form, set()).union(*(ids for _, ids in groups))
        return species, [group for group, _ in groups]


def _without_author(name: str) -> list[str]:
    match = _WITH_AUTHOR.fullmatch(" ".join(name.split()))
    return [match[1]] if match else []


def _is_id(name: str | int) -> bool:
    return 0 <= name < 2**63 if isinstance(name, int) else id_of(name) is not None
