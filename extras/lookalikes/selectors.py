"""Which species are taken for which: of some species, in a group, and two beside each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Count, F, Sum

from core.geo_grid import cell_sql
from core.sql import fetch_all
from extras.lookalikes.models import Confusion, DifferenceNote
from retrieval.corpus.counts import image_counts
from retrieval.corpus.models import Image, ImageWithdrawal, Species
from retrieval.corpus.places import species_without_places
from retrieval.species.selectors import first_image_ids

#: Images of each species that are shown beside another's.
IMAGES_SHOWN: Final = 6


@dataclass(frozen=True, slots=True)
class LookalikeGroup:
    """A group as the list of groups shows it."""

    name: str
    species: int
    times: int
    """How often its species were taken for each other, by any source."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two species, and how often each is taken for the other."""

    first: Species
    """The one with the lower id."""
    second: Species
    first_for_second: int
    second_for_first: int
    noted: bool
    """Whether somebody wrote down how to tell them apart."""


@dataclass(frozen=True, slots=True)
class Portrait:
    """A species as it stands beside another."""

    species: Species
    images: list[Image]
    image_count: int
    """Without withdrawn ones."""
    months: list[int]
    """Images by month, of twelve."""
    cells: list[tuple[int, int, int]]
    """(south, west, images) of the cells where it was photographed, the largest first; none where
    its places are hidden from the person."""
    taken: int
    """How often it is taken for the other."""


_TIMES: Final = f"""
SELECT s.id, o.id, sum(count)
  FROM (SELECT species_id, taken_for_id AS other_id, count FROM {Confusion._meta.db_table}
         WHERE species_id = ANY(%s)
         UNION ALL
        SELECT taken_for_id, species_id, count FROM {Confusion._meta.db_table}
         WHERE taken_for_id = ANY(%s)) confusion
  JOIN {Species._meta.db_table} s ON s.id = species_id
  JOIN {Species._meta.db_table} o ON o.id = other_id
 GROUP BY s.id, o.id
 ORDER BY s.id, sum(count) DESC, o.lookalike_group = s.lookalike_group AND o.lookalike_group > ''
          DESC, o.scientific_name
"""


def times_confused(species_ids: list[int]) -> dict[int, dict[int, int]]:
    """The species that each of these is confused with, by id, and how often either is taken for the
    other: the most often first, then those of its group, then by name. One SQL query.
    """
    times: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for pk, other, count in fetch_all(_TIMES, [species_ids, species_ids]):
        times[pk][other] = int(count)
    return times


def lookalike_groups() -> list[LookalikeGroup]:
    """The groups of two or more species, those confused most often first; two SQL queries."""
    sizes = (
        Species.objects.exclude(lookalike_group="")
        .order_by()
        .values_list("lookalike_group")
        .annotate(Count("pk"))
    )
    times = dict(
        Confusion.objects.exclude(species__lookalike_group="")
        .filter(taken_for__lookalike_group=F("species__lookalike_group"))
        .order_by()
        .values_list("species__lookalike_group")
        .annotate(Sum("count"))
    )
    groups = [LookalikeGroup(name, size, times.get(name, 0)) for name, size in sizes if size > 1]
    return sorted(groups, key=lambda group: (-group.times, -group.species, group.name))


def group_pairs(species: Sequence[Species]) -> list[Pair]:
    """Those of these species that are confused or noted, most often first; two SQL queries."""
    by_pk = {member.pk: member for member in species}
    counts: dict[tuple[int, int], int] = {}
    rows = Confusion.objects.filter(species__in=by_pk, taken_for__in=by_pk).order_by()
    for pk, other, count in rows.values_list("species", "taken_for").annotate(Sum("count")):
        counts[pk, other] = count
    notes = DifferenceNote.objects.filter(first__in=by_pk, second__in=by_pk)
    noted = set(notes.values_list("first", "second"))
    pairs = [
        Pair(by_pk[first], by_pk[second], counts.get((first, second), 0),
             counts.get((second, first), 0), (first, second) in noted)
        for first, second in {(min(pair), max(pair)) for pair in counts} | noted
    ]  # fmt: skip
    return sorted(pairs, key=lambda pair: (
        -pair.first_for_second - pair.second_for_first, pair.first.pk, pair.second.pk
    ))  # fmt: skip


def difference_note(one: Species, other: Species) -> DifferenceNote | None:
    """How to tell two species apart."""
    first, second = sorted((one.pk, other.pk))
    notes = DifferenceNote.objects.select_related("written_by")
    return notes.filter(first=first, second=second).first()


_SOUTH, _WEST = cell_sql("latitude", "longitude")
_SEEN: Final = f"""
SELECT species_id, month, south, west, count(*)
  FROM (SELECT species_id, extract(month FROM observed_at AT TIME ZONE 'UTC')::int AS month,
               {_SOUTH} AS south, {_WEST} AS west
          FROM {Image._meta.db_table} i
         WHERE species_id = ANY(%s)
           AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                            WHERE w.image_id = i.id AND w.restored_at IS NULL)) seen
 GROUP BY GROUPING SETS ((species_id, month), (species_id, south, west))
"""


def side_by_side(one: Species, other: Species, user: Any) -> list[Portrait]:
    """Both species with images, season and places; six SQL queries."""
    both = [one, other]
    pks = [species.pk for species in both]
    counts, chosen = image_counts(pks), first_image_ids(pks, each=IMAGES_SHOWN)
    images = Image.objects.in_bulk([pk for image_ids in chosen.values() for pk in image_ids])
    hidden = set(species_without_places(user))
    months = {pk: [0] * 12 for pk in pks}
    cells: dict[int, list[tuple[int, int, int]]] = {pk: [] for pk in pks}
    for pk, month, south, west, count in fetch_all(_SEEN, [pks]):
        if month is not None:
            months[pk][month - 1] = count
        elif south is not None and pk not in hidden:
            cells[pk].append((south, west, count))
    taken = dict(
        Confusion.objects.filter(species__in=pks, taken_for__in=pks)
        .order_by()
        .values_list("species")
        .annotate(Sum("count"))
    )
    return [
        Portrait(
            species=species,
            images=[images[pk] for pk in chosen[species.pk] if pk in images],
            image_count=counts.get(species.pk, 0),
            months=months[species.pk],
            cells=sorted(cells[species.pk], key=lambda cell: (-cell[2], cell[:2])),
            taken=taken.get(species.pk, 0),
        )
        for species in both
    ]
