"""Which queries count in an evaluation, and with what."""

import numpy as np
import pytest

from benchmark.evaluation import NO_SCORES, evaluate


def run(**rankings: list[int]) -> dict[int, np.ndarray]:
    return {int(name[1:]): np.array(ids, dtype=np.int64) for name, ids in rankings.items()}


def test_the_papers_example_through_the_whole_evaluation():
    result = evaluate(run(q1=[1, 7, 8, 9, 2], q2=[1, 6, 7, 8, 9]), {1: {1, 2}, 2: {1, 2}}, k=5)
    assert [query.scores.ap for query in result.queries] == [0.7, 0.5]
    assert result.mean.ap == 0.6
    assert result.mean.precision == pytest.approx(0.3)
    assert (result.mean.recall, result.mean.rr) == (0.75, 1.0)


def test_a_query_that_the_run_misses_scores_0_and_counts():
    result = evaluate(run(q1=[5]), {1: {5}, 2: {6}}, k=50)
    assert result.missed == [2]
    assert result.queries[1].scores == NO_SCORES
    assert result.queries[1].retrieved == 0
    assert result.mean.ap == 0.5


def test_a_query_without_positives_is_left_out_and_named():
    result = evaluate(run(q1=[5], q2=[5]), {1: {5}, 2: set(), 3: []}, k=50)
    assert result.without_positives == [2, 3]
    assert [query.query_id for query in result.queries] == [1]
    assert result.mean.ap == 1.0


def test_queries_unknown_to_the_release_are_named_and_not_scored():
    result = evaluate(run(q9=[5], q1=[5], q4=[5]), {1: {5}}, k=50, known={1, 4})
    assert result.unknown == [9]
    assert [query.query_id for query in result.queries] == [1]


def test_without_any_positives_there_is_no_mean():
    result = evaluate(run(q1=[5]), {1: set()}, k=50)
    assert (result.queries, result.mean) == ([], None)


def test_results_come_by_query_id():
    result = evaluate({}, {30: {1}, 4: {1}, 100: {1}}, k=1)
    assert [query.query_id for query in result.queries] == [4, 30, 100]
    assert result.missed == [4, 30, 100]


def test_k_must_be_positive():
    with pytest.raises(ValueError, match="k must be at least 1"):
        evaluate({}, {}, k=0)
