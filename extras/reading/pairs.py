"""What a reader said last of images."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from core.sql import fetch_all
from extras.reading.models import Reader, Reading
from labeling.judging.models import BlindItem, Judgment
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
