"""The stop rules and the active clock in the browser."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from playwright.sync_api import Page

from labeling.candidates.rules import Evidence, HandInState, parse_rule
from labeling.candidates.stopping import stop_state

pytestmark = pytest.mark.e2e

VECTORS = Path(__file__).parents[1] / "labeling" / "stopping_vectors.json"

STATES = """async (inputs) => {
  const { stopState } = await import("/static/js/studio/stopping.js");
  return inputs.map((input) => stopState(input.relevance, input.sources, input));
}"""
REFUSAL = """async ([relevance, options]) => {
  const { stopState } = await import("/static/js/studio/stopping.js");
  try {
    stopState(relevance, relevance, { complete: false, required: 3, ...options });
  } catch (error) {
    return error.name;
  }
  return null;
}"""
RULES = """async ([handIns, progress, list]) => {
  const { handInState } = await import("/static/js/studio/rules.js");
  return handIns.map((handIn) => handInState(handIn, progress, list));
}"""
CLOCK = """async (steps) => {
  const { ActiveClock } = await import("/static/js/studio/clock.js");
  let now = 0;
  const target = new EventTarget();
  const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
  const clock = new ActiveClock({ now: () => now, target, page });
  const taken = [];
  for (const [seconds, what] of steps) {
    now += seconds * 1000;
    if (what === "take") taken.push(clock.take());
    else if (what === "hide" || what === "show") {
      page.visibilityState = what === "hide" ? "hidden" : "visible";
      page.dispatchEvent(new Event("visibilitychange"));
    } else target.dispatchEvent(new Event(what));
  }
  return [taken, clock.total];
}"""


def test_the_browser_says_what_the_server_says_of_every_shared_case(
    script_page: Page,
) -> None:
    cases = json.loads(VECTORS.read_text())["cases"]
    assert len(cases) > 30
    states = script_page.evaluate(STATES, [case["input"] for case in cases])
    for case, state in zip(cases, states, strict=True):
        assert {key: state[key] for key in case["expected"]} == case["expected"], case["name"]
        assert state["met"] is (case["expected"]["rule"] != "none")
        visible = [
            letter
            for rank, letter in enumerate(case["input"]["relevance"], start=1)
            if rank not in case["input"]["withdrawn"]
        ]
        assert state["unsure"] == visible.count("u")
    for relevance, options in (
        ("rx", {}),
        ("rn", {"withdrawn": [3]}),
        ("rn", {"withdrawn": [0]}),
        ("rn", {"minimum": -1}),
        ("rn", {"required": 0}),
    ):
        assert script_page.evaluate(REFUSAL, [relevance, options]) == "RangeError"
    assert script_page.evaluate(REFUSAL, ["rn", {}]) is None


def test_a_long_list_is_counted_as_by_the_server(script_page: Page) -> None:
    relevance = ("r" + "n" * 7 + "u") * 500 + "n" * 120 + "-" + "n" * 200
    names = {"r": "relevant", "n": "not_relevant", "u": "unsure"}
    state = stop_state(
        [(rank, names[x]) for rank, x in enumerate(relevance, start=1) if x != "-"],
        length=len(relevance),
        complete=True,
        minimum=500,
    )
    given = {
        "relevance": relevance,
        "sources": relevance.translate(str.maketrans("rnu", "lll")),
        "complete": True,
        "required": 100,
        "minimum": 500,
    }
    [found] = script_page.evaluate(STATES, [given])
    assert (found["streak"], found["prefix"], found["rule"]) == (128, 4620, "streak")
    for name in ("judged", "relevant", "prefix", "streak", "remaining", "next_rank", "rule"):
        assert found[name] == getattr(state, name)


def test_the_clock_counts_while_the_page_is_seen_and_somebody_acts(
    script_page: Page,
) -> None:
    cases = [
        ([(3, "keydown"), (2, "take"), (4, "take")], [5, 4]),
        # Of a pause of 100 s, 30 s count; what follows the next act counts again.
        ([(10, "keydown"), (100, "pointermove"), (5, "take")], [45]),
        # The same pause with judgments taken within it, without an act.
        ([(10, "keydown"), (20, "take"), (80, "take"), (0, "keydown"), (1, "take")], [30, 10, 1]),
        ([(5, "hide"), (60, "show"), (2, "take")], [7]),
        ([(5, "hide"), (60, "keydown"), (5, "show"), (40, "take")], [35]),
        ([(31, "wheel"), (29, "touchstart"), (0, "take"), (31, "take")], [59, 30]),
    ]
    for steps, taken in cases:
        assert script_page.evaluate(CLOCK, steps) == [taken, sum(taken)]


@pytest.mark.parametrize("streak", [2, 3])
@pytest.mark.parametrize("certified", [False, True])
def test_the_browser_counts_what_it_can_of_a_rule(
    script_page: Page, streak: int, certified: bool
) -> None:
    texts = (
        "streak", "exhausted", "certificate:0.9", "streak or exhausted",
        "streak and certificate:0.9 or exhausted", "certificate:0.8 or exhausted and streak",
    )  # fmt: skip

    def told(negatives: int) -> list[HandInState]:
        labels = [(rank, "not_relevant") for rank in range(1, negatives + 1)]
        stop = stop_state(labels, length=9, complete=True, streak_required=3)
        evidence = Evidence(stop, lambda recall, confidence: (certified, 0.5))
        return [parse_rule(text).state(evidence) for text in texts]

    # The page had the rule before anything was labeled.
    stop = {
        "rule": "streak" if streak == 3 else "none", "streak_met": streak == 3, "minimum": 0,
        "minimum_met": True, "exhausted": False, "required": 3,
    }  # fmt: skip
    progress = {"stop": stop, "streak": streak, "judged": streak, "candidates": 9, "remaining": 6}
    whole = {"complete": True, "size": 9, "total": 9, "unembedded": 0}
    given = [asdict(one) for one in told(0)]
    found = script_page.evaluate(RULES, [given, progress, whole])
    expected = told(streak)
    assert [one["met"] for one in found] == [one.met for one in expected]
    for state, text, one in zip(expected, texts, found, strict=True):
        asks = "certificate" in text and not state.met and streak == 3
        assert (one["pause"], bool(one["wanting"])) == (asks, not state.met)
        holds = [rule.met for way in state.ways for rule in way.rules]
        assert [row["holds"] for row in one["rows"]] == holds
