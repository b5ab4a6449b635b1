"""The demo's release: labels from the truth, scores that are damaged the same way each time."""

from collections import Counter

import numpy as np
import pytest

from demo.corpus import corpus_scene
from demo.queries import JUDGED, QUERIES
from demo.release import damaged_run, simulated_labels
from evaluation.scoring.run_files import Ranking
from labeling.queries.categories import CATEGORIES

pytestmark = pytest.mark.pure


def test_labels_end_after_a_streak_of_negatives_but_not_before_the_least():
    ranked = list(range(1, 11))
    labels = simulated_labels(ranked, {2, 5}, minimum=0, streak=3)
    assert labels == [(image, image in (2, 5)) for image in range(1, 9)]
    assert len(simulated_labels(ranked, {2}, minimum=7, streak=3)) == 7
    assert len(simulated_labels(ranked, set(), minimum=0, streak=3)) == 3
    assert len(simulated_labels(ranked, {9}, minimum=10, streak=3)) == 10
    assert simulated_labels([], {1}, minimum=5, streak=3) == []


def test_scores_are_damaged_the_same_way_each_time():
    ids = np.arange(1000, dtype=np.int64)
    rankings = {number: Ranking(ids, np.linspace(1, 0, 1000)) for number in (4, 7)}
    damaged = damaged_run(rankings).read()
    assert damaged == damaged_run(rankings).read()
    lines = [line.split() for line in damaged.decode().splitlines()]
    assert Counter(line[0] for line in lines) == {"4": 500, "7": 500}
    order = [int(line[2]) for line in lines[:500]]
    assert order != list(range(500))
    # The noise moves an image by some fifty places, not to the other end.
    assert max(abs(rank - image) for rank, image in enumerate(order)) < 400


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
