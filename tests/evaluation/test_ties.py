"""Equal scores: how far they can move scores, trec_eval's order, the mean over all orders."""

from itertools import permutations

import numpy as np
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from evaluation.scoring.evaluation import score_run
from evaluation.scoring.measures import Measure, parse_measures
from evaluation.scoring.run_files import Ranking
from evaluation.scoring.ties import as_trec_eval, averaged_scores, tie_range
from releases.snapshot.qrels import Qrels

pytestmark = pytest.mark.pure

MEASURES = (
    *parse_measures(["AP@3", "UncappedAP@3", "nDCG@3", "RR@3", "P@3", "R@3", "CappedR@3"]),
    *parse_measures(["Success@2", "AP", "AP@R", "Rprec", "RBP", "RBPresidual", "Judged@3"]),
)


def a_run(scores):
    return {1: Ranking(np.array(list(scores)), np.array(list(scores.values()), dtype=float))}


def qrels(relevant, judged=()):
    pairs = [(1, image, True) for image in relevant] + [(1, image, False) for image in judged]
    return Qrels.from_pairs([1], pairs)


def all_orders(scores):
    """The run in each order that its equal scores allow."""
    for order in permutations(scores):
        values = [scores[image] for image in order]
        if values == sorted(values, reverse=True):
            yield {1: Ranking(np.array(order), np.arange(len(order), 0, -1.0))}


@st.composite
def tied(draw):
    count = draw(st.integers(1, 6))
    scores = {image: draw(st.integers(0, 2)) for image in range(count)}
    relevant = draw(st.sets(st.integers(0, 7), min_size=1, max_size=5))
    judged = draw(st.sets(st.integers(0, 7), max_size=4)) - relevant
    return scores, qrels(relevant, judged)


@settings(max_examples=30)
@given(tied())
def test_the_mean_over_all_orders_is_that_of_trying_them(case):
    scores, truth = case
    tried = [score_run(run, truth, MEASURES) for run in all_orders(scores)]
    averaged = averaged_scores(a_run(scores), truth, MEASURES)
    for measure in MEASURES:
        mean = np.mean([one[measure.key] for one in tried], axis=0)
        assert averaged[measure.key] == pytest.approx(mean, abs=1e-12), measure.key


@settings(max_examples=30)
@given(tied())
def test_the_range_is_that_of_all_orders(case):
    scores, truth = case
    measures = [one for one in MEASURES if one.name not in ("Judged", "RBPresidual")]
    tried = [score_run(run, truth, measures) for run in all_orders(scores)]
    found = tie_range(a_run(scores), truth, measures)
    moving = {}
    for measure in measures:
        values = [float(one[measure.key][0]) for one in tried]
        if max(values) - min(values) > 1e-12:
            moving[measure.key] = pytest.approx((min(values), max(values)))
    assert found.means == moving
    assert found.query_ids == ([1] if moving else [])


def test_equal_scores_on_one_side_of_a_cutoff_move_nothing():
    scores = {1: 1.0, 2: 0.5, 3: 0.5, 4: 0.1}
    assert tie_range(a_run(scores), qrels({1, 2}), [Measure("P", 3)]).query_ids == []
    assert tie_range(a_run(scores), qrels({1, 2}), [Measure("P", 2)]).means == {"P@2": (0.5, 1.0)}


@settings(max_examples=60)
@given(st.dictionaries(st.integers(0, 120), st.sampled_from([0.5, 0.5 + 1e-9, 1.0]), min_size=1))
def test_trec_evals_order_gives_trec_evals_scores(scores):
    relevant = {image for image in scores if image % 3 == 0} | {999}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"1": {str(image): 1 for image in relevant}}, {"map", "ndcg_cut.5", "P.5"}
    )
    theirs = evaluator.evaluate({"1": {str(image): score for image, score in scores.items()}})["1"]
    ours = score_run(
        as_trec_eval(a_run(scores)), qrels(relevant), parse_measures(["AP", "nDCG@5", "P@5"])
    )
    assert ours["AP"][0] == pytest.approx(theirs["map"])
    assert ours["nDCG@5"][0] == pytest.approx(theirs["ndcg_cut_5"])
    assert ours["P@5"][0] == pytest.approx(theirs["P_5"])


def test_the_mean_is_that_of_scikit_learns_ndcg():
    scores = {1: 0.9, 2: 0.5, 3: 0.5, 4: 0.5, 5: 0.1}
    theirs = ndcg_score([[0, 1, 0, 0, 1]], [list(scores.values())], k=3)
    assert averaged_scores(a_run(scores), qrels({2, 5}), [Measure("nDCG", 3)])[
        "nDCG@3"
    ] == pytest.approx([theirs])


def test_a_query_that_the_run_misses_scores_nothing():
    averaged = averaged_scores({}, qrels({1}), MEASURES)
    assert {key: float(values[0]) for key, values in averaged.items() if values[0]} == {
        "RBPresidual": 1.0
    }
