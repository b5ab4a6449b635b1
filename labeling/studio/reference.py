"""What an annotator compares with: the filter's species, their look-alikes, pinned examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Count, Window

from core.access import names_hidden_from
from core.markdown import markdown_html
from core.registries import CONFUSIONS
from core.sql import fetch_all
from labeling.candidates.selectors import filter_species_ids
from labeling.lifecycle.examples import pinned_examples
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.counts import image_counts
from retrieval.corpus.models import Image, Species
from retrieval.species.selectors import first_image_ids

MOST_SPECIES = 50
MOST_EXAMPLES = 6
MOST_LOOKALIKES = 8


@dataclass(frozen=True, slots=True)
class Lookalike:
    """A species that is easily taken for another."""

    species: Species
    image: Image | None
    """To show it by."""
    times: int
    """How often either is taken for the other; 0 where that isn't known."""


@dataclass(frozen=True, slots=True)
class SpeciesReference:
    """A species of the filter with what shows it."""

    species: Species
    lookalikes: list[Lookalike]
    image_count: int
    """In the corpus, without withdrawn ones."""
    examples: list[Image]
    """The ones with the lowest ids."""


@dataclass(frozen=True, slots=True)
class Reference:
    """All that the reference panel shows for one query."""

    guidelines: str
    """In Markdown."""
    names_hidden: bool
    pinned: list[QueryExample]
    """Relevant ones first, in the order of pinning; without withdrawn images."""
    species: list[SpeciesReference] = field(default_factory=list)
    """By scientific name, at most MOST_SPECIES; none where names are hidden."""
    species_total: int = 0
    """How many the filter has."""

    @property
    def guidelines_html(self) -> str:
        """The guidelines as safe HTML."""
        return markdown_html(self.guidelines)


def reference(*, query: Query, user: Any) -> Reference:
    """What a person may see to compare a query's candidates with.

    At most twelve SQL queries, and one for each of `CONFUSIONS`, however many species, images and
    look-alikes there are.
    """
    hidden = names_hidden_from(user)
    pinned = pinned_examples(query)
    species = [] if hidden else _filter_species(query)
    lookalikes = _lookalikes([one.pk for one in species])
    others = Species.objects.prefetch_related("names").in_bulk(
        {pk for found in lookalikes.values() for pk in found}
    )
    counts, examples = _images([one.pk for one in species], others)
    return Reference(
        guidelines=query.all_guidelines,
        names_hidden=hidden,
        pinned=pinned,
        species=[
            SpeciesReference(
                species=one,
                lookalikes=[
                    Lookalike(others[pk], next(iter(examples[pk]), None), times)
                    for pk, times in lookalikes[one.pk].items()
                    if pk in others
                ],
                image_count=counts.get(one.pk, 0),
                examples=examples[one.pk],
            )
            for one in species
        ],
        species_total=getattr(species[0], "total", 0) if species else 0,
    )


def _filter_species(query: Query) -> list[Any]:
    """The first species of the filter by name, each with the `total` of the filter."""
    return list(
        query.species.filter(pk__in=filter_species_ids(query))
        .annotate(total=Window(Count("pk")))
        .prefetch_related("names")
        .order_by("scientific_name")[:MOST_SPECIES]
    )


# The species of its group come first, by name; those of its genus alone after them.
_RELATED = f"""
SELECT s.id, o.id, o.grouped
  FROM {Species._meta.db_table} s
 CROSS JOIN LATERAL (
     SELECT id, scientific_name,
            lookalike_group = s.lookalike_group AND lookalike_group > '' AS grouped
       FROM {Species._meta.db_table}
      WHERE id <> s.id AND (lookalike_group = s.lookalike_group AND lookalike_group > ''
                            OR genus = s.genus AND genus > '')
      ORDER BY grouped DESC, scientific_name LIMIT {MOST_LOOKALIKES}
 ) o
 WHERE s.id = ANY(%s)
 ORDER BY s.id, o.grouped DESC, o.scientific_name
"""


def _lookalikes(species_ids: list[int]) -> dict[int, dict[int, int]]:
    """Each species' look-alikes by id, with how often they are confused: those that are and those
    of its group, or without any its genus.
    """
    if not species_ids:
        return {}
    group: defaultdict[int, list[int]] = defaultdict(list)
    genus: defaultdict[int, list[int]] = defaultdict(list)
    for pk, other, grouped in fetch_all(_RELATED, [species_ids]):
        (group if grouped else genus)[pk].append(other)
    times: dict[int, dict[int, int]] = {}
    for known in CONFUSIONS:
        times |= known.times(species_ids)
    lookalikes = {}
    for pk in species_ids:
        confused = times.get(pk, {})
        others = list(dict.fromkeys([*confused, *group[pk]] or genus[pk]))
        lookalikes[pk] = {other: confused.get(other, 0) for other in others[:MOST_LOOKALIKES]}
    return lookalikes


def _images(
    species_ids: list[int], lookalike_ids: Iterable[int]
) -> tuple[dict[int, int], defaultdict[int, list[Image]]]:
    """How many images each species has, and examples: one for a look-alike, else MOST_EXAMPLES."""
    examples: defaultdict[int, list[Image]] = defaultdict(list)
    if not species_ids:
        return {}, examples
    counts = image_counts(species_ids)
    others = set(lookalike_ids).difference(species_ids)
    chosen = first_image_ids(species_ids, each=MOST_EXAMPLES) | first_image_ids(others)
    known = Image.objects.only(*Image.ADDRESS_FIELDS).in_bulk(
        [pk for image_ids in chosen.values() for pk in image_ids]
    )
    for species_id, image_ids in chosen.items():
        examples[species_id] = [known[pk] for pk in image_ids if pk in known]
    return counts, examples
