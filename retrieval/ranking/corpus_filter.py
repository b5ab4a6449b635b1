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
    matching: tuple[str, Sequence[Any]] | None = None
    """A condition in SQL on the images `i`, with its values."""

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

    def condition(self) -> tuple[str, list[Any]] | None:
        """The condition on the images `i` of the species and of `matching`, with its values; None
        where every image meets it.
        """
        conditions, values = list[str](), list[Any]()
        if self.species_ids:
            conditions.append("i.species_id = ANY(%s)")
            values.append(list(self.species_ids))
        if self.matching is not None:
            conditions.append(f"({self.matching[0]})")
            values += self.matching[1]
        return (" AND ".join(conditions), values) if conditions else None

    def within(self) -> tuple[str, list[Any]] | None:
        """A query for the ids of the images that meet `condition`, with its values; None for all
        images.
        """
        condition = self.condition()
        if condition is None:
            return None
        inside, span = id_range_condition(self.images, "i.id")
        query = f"SELECT i.id FROM retrieval_image i WHERE {condition[0]}{inside}"
        return query, [*condition[1], *span]

    def embeddings(self) -> tuple[str, list[Any]]:
        """Conditions on embeddings `e`, each with AND before it, with their values.

        NOT IN makes a small hash of the ids that a scan asks row by row.
        """
        query, values = self.withdrawn()
        inside, span = id_range_condition(self.images)
        where, values = f"{inside} AND e.image_id NOT IN ({query})", [*span, *values]
        if (narrowed := self.within()) is not None:
            where += f" AND e.image_id IN ({narrowed[0]})"
            values += narrowed[1]
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
    if (condition := corpus_filter.condition()) is not None:
        among = "FROM retrieval_image i"
        where, values = f"WHERE {condition[0]} AND {present}", [*condition[1], *present_values]
        if corpus_filter.matching is None:
            total = image_count(species_ids=corpus_filter.species_ids, at=corpus_filter.moment)
        else:
            total = number_of(f"SELECT count(*) {among} {where}", values)
        if later:
            total -= number_of(
                f"SELECT count(*) {among} {where} AND {later}", [*values, *later_values]
            )
            where, values = f"{where} AND NOT {later}", [*values, *later_values]
        statement = f"SELECT count(*) {among} {embedded_of} {where}"
        embedded = number_of(statement, [*of_lookup, *values])
        return embedded, total - embedded
    total = image_count(at=corpus_filter.moment)
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
