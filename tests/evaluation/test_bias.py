"""The bias of a pool: the paper's example, a toy by hand, and sentences."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluation.scoring.bias import bias_of, found_by_model, pool_bias, read_tops
from evaluation.scoring.measures import Measure
from releases.snapshot.qrels import Qrels
from tests.evaluation.runs import rankings

pytestmark = pytest.mark.pure

#: Text-to-image Recall@1 by the labels of one annotator model (a column each) and of all, with the
#: rows PVSE, VSRN, PCME, ViLT, CLIP. Source: Chun et al. 2022, table E.1 (a).
PAPER = np.array(
    [
        [76.5, 63.6, 67.6, 45.3, 42.0, 76.6],
        [68.0, 80.1, 69.0, 51.1, 47.2, 80.1],
        [67.7, 64.3, 77.3, 46.0, 44.1, 77.4],
        [59.5, 59.8, 58.8, 62.0, 49.3, 72.4],
        [51.7, 51.5, 52.6, 42.8, 49.3, 64.3],
    ]
)
AP = Measure("AP", 2)


def test_the_paper_s_example_of_its_bias():
    """Equation E.6 and the two sentences after it; the paper prints 9.5, 0.1 and 11.8."""
    found = bias_of(PAPER[:, 5], PAPER[:, 0], np.array([True, False, False, False, False]))
    assert found.whole == pytest.approx(9.48)
    assert found.own == pytest.approx(0.1)
    assert found.others == pytest.approx(11.825)


@pytest.fixture
def qrels() -> Qrels:
    """Query 1: image 1 is found by both models, 2 by a alone, 3 by b alone, 4 by none. Query 2:
    image 5 is found by b alone."""
    return Qrels.from_pairs(
        [1, 2],
        [(1, 1, True), (1, 2, True), (1, 3, True), (1, 4, True), (1, 9, False), (2, 5, True)],
    )


TOPS = {
    "a": {1: np.array([2, 1, 9])},
    "b": {1: np.array([3, 1, 8]), 2: np.array([5])},
    "c": {1: np.array([1])},
}
#: The runs of a and of b, one of neither, and one that finds nothing.
RUNS = {
    10: rankings({1: [2, 1], 2: [7, 6]}),
    20: rankings({1: [3, 1], 2: [5, 6]}),
    30: rankings({1: [4, 8], 2: [5, 6]}),
    40: rankings({1: [8, 7], 2: [7, 6]}),
}


def test_each_model_is_left_out(qrels):
    assert found_by_model(qrels, TOPS).astype(int).tolist() == [
        [1, 1, 0, 0, 1, 0],
        [1, 0, 1, 0, 0, 1],
        [1, 0, 0, 0, 0, 0],
    ]
    found = pool_bias(RUNS, qrels, TOPS, {"a": [10], "b": [20]}, AP)
    assert list(found.scores.values()) == [0.5, 1, 0.75, 0]
    assert (found.queries, found.relevant, found.outside) == (2, 5, 1)
    a, b, c = found.models
    assert [(one.model, one.found, one.unique) for one in found.models] == [
        ("a", 2, 1),
        ("b", 3, 2),
        ("c", 1, 0),
    ]
    # Without image 2 the run of a has one hit, at rank 2 of min(2, 3): 1/2 / 2, over two queries.
    assert list(a.without.scores.values()) == [0.125, 1, 0.75, 0]
    assert (a.without.queries, a.without.tau) == (2, 1)
    assert (a.without.bias.own, a.without.bias.others) == (0, 0.375 / 3)
    # Without b query 2 has no relevant image, and query 1 has 1, 2 and 4.
    assert list(b.without.scores.values()) == [1, 0.25, 0.5, 0]
    assert b.without.queries == 1
    # Of six pairs of runs three keep their order.
    assert b.without.tau == pytest.approx(0)
    # c alone: images 1 and, which no model finds, 4.
    assert list(c.alone.scores.values()) == [0.25, 0.25, 0.5, 0]
    assert c.without.scores == found.scores
    assert c.alone.bias.own is None
    assert c.alone.bias.whole == pytest.approx((0.25 + 0.75 + 0.25 + 0) / 4)
    assert found.sentence.startswith("Rankings depend on the pool: without b τ-b is 0.00, below")


def test_grades_count_in_the_labels_without_a_model():
    graded = Qrels.from_arrays([1], [1, 1, 1], [1, 2, 3], [True] * 3, [3, 1, 2])
    tops = {"a": {1: np.array([1, 2])}, "b": {1: np.array([3])}}
    [_, b] = pool_bias({10: rankings({1: [2, 1]})}, graded, tops, {}, Measure("nDCG", 2)).models
    # Images 1 and 2 are left, of the grades 3 and 1; the run has them the other way round.
    expected = (1 + 3 / np.log2(3)) / (3 + 1 / np.log2(3))
    assert b.without.scores[10] == pytest.approx(expected)


def test_sentences_say_what_is_true(qrels):
    def sentence(runs, tops, qrels=qrels):
        return pool_bias(runs, qrels, tops, {}, AP).sentence

    few = {name: TOPS[name] for name in ("a", "c")}
    stable = "Rankings are stable: leaving out any one model keeps τ-b ≥ 0.95."
    assert sentence(RUNS, few) == stable
    assert sentence({run: RUNS[run] for run in (10, 20)}, few).startswith("2 runs can’t show")
    assert "come from a alone" in sentence(RUNS, {"a": TOPS["a"]})
    assert "no model that is known" in sentence(RUNS, {})
    assert "the same score" in sentence(dict.fromkeys((10, 20, 30), RUNS[10]), few)
    # Nothing is left where a alone found everything.
    lonely = Qrels.from_pairs([1], [(1, 2, True)])
    [a, _] = pool_bias(RUNS, lonely, few, {}, AP).models
    assert (a.without.queries, a.without.tau, a.without.bias.whole) == (0, None, None)
    assert "the same score" in sentence(RUNS, few, lonely)


def write_ranks(path, *rows):
    """A release's table of query id, image id, model and rank."""
    columns = zip(*rows, strict=True)
    names = ("query_id", "image_id", "model", "rank")
    pq.write_table(pa.table(dict(zip(names, map(list, columns), strict=True))), path)


def test_the_ranks_of_models_are_read_from_a_file(tmp_path):
    path = tmp_path / "model_ranks.parquet"
    write_ranks(
        path, (2, 5, "b", 1), (1, 3, "b", 50), (1, 1, "b", 51), (1, 1, "a", 2), (1, 1, "c", 99)
    )
    found = read_tops(path, 50)
    assert {
        model: {query: ids.tolist() for query, ids in top.items()} for model, top in found.items()
    } == {"a": {1: [1]}, "b": {1: [3], 2: [5]}, "c": {}}
