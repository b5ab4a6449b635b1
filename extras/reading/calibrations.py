"""What a reader said of images, beside what people said, and the curves that are made of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
from django.contrib.auth import get_user_model
from django.db import transaction

from core.sql import fetch_all
from extras.reading.calibration import fit, require_enough
from extras.reading.figures import JUDGED, Figures, Judged, figures_of
from extras.reading.models import Calibration, Reader, Reading
from labeling.audits.models import Draw
from labeling.judging.agreement import patterns
from labeling.judging.blind import RELEASE_AUDIT, SECOND_OPINIONS
from labeling.judging.consensus import Vote, consensus
from labeling.judging.models import BlindItem, Judgment
from labeling.queries.models import Query
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

# Votes that differ come along for a consensus.
_JUDGED: Final = f"""
WITH reading AS (
    SELECT DISTINCT ON (query_id, image_id) query_id, image_id, probability
      FROM {Reading._meta.db_table} WHERE reader_id = %s ORDER BY query_id, image_id, id DESC
), vote AS (
    SELECT reading.*, j.annotator_id, person.role, j.relevance, j.updated_at, j.source,
           j.relevance = 'relevant' AS yes
      FROM reading JOIN {Judgment._meta.db_table} j USING (query_id, image_id)
      JOIN {get_user_model()._meta.db_table} person ON person.id = j.annotator_id
     WHERE NOT EXISTS (
               SELECT FROM {BlindItem._meta.db_table} doubted
                WHERE doubted.query_id = j.query_id AND doubted.image_id = j.image_id
                  AND doubted.kind = '{SECOND_OPINIONS.name}' AND doubted.probability IS NULL
                  AND NOT doubted.boundary AND doubted.not_for_id <> j.annotator_id)
), image AS (
    SELECT query_id, image_id, probability, bool_and(yes) AS relevant,
           bool_or(source = 'reader') AS brought,
           CASE WHEN bool_or(yes) <> bool_and(yes) THEN array_agg(annotator_id) END AS who,
           array_agg(role) AS roles, array_agg(relevance) AS said, array_agg(updated_at) AS at
      FROM vote GROUP BY query_id, image_id, probability
)
SELECT i.query_id, i.image_id, q.category, probability, relevant,
       EXISTS (SELECT FROM {Draw._meta.db_table} d
                WHERE d.query_id = i.query_id AND d.image_id = i.image_id)
       OR EXISTS (SELECT FROM {BlindItem._meta.db_table} d
                   WHERE d.query_id = i.query_id AND d.image_id = i.image_id
                     AND d.kind = '{RELEASE_AUDIT.name}' AND d.only_for_id IS NULL),
       brought, who, roles, said, at
  FROM image i JOIN {Query._meta.db_table} q ON q.id = i.query_id
 ORDER BY i.query_id, i.image_id
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


def judged_readings(reader: Reader) -> Judged:
    """The reader's last reading of each image that people have judged, with their consensus. One
    SQL query.

    These are no random sample. What people judged for what a reader said of it stays: the choice
    doesn't change how often a reader is right where it says so; agreement leaves it out. Where a
    reader doubted a label and others judged the image again, the label is the first one, for such
    second opinions could only bring labels nearer to the reader. And people look first where they
    expect relevant images, so among those that nobody looked at fewer are relevant than a curve
    says. What audits drew is a random sample of these, which figures show apart.
    """
    rows = []
    for *facts, relevant, drawn, brought, who, roles, said, at in fetch_all(_JUDGED, [reader.pk]):
        if who is not None:
            relevant = consensus(map(Vote, who, roles, said, at)).relevant
        rows.append((*facts, relevant, drawn, brought))
    return np.array(rows, JUDGED).view(np.recarray)


@transaction.atomic
def calibrate(*, reader: Reader) -> Calibration:
    """The curve of all judged images that the reader has read: a new row where the latest has
    another, else that one. TooFew.
    """
    Reader.objects.select_for_update(no_key=True).get(pk=reader.pk)
    judged = judged_readings(reader)
    require_enough(judged.relevant)
    curve = fit(judged.said, judged.relevant)
    said, found = curve.said.tolist(), curve.found.tolist()
    before = latest(reader)
    if before is not None and (before.said, before.found) == (said, found):
        return before
    positive = int(np.count_nonzero(judged.relevant))
    counts = {"relevant": positive, "not_relevant": len(judged) - positive}
    return Calibration.objects.create(reader=reader, said=said, found=found, **counts)


def latest(reader: Reader) -> Calibration | None:
    """The reader's latest calibration, if there is one."""
    return reader.calibrations.last()


def reader_figures(reader: Reader) -> Figures:
    """The figures of a reader by the present labels. TooFew."""
    return figures_of(judged_readings(reader), patterns(by_image=True))
