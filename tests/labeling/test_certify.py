"""The command `certify`: anybody's numbers, and no database."""

import json
from io import StringIO

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

pytestmark = pytest.mark.pure

USUAL = {"found": 30, "unjudged": 4500, "drawn": 300, "hits": 0}


def certify(*arguments: str, **counts: object) -> str:
    output = StringIO()
    options = [part for name, value in counts.items() for part in (f"--{name}", str(value))]
    call_command("certify", *options, *arguments, stdout=output)
    return output.getvalue().strip()


def test_the_bound_of_one_round():
    assert json.loads(certify("--json", **USUAL)) == {
        "missing_at_most": 43,
        "recall_at_least": 30 / 73,
        "more_without_hit": 2138,
    }


def test_the_sentence():
    said = certify(**USUAL)
    assert said.startswith("Found 30. Of 4,500 unjudged images 300, drawn at random, were judged;")
    assert said.endswith("About 2,140 more without a hit would certify 90 %.")


def test_earlier_rounds_count():
    one = json.loads(certify("--json", **(USUAL | {"found": 31, "unjudged": 4300})))
    two = json.loads(
        certify("--json", "--round", "30,4500,100,0", **(USUAL | {"found": 31, "unjudged": 4300}))
    )
    assert two["missing_at_most"] < one["missing_at_most"]


def test_other_targets_confidences_and_hits():
    found = json.loads(certify("--json", **USUAL, target=0.95, confidence=0.99))
    assert found["missing_at_most"] == 66
    assert found["more_without_hit"] > 3581 - 300
    found = json.loads(certify("--json", **(USUAL | {"hits": 2})))
    assert found["recall_at_least"] == 32 / (32 + found["missing_at_most"])
    assert json.loads(certify("--json", **(USUAL | {"found": 0})))["recall_at_least"] is None


def test_bad_numbers_are_refused_by_option():
    for options, words in (
        ({"drawn": 4501}, r"--drawn must be at most unjudged \(4500\): 4501"),
        ({"hits": -1}, "argument --hits: '-1' is not a whole number from 0"),
        ({"round": "30,4500,300"}, "argument --round: '30,4500,300' is not FOUND,UNJUDGED,"),
        ({"round": "30,10,20,0"}, r"argument --round: drawn must be at most unjudged \(10\): 20"),
        ({"round": "31,4900,20,0"}, r"--found of round 2 must be at least .* \(31\): 30"),
        ({"confidence": 95}, "--confidence must lie between 0 and 1: 95"),
        ({"target": "nan"}, "--target must lie between 0 and 1: nan"),
    ):
        with pytest.raises(CommandError, match=words):
            certify(**(USUAL | options))
