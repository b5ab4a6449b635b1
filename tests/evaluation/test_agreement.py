"""Agreement with ir-measures on random runs and judgments."""

from itertools import permutations

import ir_measures
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, ERR, RBP, RR, Bpref, Judged, P, R, Rprec, Success, nDCG

from evaluation.scoring.evaluation import (
    best_rerank,
    random_scores,
    rerank_qrels,
    score_run,
    scored_query_ids,
)
from evaluation.scoring.measures import Measure
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.ties import averaged_scores, tie_range
from releases.snapshot.qrels import Qrels
from tests.evaluation.test_evaluation import ranking

pytestmark = pytest.mark.pure

IMAGES = st.integers(0, 25)
KINDS = {"P": P, "R": R, "AP": AP, "UncappedAP": AP, "nDCG": nDCG, "RR": RR}
KINDS |= {"Success": Success, "Judged": Judged}
WHOLE = {"Rprec": Rprec, "AP": AP, "Bpref": Bpref, "RBP": RBP(rel=1, p=0.9)}


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


def qrels_of(judgments: dict[int, dict[int, bool]]) -> Qrels:
    pairs = (
        (query, image, relevant)
        for query, images in judgments.items()
        for image, relevant in images.items()
    )
    return Qrels.from_pairs(judgments, pairs)


def scores_of_ir_measures(run, judgments, scored, measures) -> dict[tuple[str, object], float]:
    """By query and measure; 0 where it says nothing of a query, since the run misses it."""
    # The ranks themselves are the scores, so that the reference can't break ties otherwise.
    rows = [
        ir_measures.ScoredDoc(str(query), str(image), float(-rank))
        for query, one in run.items()
        for rank, image in enumerate(one.image_ids.tolist(), start=1)
    ]
    qrels = [
        ir_measures.Qrel(str(query), str(image), int(relevant))
        for query, images in judgments.items()
        for image, relevant in images.items()
    ]
    scores = {(str(query), measure): 0.0 for query in scored for measure in measures}
    for metric in ir_measures.iter_calc(measures, qrels, rows) if rows else ():
        scores[metric.query_id, metric.measure] = metric.value
    return scores


@settings(max_examples=60)
@given(benchmarks(), st.lists(st.integers(1, 40), min_size=1, max_size=3, unique=True))
def test_every_measure_agrees_query_by_query(benchmark, ks):
    run, judgments = benchmark
    truth = qrels_of(judgments)
    scored = scored_query_ids(truth).tolist()
    if not scored:
        return
    ours = [Measure(kind, k) for kind in KINDS for k in ks]
    ours += [Measure(kind) for kind in (*WHOLE, "AP@R")]
    totals = dict(zip(scored, truth.totals()[truth.totals() > 0].tolist(), strict=True))
    cuts = {*ks, *totals.values()}
    theirs = [measure @ k for measure in KINDS.values() for k in cuts] + list(WHOLE.values())
    expected = scores_of_ir_measures(run, judgments, scored, theirs)
    got = score_run(run, truth, ours)
    for place, query in enumerate(scored):
        relevant = totals[query]
        for measure in ours:
            if measure.k is None:
                one = AP @ relevant if measure.name == "AP@R" else WHOLE[measure.name]
                value = expected[str(query), one]
            else:
                value = expected[str(query), KINDS[measure.name] @ measure.k]
            if measure.name == "AP" and measure.k is not None:
                # The reference divides by R.
                value *= relevant / min(relevant, measure.k)
            if measure.name == "Judged" and query in run:
                # The reference divides by how many images are there.
                value *= min(measure.k, len(run[query].image_ids)) / measure.k
            assert got[measure.key][place] == pytest.approx(value, abs=1e-12), measure.key


@st.composite
def graded(draw: st.DrawFn) -> tuple[dict[int, Ranking], dict[int, dict[int, int]]]:
    """(run, grades), from 2 on relevant."""
    run, _ = draw(benchmarks())
    grades = st.dictionaries(IMAGES, st.integers(0, 3), max_size=20)
    return run, {query: draw(grades) for query in range(4)}


def graded_qrels(judgments: dict[int, dict[int, int]]) -> Qrels:
    rows = [(query, *pair) for query, images in judgments.items() for pair in images.items()]
    queries, images, grades = np.array(rows, np.int64).reshape(-1, 3).T
    return Qrels.from_arrays(judgments, queries, images, grades >= 2, grades)


@settings(max_examples=30)
@given(graded(), st.integers(1, 30))
def test_ndcg_of_grades_agrees(benchmark, k):
    run, judgments = benchmark
    truth = graded_qrels(judgments)
    scored = scored_query_ids(truth).tolist()
    expected = scores_of_ir_measures(run, judgments, scored, [nDCG @ k])
    got = score_run(run, truth, [Measure("nDCG", k), Measure("AP")])[f"nDCG@{k}"].tolist()
    assert got == pytest.approx([expected[str(query), nDCG @ k] for query in scored], abs=1e-12)


def test_expected_reciprocal_rank_agrees_with_gdeval():
    run = {1: ranking(4, 1, 9, 2, 7), 2: ranking(3), 3: ranking(8, 5)}
    grades = {1: {1: 3, 2: 1, 4: 0, 7: 2, 11: 3}, 2: {3: 0, 5: 2}, 3: {5: 3, 8: 2}, 4: {1: 2}}
    judgments = {
        query: {image: grade >= 2 for image, grade in images.items()}
        for query, images in grades.items()
    }
    for truth, labels in ((graded_qrels(grades), grades), (qrels_of(judgments), judgments)):
        scored = scored_query_ids(truth).tolist()
        expected = scores_of_ir_measures(run, labels, scored, [ERR @ 3, ERR @ 20])
        for k in (3, 20):
            got = score_run(run, truth, [Measure("ERR", k)])[f"ERR@{k}"].tolist()
            # It prints five digits.
            wanted = [expected[str(query), ERR @ k] for query in scored]
            assert got == pytest.approx(wanted, abs=6e-6)


def test_grades_in_a_random_order_and_among_equal_scores():
    truth = graded_qrels({1: {0: 3, 1: 0, 2: 1, 3: 2, 9: 3}})
    measure = Measure("nDCG", 3)
    orders = [
        score_run({1: ranking(*order)}, truth, [measure])["nDCG@3"]
        for order in permutations([0, 1, 2, 3, 9, 20])
    ]
    mean = float(np.mean(orders))
    assert random_scores(truth, 6, [measure])["nDCG@3"] == pytest.approx([mean], abs=1e-12)
    tied = {1: Ranking(np.array([0, 1, 2, 3, 9, 20]), np.zeros(6))}
    assert averaged_scores(tied, truth, [measure])["nDCG@3"] == pytest.approx([mean], abs=1e-12)
    ends = tie_range(tied, truth, [measure]).means["nDCG@3"]
    assert ends == pytest.approx((min(orders)[0], max(orders)[0]), abs=1e-12)
    best = best_rerank({1: ranking(1, 2, 3, 0, 9)}, truth, 4)[1]
    assert best.image_ids.tolist() == [0, 3, 2, 1, 9]
    listed = rerank_qrels(truth, {1: np.array([1, 2, 20, 0])})
    assert (listed.image_ids.tolist(), listed.gains.tolist()) == ([0, 1, 2, 20], [3, 0, 1, 0])
