"""Saying what a query uses a reader for."""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np
from django.db import transaction

from core.access import Role, require_role
from core.errors import Conflict, Invalid
from extras.reading.calibration import cross_fitted
from extras.reading.calibrations import judged_readings, latest
from extras.reading.models import Reader, ReaderUse
from labeling.candidates.rules import Certificate, Exhausted
from labeling.candidates.services import lock_query
from labeling.judging.progress import hand_in_rule
from labeling.queries.models import Query


def screening_problem(query: Query) -> str:
    """Why a reader can't screen the query; empty if it can."""
    if query.order != Query.Order.LEARNED:
        return "Screening needs the order that learns: a streak counts the frozen order alone."
    rule, proofs = hand_in_rule(query), (Certificate, Exhausted)
    proven = all(any(isinstance(one, proofs) for one in way) for way in rule.ways)
    if rule.certificate is None or not proven:
        return "Screening needs a rule for handing in that asks for a certificate."
    return ""


def use_of(query: Query) -> ReaderUse:
    """What the query uses; without a reader where it uses none."""
    return ReaderUse.objects.filter(query=query).first() or ReaderUse(query=query)


@transaction.atomic
def use_set(
    *,
    query: Query,
    reader: Reader | None,
    order: bool,
    queue: bool,
    opinions: bool,
    screening: float | None,
    by: Any,
) -> ReaderUse | None:
    """Say what a query uses a reader for, None for nothing (admins).

    `screening` is the recall over judged images that screening keeps, None for no screening; its
    threshold is chosen when it is switched on, and stays. Raises QueryGone, and Conflict for a
    reader without a calibration or a query that it can't screen.
    """
    require_role(by, Role.ADMIN)
    query = lock_query(query)
    before = ReaderUse.objects.filter(query=query).first()
    if reader is None:
        ReaderUse.objects.filter(query=query).delete()
        return None
    if latest(reader) is None:
        raise Conflict("Calibrate the reader first: nothing is known of how often it is right.")
    threshold = None
    if screening is not None:
        if problem := screening_problem(query):
            raise Conflict(problem)
        same = before is not None and (before.reader, before.recall) == (reader, screening)
        threshold = before.screening if before and same else threshold_of(reader, screening)
    said = {"reader": reader, "order": order, "queue": queue, "opinions": opinions}
    said |= {"screening": threshold, "recall": screening, "changed_by": by}
    return ReaderUse.objects.update_or_create(query=query, defaults=said)[0]


def threshold_of(reader: Reader, recall: float) -> float:
    """The calibrated probability, in millionths, that at least this share of the judged relevant
    images reach by curves of other queries' images.
    """
    judged = judged_readings(reader)
    calibrated = cross_fitted(judged.said, judged.relevant, judged.query)
    reached = np.sort(calibrated[judged.relevant])
    at = min(floor((1 - recall) * len(reached) + 1e-9), len(reached) - 1)
    return floor(float(reached[at]) * 1e6) / 1e6


def use_save(query: Query, sent: dict[str, Any], by: Any) -> None:
    """Do what a valid `api.ReaderUseSerializer` says. Raises Invalid, and what `use_set` does."""
    reader_id, screening = sent.pop("reader_id"), sent.pop("recall")
    reader = Reader.objects.filter(pk=reader_id).first()
    if reader is None and reader_id is not None:
        raise Invalid({"reader": ["There is no such reader."]})
    use_set(query=query, reader=reader, screening=screening, by=by, **sent)
