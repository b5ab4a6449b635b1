"""Rank correlations: values by hand, ties, what is missing and what isn't defined."""

from pathlib import Path

import numpy as np
import pytest

from evaluation.scoring.measures import mean_title
from evaluation.scoring.metrics import HitRanks, recall_at_k, success_at_k
from evaluation.scoring.significance import tau_b
from extras.correlations.matrix import correlations, read_scores
from extras.correlations.selectors import OF_TABLE_5, USUAL

pytestmark = pytest.mark.pure


def test_values_by_hand():
    assert tau_b([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert tau_b([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    # Of six pairs five agree and one doesn't.
    assert tau_b([1, 2, 3, 4], [1, 2, 4, 3]) == pytest.approx(4 / 6)
    # Ties: 2 agree, 0 disagree, 1 is tied in the first list: 2 / sqrt(2 x 3).
    assert tau_b([1, 1, 2], [1, 2, 3]) == pytest.approx(2 / 6**0.5)


def test_what_is_not_defined_is_none():
    for lists in (([], []), ([1.0], [2.0]), ([1, 1], [1, 2])):
        assert tau_b(*lists) is None
    assert correlations({}).taus == []


def test_columns_are_compared_on_what_both_have():
    found = correlations(
        {
            "mAP@50": {"a": 0.1, "b": 0.2, "c": 0.3, "d": None},
            "MRR@50": {"a": 0.5, "b": 0.4, "d": 0.9},
            "P@50": {"c": 0.1, "a": float("nan")},
        }
    )
    assert found.names == ["mAP@50", "MRR@50", "P@50"]
    assert found.taus == [[1, -1, None], [-1, 1, None], [None, None, None]]
    assert found.counts == [[3, 2, 1], [2, 3, 0], [1, 0, 1]]


#: The upper triangle of the paper's table 5, by the columns of its table 4; its Kendall's tau-b.
TABLE_5 = {
    "ECCV mAP@R": [0.90, 0.74, 0.39, 0.47, 0.39, 0.20, 0.52],
    "ECCV R-P": [0.65, 0.30, 0.39, 0.30, 0.17, 0.43],
    "ECCV R@1": [0.65, 0.72, 0.65, 0.29, 0.77],
    "CxC R@1": [0.89, 1.00, 0.45, 0.84],
    "COCO 1K R@1": [0.89, 0.45, 0.94],
    "COCO 5K R@1": [0.45, 0.84],
    "PMRP": [0.43],
}


def test_table_4_of_the_paper_gives_its_table_5():
    with (Path(__file__).parent / "eccv_table4.csv").open("rb") as file:
        columns, errors = read_scores(file, name="eccv_table4.csv")
    assert not errors

    def wrong():
        found = correlations(columns)
        assert {count for row in found.counts for count in row} == {25}
        return {
            (one, other)
            for place, one in enumerate(found.names)
            for at, other in enumerate(found.names[place + 1 :])
            if f"{found.taus[place][place + 1 + at]:.2f}" != f"{TABLE_5[one][at]:.2f}"
        }

    assert wrong() == {(one, "PMRP") for one in ("ECCV R@1", "COCO 1K R@1")} | {("PMRP", "RSUM")}
    # Two models whose PMRP table 4 prints alike; with the one that other measures prefer first, all
    # 28 cells are the paper's.
    assert columns["PMRP"]["VSE∞ (WSL grid)"] == columns["PMRP"]["PCME (CutMix pre-trained)"]
    columns["PMRP"]["VSE∞ (WSL grid)"] += 0.001
    assert wrong() == set()


def test_what_the_paper_calls_recall_is_hit_at_k_here():
    # Its indicator for a caption with two positives, one of them among the first k.
    ranks, totals = HitRanks.of([[False, True, False]]), np.array([2])
    assert success_at_k(ranks, 2).tolist() == [1]
    assert recall_at_k(ranks, totals, 2).tolist() == [0.5]
    hits = [key for key in OF_TABLE_5 if key.startswith("Success@")]
    assert [mean_title(key) for key in hits] == ["hit@1", "hit@5", "hit@10"]
    for usual in USUAL.values():
        assert {*OF_TABLE_5, "R@5", "R@10"} <= {*usual}


def test_a_table_of_scores_is_refused_by_line_and_column():
    columns, errors = read_scores([b"model,a,b\r\n", b'"x, y",1,\r\n'], name="t.csv")
    assert (columns, errors) == ({"a": {"x, y": 1.0}, "b": {"x, y": None}}, [])
    lines = [b"model,a,b\n", b"x,1,nan\n", b"x,one,2\n", b"y,1\n"]
    _, errors = read_scores(lines, name="t.csv")
    assert [(one.line, one.field) for one in errors] == [(2, "b"), (3, "model"), (3, "a"), (4, "")]
    for lines in ([], [b"model,a\n"], [b"model,a,a\n", b"x,1,2\n"], [b"\xff\xfem"]):
        assert read_scores(lines, name="t.csv")[1]
