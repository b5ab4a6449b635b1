"""Having what a run ranks high judged: pooling by submitted runs, TREC's way."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from core.errors import Conflict
from evaluation.runs.models import Run
from evaluation.runs.selectors import release_data
from evaluation.runs.services import rankings_on
from labeling.blind.requests import images_request
from labeling.queries.models import Query

#: How many of a run's first images are judged for each query, and the most that can be.
DEPTH: Final = 10
MOST: Final = 100


def unjudged_request(*, run: Run, depth: int = DEPTH, by: Any) -> tuple[int, int]:
    """Have people judge the first `depth` images of a run for each query of its release, of both
    splits, as far as neither the release has labels of them nor anybody has judged them since; how
    many images of how many queries are new. A repeat adds nothing.

    Queries that were reworded, rejected or reopened as drafts since are left out. Conflict: the run
    is private, not scored or has no order, or the release's images aren't here. ValueError: a depth
    outside 1 to MOST. NoSnapshot, RunDamaged: there is nothing to read.
    """
    if not 1 <= depth <= MOST:
        raise ValueError(f"depth must be 1 to {MOST}: {depth}")
    if not (run.ready and run.published):
        raise Conflict("Publish the run first: only what everybody sees adds to the judged images.")
    data = release_data(run.release)
    if run.kind == Run.Kind.RANDOM or not data.header.corpus_images:
        raise Conflict("Nothing of this run can be judged: it has no order, or no image is here.")
    numbers = {
        (query.query_id, query.text): query.pk
        for query in Query.objects.filter(query_id__in=data.queries).only("query_id", "text")
    }
    wanted = {}
    for query_id, ranking in rankings_on(run, run.release).items():
        query = numbers.get((query_id, data.queries[query_id].text))
        if query is not None:
            first = ranking.image_ids[:depth]
            judged = data.qrels.of(query_id)[0]
            wanted[query] = first[~np.isin(first, judged)].tolist()
    new = images_request(wanted=wanted, requested_for=f"run {run.pk}: {run.name}", by=by)
    return len(new), len({query for query, _ in new})
