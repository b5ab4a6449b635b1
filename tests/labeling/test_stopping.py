"""The stop rules, at their exact edges."""

import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest

from labeling.candidates.stopping import StopState, stop_state

pytestmark = pytest.mark.pure

VECTORS = json.loads((Path(__file__).parent / "stopping_vectors.json").read_text())["cases"]
LETTERS = {"r": "relevant", "n": "not_relevant", "u": "unsure"}


def state(labels: str, *, length: int = 1000, complete: bool = False, required: int = 100):
    """The state after judging the first candidates in order: "+" relevant, "-" not, "?" unsure, "."
    none."""
    names = {"+": "relevant", "-": "not_relevant", "?": "unsure"}
    pairs = [(rank, names[mark]) for rank, mark in enumerate(labels, start=1) if mark != "."]
    return stop_state(pairs, length=length, complete=complete, streak_required=required)


@pytest.mark.parametrize(("negatives", "met"), [(99, False), (100, True), (101, True)])
@pytest.mark.parametrize("start", ["", "-+"])
def test_streak_is_met_at_exactly_100(start, negatives, met):
    result = state(start + "-" * (negatives - 1) + "?")  # unsure counts as a negative
    assert (result.streak, result.streak_met, result.met) == (negatives, met, met)
    assert result.rule == ("streak" if met else "none")


def test_every_count_of_a_small_list():
    assert state("+-+--?.-+", length=12, required=3) == StopState(
        length=12,
        judged=8,
        relevant=3,
        prefix=6,
        streak=3,
        required=3,
        streak_met=True,
        minimum=0,
        minimum_met=True,
        exhausted=False,
        remaining=4,
        next_rank=7,
        rule="streak",
    )


def test_a_gap_ends_the_prefix_and_filling_it_joins_what_follows():
    first = state("." + "-" * 150)
    assert (first.judged, first.prefix, first.streak, first.next_rank) == (150, 0, 0, 1)
    assert first.rule == "none"
    gap = state("+" + "-" * 60 + "." + "-" * 60)
    assert (gap.prefix, gap.streak, gap.rule, gap.next_rank) == (61, 60, "none", 62)
    filled = state("+" + "-" * 60 + "-" + "-" * 60)
    assert (filled.prefix, filled.streak, filled.rule, filled.next_rank) == (
        122,
        121,
        "streak",
        123,
    )


def test_a_relevant_image_after_the_stop_begins_a_new_streak():
    result = state("-" * 100 + "+")
    assert (result.streak, result.streak_met, result.rule) == (0, False, "none")
    assert state("-" * 100 + "+" + "-" * 100).rule == "streak"


def test_the_order_of_judging_does_not_matter():
    labels = [(rank, "relevant" if rank == 7 else "not_relevant") for rank in range(1, 108)]
    expected = stop_state(labels, length=500, complete=False)
    assert (expected.streak, expected.rule) == (100, "streak")
    random.Random(4).shuffle(labels)
    assert stop_state(iter(labels), length=500, complete=False) == expected


@pytest.mark.parametrize("case", VECTORS, ids=[case["name"] for case in VECTORS])
def test_what_the_labeling_page_must_say_too(case):
    given = case["input"]
    labels = [
        (rank, LETTERS[letter])
        for rank, letter in enumerate(given["relevance"], start=1)
        if letter != "-"
    ]
    result = stop_state(
        labels,
        length=len(given["relevance"]),
        complete=given["complete"],
        streak_required=given["required"],
        minimum=given["minimum"],
        withdrawn=given["withdrawn"],
        outside_list=[rank for rank, one in enumerate(given["sources"], start=1) if one in "sm"],
    )
    assert asdict(result) == case["expected"]
    assert result.met == (case["expected"]["rule"] != "none")


def test_ranks_judged_elsewhere_mean_nothing_without_a_label():
    labels = [(1, "relevant"), (2, "not_relevant")]
    expected = stop_state(labels, length=5, complete=False)
    assert stop_state(labels, length=5, complete=False, outside_list=[3, 5]) == expected


@pytest.mark.parametrize(
    ("labels", "complete", "rule", "remaining", "next_rank"),
    [
        ("+-?", True, "exhausted", 0, None),
        # Cut, or with one judgment missing, it isn't exhausted.
        ("+-?", False, "none", 0, None),
        ("+.-", True, "none", 1, 2),
        # Exhausted wins over the streak.
        ("-" * 100, True, "exhausted", 0, None),
        ("", True, "none", 0, None),
        (".....", False, "none", 5, 1),
    ],
)
def test_a_complete_list_labeled_whole_is_exhausted(labels, complete, rule, remaining, next_rank):
    result = state(labels, length=len(labels), complete=complete)
    assert (result.rule, result.remaining, result.next_rank) == (rule, remaining, next_rank)
    assert (result.exhausted, result.met) == (rule == "exhausted", rule != "none")


def test_what_is_impossible_is_refused():
    for labels, message in (
        ([(1, "unsure"), (1, "unsure")], "rank 1 is labeled twice"),
        ([(0, "unsure")], "rank 0 is outside 1..5"),
        ([(6, "unsure")], "rank 6 is outside 1..5"),
        ([(2, "maybe")], "unknown relevance at rank 2: 'maybe'"),
    ):
        with pytest.raises(ValueError, match=message):
            stop_state(labels, length=5, complete=False)
    for setting, message in (
        ({"length": -1}, "length"),
        ({"streak_required": 0}, "streak_required"),
        ({"minimum": -1}, "minimum"),
        ({"withdrawn": [2]}, "rank 2 is outside 1..1"),
    ):
        with pytest.raises(ValueError, match=message):
            stop_state([], **({"length": 1, "complete": False} | setting))
