"""Agreement with ir-measures on random runs and judgments."""

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, Judged, P, R, Rprec, nDCG

from benchmark.scoring.evaluation import score_run, scored_query_ids
from benchmark.scoring.measures import Measure
from benchmark.scoring.qrels import Qrels
from benchmark.scoring.run_files import Ranking
from tests.benchmark.test_evaluation import ranking

IMAGES = st.integers(0, 25)
KINDS = {"P": P, "R": R, "AP": AP, "nDCG": nDCG, "RR": RR, "Judged": Judged}


@st.composite
def benchmarks(draw: st.DrawFn) -> tuple[dict[int, Ranking], dict[int, dict[int, bool]]]:
    """(run, judgments): queries that a run misses, unjudged images, and short rankings too."""
    run, judgments = {}, {}
    for query in range(draw(st.integers(1, 4))):
        judgments[query] = draw(st.dictionaries(IMAGES, st.booleans(), max_size=20))
        ids = draw(st.lists(IMAGES, unique=True, min_size=1, max_size=25))
        if draw(st.booleans()):
            run[query] = ranking(*ids)
    return run, judgments


@settings(max_examples=200, deadline=None)
@given(benchmarks(), st.lists(st.integers(1, 40), min_size=1, max_size=3, unique=True))
def test_every_measure_agrees_query_by_query(benchmark, ks):
    run, judgments = benchmark
    pairs = [
        (query, image, relevant)
        for query, images in judgments.items()
        for image, relevant in images.items()
    ]
    truth = Qrels.from_pairs(judgments, pairs)
    scored = scored_query_ids(truth).tolist()
    if not scored:
        return
    ours = [Measure(kind, k) for kind in KINDS for k in ks] + [Measure("Rprec"), Measure("AP@R")]
    totals = dict(zip(scored, truth.totals()[truth.totals() > 0].tolist(), strict=True))
    cuts = {*ks, *totals.values()}
    theirs = [KINDS[kind] @ k for kind in KINDS for k in cuts] + [Rprec]
    # The ranks themselves are the scores, so that the reference can't break ties otherwise.
    rows = [
        ir_measures.ScoredDoc(str(query), str(image), float(-rank))
        for query, one in run.items()
        for rank, image in enumerate(one.image_ids.tolist(), start=1)
    ]
    judged = [ir_measures.Qrel(str(q), str(image), int(relevant)) for q, image, relevant in pairs]
    expected = {(str(query), measure): 0.0 for query in scored for measure in theirs}
    for metric in ir_measures.iter_calc(theirs, judged, rows) if rows else ():
        expected[metric.query_id, metric.measure] = metric.value
    got = score_run(run, truth, ours)
    for place, query in enumerate(scored):
        relevant = totals[query]
        for measure in ours:
            if measure.k is None:
                value = expected[str(query), AP @ relevant if measure.kind == "AP@R" else Rprec]
            else:
                value = expected[str(query), KINDS[measure.kind] @ measure.k]
            if measure.kind == "AP":
                # The reference divides by R.
                value *= relevant / min(relevant, measure.k)
            if measure.kind == "Judged" and query in run:
                # The reference divides by how many images are there.
                value *= min(measure.k, len(run[query].image_ids)) / measure.k
            assert got[measure.key][place] == pytest.approx(value, abs=1e-12), measure.key
