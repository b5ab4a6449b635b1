"""Which images of the corpus are ranked, as conditions in SQL, and how many they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retrieval.corpus.counts import image_count, number_of, withdrawal_condition
from retrieval.embedding.models import EmbeddingModel
from retrieval.ranking.reading import Span, id_range_condition


@dataclass(frozen=True, slots=True)
class CorpusFilter:
    """What narrows a ranking; see `retrieval.ranking.selectors.rank_images`."""

    species_ids: Sequence[int] | None = None
    created_before: datetime | None = None
    corpus_at: datetime | None = None
    images: Span | None = None

    @property
    def moment(self) -> datetime | None:
        """The moment whose withdrawals count; None for now."""
        return self.created_before or self.corpus_at

    def withdrawn(self) -> tuple[str, list[Any]]:
        """A query for the ids of the images that are withdrawn at its moment, with its values."""
        condition, values = withdrawal_condition(self.moment)
        inside, span = id_range_condition(self.images, "w.image_id")
        query = f"SELECT w.image_id FROM retrieval_imagewithdrawal w WHERE {condition}{inside}"
        return query, [*values, *span]

    def later(self) -> tuple[str, list[Any]] | None:
        """A query for the ids of the images that came after the corpus' moment, with its values;
        None where it has none.
        """
        if self.corpus_at is None:
            return None
        inside, span = id_range_condition(self.images, "i.id")
        query = f"SELECT i.id FROM retrieval_image i WHERE i.created_at > %s{inside}"
        return query, [self.corpus_at, *span]

    def of_species(self) -> tuple[str, list[Any]] | None:
        """A query for the ids of the species' images, with its values; None for all species."""
        if not self.species_ids:
            return None
        inside, span = id_range_condition(self.images, "i.id")
        query = f"SELECT i.id FROM retrieval_image i WHERE i.species_id = ANY(%s){inside}"
        return query, [list(self.species_ids), *span]

    def embeddings(self) -> tuple[str, list[Any]]:
        """Conditions on embeddings `e`, each with AND before it, with their values.

        NOT IN makes a small hash of the ids that a scan asks row by row.
        """
        query, values = self.withdrawn()
        inside, span = id_range_condition(self.images)
        where, values = f"{inside} AND e.image_id NOT IN ({query})", [*span, *values]
        if (species := self.of_species()) is not None:
            where += f" AND e.image_id IN ({species[0]})"
            values += species[1]
        if self.created_before is not None:
            where += " AND e.created_at <= %s"
            values.append(self.created_before)
        if (later := self.later()) is not None:
            where += f" AND e.image_id NOT IN ({later[0]})"
            values += later[1]
        return where, values


def count_embedded(model: EmbeddingModel, corpus_filter: CorpusFilter) -> tuple[int, int]:
    """How many images pass a filter, with an embedding under a model and without.

    It takes the numbers that triggers keep, and subtracts what it looks up one by one: images that
    are withdrawn, and what came after the filter's moments.
    """
    # OFFSET 0 keeps a lookup a lookup: else PostgreSQL may join with the whole table.
    lookup = "SELECT FROM retrieval_embedding WHERE model_id = %s AND image_id = i.id"
    of_lookup: list[Any] = [model.pk]
    if corpus_filter.created_before is not None:
        lookup += " AND created_at <= %s"
        of_lookup.append(corpus_filter.created_before)
    embedded_of = f"CROSS JOIN LATERAL ({lookup} OFFSET 0) e"
    withdrawn, moments = corpus_filter.withdrawn()
    present, present_values = f"i.id NOT IN ({withdrawn})", moments
    later, later_values = "", list[Any]()
    if corpus_filter.corpus_at is not None:
        later, later_values = "i.created_at > %s", [corpus_filter.corpus_at]
    total = image_count(species_ids=corpus_filter.species_ids, at=corpus_filter.moment)
    if corpus_filter.species_ids:
        within = f"FROM retrieval_image i {{}} WHERE i.species_id = ANY(%s) AND {present}"
        values = [list(corpus_filter.species_ids), *present_values]
        if later:
            total -= number_of(
                f"SELECT count(*) {within.format('')} AND {later}", [*values, *later_values]
            )
            within, values = f"{within} AND NOT {later}", [*values, *later_values]
        embedded = number_of(f"SELECT count(*) {within.format(embedded_of)}", [*of_lookup, *values])
        return embedded, total - embedded
    query = (
        "SELECT coalesce((SELECT embedded FROM retrieval_embeddingcount WHERE model_id = %s), 0)"
        f" - (SELECT count(*) FROM ({withdrawn}) w CROSS JOIN LATERAL"
        f" (SELECT w.image_id AS id OFFSET 0) i {embedded_of})"
    )
    values = [model.pk, *moments, *of_lookup]
    if corpus_filter.created_before is not None:
        query += (
            " - (SELECT count(*) FROM retrieval_embedding WHERE model_id = %s AND created_at > %s)"
        )
        values += [model.pk, corpus_filter.created_before]
    if later:
        among = f"FROM retrieval_image i {{}} WHERE {later} AND {present}"
        total -= number_of(f"SELECT count(*) {among.format('')}", [*later_values, *present_values])
        query += f" - (SELECT count(*) {among.format(embedded_of)})"
        values += [*of_lookup, *later_values, *present_values]
    embedded = number_of(query, values)
    return embedded, total - embedded
