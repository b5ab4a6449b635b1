"""Imports and proposals of which species are taken for which, and notes on what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from django.db import transaction

from core.csv_rows import RowError, csv_rows
from core.errors import FileRefused, Invalid
from core.graphs import components
from core.locks import lock_key, transaction_lock
from extras.lookalikes.models import Confusion, DifferenceNote
from extras.lookalikes.overlap import strongest_links, taken_for
from retrieval.corpus.models import Species
from retrieval.embedding.models import Embedding, EmbeddingModel
from retrieval.flags.selectors import is_withdrawn
from retrieval.species.search import searchable
from retrieval.species.selectors import names_resolve

LARGEST_COUNT: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class ConfusionReport:
    """What came of a table or of a proposal."""

    pairs: int
    """(species, taken for) that are stored now."""
    grouped: int
    """Species that got a look-alike group."""
    unknown: list[str]
    """Names that no single species of the corpus has, by name."""


def confusions_import(*, lines: Iterable[bytes], name: str) -> ConfusionReport:
    """Take in a CSV of `species`, `taken_for` and, if it has it, `count`, in place of an earlier
    table. Rows of the same two are added up, so a table may have a row for each identification.

    Species without a look-alike group get one (`_group`). FileRefused: the file can't be read.
    """
    errors: list[RowError] = []
    given: Counter[tuple[str, str]] = Counter()
    required = ("species", "taken_for")
    for line, row in csv_rows(
        lines, name=name, required=required, optional=("count",), errors=errors, others=True
    ):
        text = row.get("count", "1").strip()
        if text.isdecimal() and 0 < int(text) <= LARGEST_COUNT:
            given[row["species"].strip(), row["taken_for"].strip()] += int(text)
        else:
            errors.append(RowError(name, line, "count", f"“{text[:20]}” is no number from 1 on"))
    if errors:
        raise FileRefused(errors)
    names = {name for pair in given for name in pair}
    ids = _species_by_name(names)
    confusions: Counter[tuple[int, int]] = Counter()
    for (species, other), count in given.items():
        if species in ids and other in ids and ids[species] != ids[other]:
            confusions[ids[species], ids[other]] += count
    return _replace(confusions, Confusion.Source.TABLE, sorted(names - ids.keys()))


def confusions_propose(
    *,
    model: EmbeddingModel,
    each: int,
    least: float,
    progress: Callable[[int, int], None] | None = None,
) -> ConfusionReport:
    """Propose look-alikes in place of earlier proposals: of `each` images of every species, the
    first by id, how many lie nearer to another species' center than to their own; pairs of at
    least the share `least` of a species' images. Withdrawn images are left out.
    """
    all_species = list(Species.objects.filter(images__isnull=False).distinct().order_by("pk"))
    sums = np.zeros((len(all_species), model.dimension), np.float32)
    counts = np.zeros(len(all_species), np.int64)
    for at, species in enumerate(all_species):
        vectors = _vectors(model, species, each)
        counts[at] = len(vectors)
        if len(vectors):
            sums[at] = vectors.sum(axis=0)
        if progress:
            progress(at + 1, 2 * len(all_species))
    confusions: Counter[tuple[int, int]] = Counter()
    for at, species in enumerate(all_species):
        if counts[at] > 1:
            nearest = Counter(taken_for(_vectors(model, species, each), at, sums, counts))
            for other, count in nearest.items():
                if other != at and count >= least * counts[at]:
                    confusions[species.pk, all_species[other].pk] = count
        if progress:
            progress(len(all_species) + at + 1, 2 * len(all_species))
    return _replace(confusions, Confusion.Source.EMBEDDINGS, [])


@transaction.atomic
def difference_write(*, one: Species, other: Species, text: str, by: Any) -> None:
    """Write how to tell two species apart, in place of what was written; an empty text deletes it.
    Invalid: it is one species, or the text is too long.
    """
    first, second = sorted((one, other), key=lambda species: species.pk)
    longest = DifferenceNote._meta.get_field("text").max_length or 0
    if first == second:
        raise Invalid({"species": ["Two species are needed."]})
    if len(text) > longest:
        raise Invalid({"text": [f"At most {longest:,} characters are possible."]})
    if not text.strip():
        DifferenceNote.objects.filter(first=first, second=second).delete()
        return
    DifferenceNote.objects.update_or_create(
        first=first, second=second, defaults={"text": text.strip(), "written_by": by}
    )


def _species_by_name(names: set[str]) -> dict[str, int]:
    """The species that each name means alone."""
    known = {
        species.scientific_name: species.pk
        for species in Species.objects.filter(scientific_name__in=names)
    }
    for name in names - known.keys():
        meant = names_resolve([name], authors=True)
        if len(meant.species) == 1 and not meant.groups and searchable([name])[name]:
            known[name] = meant.species[0].pk
    return known


def _vectors(model: EmbeddingModel, species: Species, each: int) -> Any:
    rows = Embedding.objects.filter(~is_withdrawn("image"), model=model, image__species=species)
    vectors = rows.order_by("image_id").values_list("vector", flat=True)[:each]
    return np.array([np.asarray(vector, np.float32) for vector in vectors], np.float32)


@transaction.atomic
def _replace(
    confusions: dict[tuple[int, int], int], source: str, unknown: list[str]
) -> ConfusionReport:
    transaction_lock(lock_key("corpus"))
    Confusion.objects.filter(source=source).delete()
    Confusion.objects.bulk_create(
        (
            Confusion(species_id=species, taken_for_id=other, source=source, count=count)
            for (species, other), count in sorted(confusions.items())
        ),
        batch_size=1000,
    )
    return ConfusionReport(len(confusions), _group(confusions), unknown)


def _group(confusions: dict[tuple[int, int], int]) -> int:
    """Give species without a look-alike group one: that of the species that each is confused with
    most often, or else a new one, called after its first species.
    """
    links = strongest_links(confusions)
    place = {pk: at for at, pk in enumerate(sorted({pk for link in links for pk in link}))}
    species = Species.objects.in_bulk(list(place))
    pks = list(place)
    changed = []
    for group in components(len(place), [(place[pk], place[other]) for pk, other in links]):
        members = sorted((species[pks[at]] for at in group), key=lambda s: s.scientific_name)
        named = [member.lookalike_group for member in members if member.lookalike_group]
        for member in members:
            if not member.lookalike_group:
                member.lookalike_group = named[0] if named else members[0].scientific_name[:100]
                changed.append(member)
    Species.objects.bulk_update(changed, ["lookalike_group"], batch_size=1000)
    return len(changed)
