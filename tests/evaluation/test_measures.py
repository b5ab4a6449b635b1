"""Names of measures: keys there and back, and what is refused."""

import re
from pathlib import Path

import pytest

from evaluation.scoring import hidden_labels
from evaluation.scoring.measures import (
    DEFAULT_MEASURES,
    HEADLINES,
    KINDS,
    Measure,
    mean_title,
    parse_measure,
    parse_measures,
)

pytestmark = pytest.mark.pure

GUIDE = Path(__file__).parents[2] / "docs" / "leaderboard.md"


def test_keys_name_measures_and_measures_have_keys():
    for measure in DEFAULT_MEASURES:
        assert parse_measure(measure.key) == measure
    assert parse_measure(" nDCG@50 ") == Measure("nDCG", 50)
    assert parse_measure("AP@R") == Measure("AP@R")
    assert parse_measure("AP") == Measure("AP")


def test_means_have_names_of_their_own():
    names = {"AP@50": "mAP@50", "RR@10": "MRR@10", "AP@R": "mAP@R", "P@5": "P@5", "Rprec": "Rprec"}
    names |= {"Success@5": "hit@5", "AP": "mAP", "UncappedAP@5": "uncapped mAP@5"}
    assert {key: parse_measure(key).mean_name for key in names} == names


def test_a_list_keeps_its_order_and_names_each_once():
    assert parse_measures(["RR@5", "AP@5", "RR@5"]) == (Measure("RR", 5), Measure("AP", 5))


def test_what_makes_no_sense_is_refused():
    for text in ("", "nDCG", "AP@0", "AP@05", "ap@5", "AP@5.0", "Rprec@5", "F@5", "P@99999999"):
        with pytest.raises(ValueError, match=r"There is no measure|needs a cut-off"):
            parse_measure(text)
    for wrong in (("nDCG", None), ("AP", 0), ("Rprec", 5), ("F", 5)):
        with pytest.raises(ValueError, match=r"cut-off|no measure"):
            Measure(*wrong)


def test_every_measure_has_a_source_and_a_row_in_the_guide():
    assert all(kind.source for kind in KINDS.values())
    rows = re.findall(r"^\| (`.*?) \|", GUIDE.read_text(), re.MULTILINE)
    named = [key for row in rows for key in re.findall("`([^`]+)`", row)]
    assert sorted(named) == sorted(KINDS)


def test_the_headlines_are_those_of_the_paper_and_hidden_labels_show_two():
    assert HEADLINES == {
        "full": ("AP@50", "nDCG@50", "RR@50"),
        "rerank": ("AP@100", "nDCG@100", "RR@100"),
    }
    assert (hidden_labels.MEASURES, hidden_labels.DEPTH) == (("AP@50", "nDCG@50"), 50)
    titles = {task: [mean_title(key, task) for key in keys] for task, keys in HEADLINES.items()}
    assert titles == {"full": ["mAP@50", "nDCG@50", "MRR@50"], "rerank": ["AP", "nDCG", "MRR"]}


def test_more_judged_images_are_no_better_ranking():
    neither = [key for key, kind in KINDS.items() if not kind.more_is_better]
    assert neither == ["Judged@k", "RBPresidual"]
    assert [key for key, kind in KINDS.items() if not kind.in_percent] == ["RR@k"]
