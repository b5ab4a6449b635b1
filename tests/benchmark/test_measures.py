"""Names of measures: keys there and back, and what is refused."""

import pytest

from benchmark.scoring.measures import (
    DEFAULT_MEASURES,
    Measure,
    mean_name,
    parse_measure,
    parse_measures,
)

pytestmark = pytest.mark.pure


def test_keys_name_measures_and_measures_have_keys():
    for measure in DEFAULT_MEASURES:
        assert parse_measure(measure.key) == measure
    assert parse_measure(" nDCG@50 ") == Measure("nDCG", 50)
    assert parse_measure("AP@R") == Measure("AP@R")
    assert parse_measure("AP") == Measure("AP")


def test_means_have_names_of_their_own():
    names = {"AP@50": "mAP@50", "RR@10": "MRR@10", "AP@R": "mAP@R", "P@5": "P@5", "Rprec": "Rprec"}
    names |= {"Success@5": "hit@5", "AP": "mAP", "UncappedAP@5": "uncapped mAP@5"}
    assert {key: mean_name(parse_measure(key)) for key in names} == names


def test_a_list_keeps_its_order_and_names_each_once():
    assert parse_measures(["RR@5", "AP@5", "RR@5"]) == (Measure("RR", 5), Measure("AP", 5))


def test_what_makes_no_sense_is_refused():
    for text in ("", "nDCG", "AP@0", "AP@05", "ap@5", "AP@5.0", "Rprec@5", "F@5", "P@99999999"):
        with pytest.raises(ValueError, match=r"There is no measure|needs a cut-off"):
            parse_measure(text)
    for wrong in (("nDCG", None), ("AP", 0), ("Rprec", 5), ("F", 5)):
        with pytest.raises(ValueError, match=r"cut-off|no measure"):
            Measure(*wrong)
