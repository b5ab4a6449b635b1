"""What a reader says as the further number of the order that learns, and which images come up in a
screened one.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from django.db.models import Max

from extras.reading.calibrations import latest, readings_of
from extras.reading.models import Calibration, ReaderUse, Reading
from extras.reading.use import screening_problem
from labeling.candidates.models import CandidateList
from labeling.learning.features import Feature
from labeling.learning.ridge import odds_numbers
from retrieval.ranking.scan import Rows

PREFIX: Final = "reading:"


def reading_feature(
    candidate_list: CandidateList, image_ids: Rows, key: str | None
) -> Feature | None:
    """The calibrated log-odds of what the query's reader says, 0 for images without a reading and
    where they have no part in the order; and which images come up: where the reader screens, all
    but those that it has read and thinks too little of.

    The key names rows that never change: the calibration and the last reading. Then it says whether
    the order knows them (1 or 0), and the least probability of what comes up, empty for all.
    """
    key = _present_key(candidate_list) if key is None else key
    if key is None or not key.startswith(PREFIX):
        return None
    _, calibration_pk, last, order, threshold = key.split(":")
    known = Calibration.objects.filter(pk=calibration_pk).select_related("reader")
    if (calibration := known.first()) is None:
        return None
    rows = readings_of(calibration.reader, [candidate_list.query_id], last=int(last))
    _, images, said = np.array(rows, np.float64).reshape(-1, 3).T
    offered = np.ones(len(image_ids), np.bool_)
    if threshold:
        left_out = images[calibration.curve(said) < float(threshold)]
        offered = ~np.isin(image_ids, left_out)
    numbers = np.full(len(image_ids), np.nan)
    if order == "1":
        _, places, of_readings = np.intersect1d(image_ids, images, True, return_indices=True)
        numbers[places] = calibration.curve.log_odds(said)[of_readings]
    return Feature(key, odds_numbers(numbers), offered)


def _present_key(candidate_list: CandidateList) -> str | None:
    use = ReaderUse.objects.filter(query=candidate_list.query_id).select_related("reader").first()
    calibration = latest(use.reader) if use else None
    if use is None or calibration is None:
        return None
    screens = use.screening is not None and not screening_problem(candidate_list.query)
    if not (use.order or screens):
        return None
    # A reader has one job at a time, which stores one transaction after the other: none with lower
    # numbers comes later.
    readings = Reading.objects.filter(reader=use.reader, query=use.query_id)
    last = readings.aggregate(last=Max("pk"))["last"] or 0
    threshold = use.screening if screens else ""
    return f"{PREFIX}{calibration.pk}:{last}:{use.order:d}:{threshold}"
