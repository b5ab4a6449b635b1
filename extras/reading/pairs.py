"""What a reader said of images, beside what people said of them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
from django.db.models import Exists, OuterRef, QuerySet
from numpy.typing import NDArray

from core.sql import fetch_all
from extras.reading.calibration import Flags, Floats
from extras.reading.models import Reader, Reading
from labeling.judging.consensus import consensus_by_key
from labeling.judging.models import BlindItem, Judgment
from labeling.judging.progress import votes_of
from retrieval.corpus.models import ImageWithdrawal

# The last reading of each pair counts.
_LATEST: Final = f"""
SELECT DISTINCT ON (r.query_id, r.image_id) r.query_id, r.image_id, r.probability
  FROM {Reading._meta.db_table} r
 WHERE r.reader_id = %(reader)s AND r.query_id = ANY(%(queries)s::bigint[])
   AND r.id <= coalesce(%(last)s, r.id)
   AND (%(kind)s = ''
        OR NOT EXISTS (SELECT FROM {Judgment._meta.db_table} j
                        WHERE j.query_id = r.query_id AND j.image_id = r.image_id)
       AND NOT EXISTS (SELECT FROM {BlindItem._meta.db_table} b
                        WHERE b.query_id = r.query_id AND b.image_id = r.image_id
                          AND b.kind = %(kind)s AND b.only_for_id IS NULL)
       AND NOT EXISTS (SELECT FROM {ImageWithdrawal._meta.db_table} w
                        WHERE w.image_id = r.image_id AND w.restored_at IS NULL))
 ORDER BY r.query_id, r.image_id, r.id DESC
"""


def readings_of(
    reader: Reader, queries: Collection[int], *, last: int | None = None, unjudged_for: str = ""
) -> list[tuple[int, int, float]]:
    """Query, image and what the reader said last, up to the reading `last`, of queries by primary
    key; with `unjudged_for`, a blind kind, of images that nobody has judged, that aren't withdrawn
    and aren't among its items. By query and image, in one SQL query.
    """
    values = {"reader": reader.pk, "queries": list(queries), "last": last, "kind": unjudged_for}
    return [(query, image, said) for query, image, said in fetch_all(_LATEST, values)]


def judged_and_read(reader: Reader) -> QuerySet[Judgment]:
    """The judgments of what the reader has read, of all queries."""
    read = Reading.objects.filter(reader=reader, query=OuterRef("query"), image=OuterRef("image"))
    return Judgment.objects.filter(Exists(read))


def labeled_readings(reader: Reader) -> tuple[Floats, Flags, NDArray[np.int64]]:
    """Of all pairs that the reader has read and people have judged (n,): what it said, whether
    people agree that the image is relevant, and the query. Two SQL queries.
    """
    votes = votes_of(judged_and_read(reader))
    labels = {pair: agreed.relevant for pair, agreed in consensus_by_key(votes)}
    rows = readings_of(reader, {query for query, _ in labels})
    rows = [row for row in rows if row[:2] in labels]
    return (
        np.array([said for *_, said in rows], np.float64),
        np.array([labels[row[:2]] for row in rows], np.bool_),
        np.array([query for query, *_ in rows], np.int64),
    )
