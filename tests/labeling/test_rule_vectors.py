"""How hand-in rules stand: tests/js/rules.test.js holds the page to the same cases."""

import json
from pathlib import Path
from typing import Any

import pytest

from labeling.candidates.rules import Evidence, parse_rule
from labeling.candidates.stopping import stop_state

pytestmark = pytest.mark.pure

CASES = json.loads((Path(__file__).parent / "rule_vectors.json").read_text())["cases"]
NAMES = {"r": "relevant", "n": "not_relevant", "u": "unsure"}


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['rule']}: {case['relevance']}")
def test_a_rule_stands_as_the_shared_case_says(case: dict[str, Any]) -> None:
    relevance = case["relevance"]
    stop = stop_state(
        [(rank, NAMES[letter]) for rank, letter in enumerate(relevance, 1) if letter != "-"],
        length=len(relevance),
        complete=case["complete"],
        streak_required=case["required"],
        minimum=case["minimum"],
    )
    evidence = Evidence(stop, lambda recall, confidence: (case["certified"], 0.5))
    found = parse_rule(case["rule"]).state(evidence)
    assert [[[one.rule, one.met] for one in way.rules] for way in found.ways] == case["ways"]
    assert found.met is case["met"]
