"""Species that are chosen together: genera, families and look-alike groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce
from operator import or_
from typing import Any

from django.db import models
from django.db.models import Count, F, Func, Q, TextField
from django.db.models.functions import Lower

from core.sql import fetch_all
from retrieval.corpus.counts import WITHDRAWN_BY_SPECIES
from retrieval.corpus.models import Species, SpeciesCount
from retrieval.species.search import SIMILAR, like_pattern, most_alike, searchable


class GroupKind(models.TextChoices):
    """What makes species a group."""

    GENUS = "genus", "Genus"
    FAMILY = "family", "Family"
    LOOKALIKE = "lookalike", "Look-alike group"

    @property
    def field(self) -> str:
        """The field of Species that holds the group's name."""
        return "lookalike_group" if self is GroupKind.LOOKALIKE else str(self.value)


@dataclass(frozen=True, slots=True)
class SpeciesGroup:
    """A group of species of the corpus."""

    kind: GroupKind
    name: str
    species_count: int
    image_count: int | None = None
    """Without withdrawn images; None unless it was counted."""


# Every group of two or more species whose name matches the text: whole, at its beginning, at the
# beginning of a word, or by trigrams. There are thousands of names, so no index is needed; OFFSET 0
# makes PostgreSQL compare each name once and not once per species.
_GROUPS = """
SELECT kind, name, size, form, CASE WHEN form = %(text)s THEN 0
    WHEN form LIKE %(start)s THEN 1 WHEN form LIKE %(word)s THEN 2 ELSE 3 END AS class
FROM (SELECT kind, name, size, lower(unaccent(name)) AS form
      FROM (SELECT * FROM ({each}) every OFFSET 0) named OFFSET 0) formed
WHERE form LIKE %(start)s OR form LIKE %(word)s OR word_similarity(%(text)s, form) >= %(similar)s
ORDER BY class, word_similarity(%(text)s, form) DESC, name, kind
LIMIT 100
"""
_EACH = """SELECT '{kind}' AS kind, "{field}" AS name, count(*) AS size FROM retrieval_species
WHERE "{field}" <> '' GROUP BY "{field}" HAVING count(*) > 1"""


def groups_search(text: str, limit: int) -> list[SpeciesGroup]:
    """Return groups of two or more species whose names match `text`, best first, with image counts.

    A name matches if it or one of its words begins with the text. If none does, names that differ
    by typos match.
    """
    text = searchable([text])[text]
    if not text:
        return []
    pattern = like_pattern(text)
    each = " UNION ALL ".join(_EACH.format(kind=k.value, field=k.field) for k in GroupKind)
    texts = {"text": text, "start": f"{pattern}%", "word": f"% {pattern}%", "similar": SIMILAR}
    rows = fetch_all(_GROUPS.format(each=each), texts)
    if rows and rows[0][4] < 3:
        rows = [row for row in rows if row[4] < 3]
    else:
        rows = [rows[index] for index in most_alike(text, [row[3] for row in rows])]
    return groups_with_counts(SpeciesGroup(GroupKind(row[0]), *row[1:3]) for row in rows[:limit])


# Each kind of group has an index of its own.
_COUNTED = f"""
WITH gone AS MATERIALIZED ({WITHDRAWN_BY_SPECIES})
SELECT g.kind, g.name, coalesce(sum(c.images - coalesce(gone.images, 0)), 0)::bigint
  FROM unnest(%(kinds)s, %(names)s) g (kind, name)
 CROSS JOIN LATERAL ({{each}}) s
  JOIN {SpeciesCount._meta.db_table} c ON c.species_id = s.id
  LEFT JOIN gone ON gone.species_id = s.id
 GROUP BY g.kind, g.name
"""
_MEMBERS = """SELECT id FROM retrieval_species
WHERE g.kind = '{kind}' AND "{field}" = g.name"""


def groups_with_counts(groups: Iterable[SpeciesGroup]) -> list[SpeciesGroup]:
    """Return the groups with the number of their images, withdrawn ones left out. One SQL query."""
    listed = list(groups)
    if not listed:
        return []
    each = " UNION ALL ".join(_MEMBERS.format(kind=k.value, field=k.field) for k in GroupKind)
    parameters = {
        "kinds": [str(group.kind) for group in listed],
        "names": [group.name for group in listed],
    }
    counts = fetch_all(_COUNTED.format(each=each), parameters)
    images = {(kind, name): count for kind, name, count in counts}
    return [replace(group, image_count=images.get((group.kind, group.name), 0)) for group in listed]


def groups_of(species: Iterable[Species]) -> dict[int, list[SpeciesGroup]]:
    """Return by species id the groups of two or more species that each is in; narrowest first."""
    species = list(species)
    groups: dict[int, list[SpeciesGroup]] = {each.pk: [] for each in species}
    for kind in GroupKind:
        names = {getattr(each, kind.field) for each in species} - {""}
        sizes = dict(_sizes(Q(**{f"{kind.field}__in": names}), kind)) if names else {}
        for each in species:
            name = getattr(each, kind.field)
            if sizes.get(name, 0) > 1:
                groups[each.pk].append(SpeciesGroup(kind, name, sizes[name]))
    return groups


def group_species(groups: Iterable[tuple[GroupKind, str]]) -> list[Species]:
    """Return the species of these groups (kind and exact name), with their names."""
    conditions = [Q(**{kind.field: name}) for kind, name in groups if name]
    if not conditions:
        return []
    species = Species.objects.filter(reduce(or_, conditions)).prefetch_related("names")
    return list(species.order_by("scientific_name"))


def groups_by_form(forms: set[str]) -> dict[str, list[tuple[SpeciesGroup, set[int]]]]:
    """Return the groups with these names (in lower case, without accents), by name, each with the
    ids of its species. Groups of one species are included.
    """
    members: defaultdict[tuple[str, GroupKind, str], set[int]] = defaultdict(set)
    for kind in GroupKind:
        form = Lower(Func(F(kind.field), function="unaccent", output_field=TextField()))
        rows = Species.objects.annotate(form=form).filter(form__in=forms)
        for text, name, pk in rows.values_list("form", kind.field, "pk"):
            members[text, kind, name].add(pk)
    groups: defaultdict[str, list[tuple[SpeciesGroup, set[int]]]] = defaultdict(list)
    for (text, kind, name), ids in members.items():
        groups[text].append((SpeciesGroup(kind, name, len(ids)), ids))
    return groups


def _sizes(condition: Q, kind: GroupKind) -> Any:
    groups = Species.objects.filter(condition).order_by().values(kind.field)
    return groups.annotate(size=Count("pk")).values_list(kind.field, "size")
