"""The demo's release: labels from the truth, vectors that are damaged the same way each time."""

import numpy as np
import pytest

from demo.corpus import corpus_scene
from demo.queries import JUDGED, QUERIES
from demo.release import damaged_vectors, simulated_labels
from labeling.queries.categories import CATEGORIES


def test_labels_end_after_a_streak_of_negatives_but_not_before_the_least():
    ranked = list(range(1, 11))
    labels = simulated_labels(ranked, frozenset({2, 5}), minimum=0, streak=3)
    assert labels == [(image, image in (2, 5)) for image in range(1, 9)]
    assert len(simulated_labels(ranked, frozenset({2}), minimum=7, streak=3)) == 7
    assert len(simulated_labels(ranked, frozenset(), minimum=0, streak=3)) == 3
    assert len(simulated_labels(ranked, frozenset({9}), minimum=10, streak=3)) == 10
    assert simulated_labels([], frozenset({1}), minimum=5, streak=3) == []


def test_vectors_are_damaged_the_same_way_each_time():
    whole = np.eye(64, dtype=np.float32)
    damaged = damaged_vectors(whole, noise=0.5, seed=1)
    assert np.array_equal(damaged, damaged_vectors(whole, noise=0.5, seed=1))
    assert not np.array_equal(damaged, damaged_vectors(whole, noise=0.5, seed=2))
    assert np.linalg.norm(damaged, axis=1) == pytest.approx(np.ones(64), abs=1e-5)
    likeness = (damaged * whole).sum(axis=1)
    assert 0.7 < likeness.mean() < 0.95
    assert damaged_vectors(whole, noise=0.0, seed=1) == pytest.approx(whole)


def test_the_labeled_queries_have_answers_and_are_no_others():
    scenes = [corpus_scene(number) for number in range(3000)]
    for query in JUDGED:
        assert query.category in CATEGORIES
        answers = [one for one in scenes if query.matches(one)]
        assert answers, query.query_text
        assert all(query.admits(one) for one in answers), query.query_text
    assert [query.query_id for query in (*QUERIES, *JUDGED)] == list(range(1, 40))
    assert [query.query_id for query in JUDGED if query.scientific_terms] == [25, 28, 35]
    assert sorted(query.split for query in JUDGED) == ["test"] * 12 + ["val"] * 3
