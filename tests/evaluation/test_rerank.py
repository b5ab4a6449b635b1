"""What a second stage makes of an order."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.reranking.order import STEP, reranked

pytestmark = pytest.mark.pure

IDS = np.array([50, 10, 40, 20, 30], dtype=np.int64)


def test_what_lies_behind_the_depth_keeps_its_order():
    ranking = reranked(IDS, np.array([0.1, 0.9, 0.5]), depth=3)
    assert ranking.image_ids.tolist() == [10, 40, 50, 20, 30]
    assert ranking.scores.tolist() == [0.9, 0.5, 0.1, -2, -3]


def test_what_has_no_score_goes_behind_what_was_scored_in_the_first_order():
    ranking = reranked(IDS, np.array([np.nan, 0.2, np.nan, 0.7]), depth=4)
    assert ranking.image_ids.tolist() == [20, 10, 50, 40, 30]
    assert ranking.scores.tolist() == [0.7, 0.2, -2, -3, -4]


def test_equal_scores_keep_the_first_order_in_strictly_descending_scores():
    ranking = reranked(IDS, np.array([0.5, 1.0, 1.0, 1.0, 0.5]), depth=9)
    assert ranking.image_ids.tolist() == [10, 40, 20, 50, 30]
    assert ranking.scores == pytest.approx([1.0, 1 - STEP, 1 - 2 * STEP, 0.5, 0.5 - STEP])


def test_nothing_scored_is_the_first_order():
    ranking = reranked(IDS, np.full(5, np.nan), depth=5)
    assert ranking.image_ids.tolist() == IDS.tolist()
    assert reranked(IDS[:0], np.zeros(0), depth=5).image_ids.tolist() == []


@given(
    scores=st.lists(
        st.one_of(
            st.floats(-1, 1), st.sampled_from([0.0, 1.0, -1.0, 1e-9, 1 - 1e-9]), st.just(np.nan)
        ),
        max_size=300,
    ),
    extra=st.integers(0, 5),
)
def test_ranks_are_fixed_whatever_reads_the_scores(scores, extra):
    ids = np.arange(1000, 1000 - len(scores) - extra, -1, dtype=np.int64)
    ranking = reranked(ids, np.array(scores, dtype=np.float64), depth=len(scores))
    assert sorted(ranking.image_ids) == sorted(ids)
    # Also in the single precision of the field's tools.
    assert (np.diff(ranking.scores.astype(np.float32)) < 0).all()
    own = dict(zip(ids.tolist(), scores, strict=False))
    for place, (image_id, score) in enumerate(
        zip(ranking.image_ids.tolist(), ranking.scores.tolist(), strict=True)
    ):
        if score > -2:
            assert own[image_id] - place * STEP - 1e-12 <= score <= own[image_id]
        else:
            assert np.isnan(own.get(image_id, np.nan))
    values = [own[one] for one in ranking.image_ids.tolist() if not np.isnan(own.get(one, np.nan))]
    assert values == sorted(values, reverse=True)


def test_scores_that_cannot_be_are_refused():
    for scores in ([0.5], [0.1, 0.2, 0.3], [0.5, 1.2], [-3.0, 0.0]):
        with pytest.raises(ValueError, match=r"scores for|outside"):
            reranked(IDS, np.array(scores), depth=2)
