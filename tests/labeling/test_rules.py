"""The rules that allow to hand in a query: one or several, met together or alone."""

from __future__ import annotations

import pytest

from labeling.candidates.rules import Evidence, HandInState, parse_rule
from labeling.candidates.stopping import stop_state

pytestmark = pytest.mark.pure


def state(
    text: str, *, negatives: int, certified: float | None = 0.0, length: int = 9, minimum: int = 0
) -> HandInState:
    """The rule after so many negatives of a list, with a streak of 3."""
    labels = [(rank, "not_relevant") for rank in range(1, negatives + 1)]
    stop = stop_state(labels, length=length, complete=True, streak_required=3, minimum=minimum)
    return parse_rule(text).state(
        Evidence(stop, lambda recall, _: ((certified or 0) >= recall, certified))
    )


class TestRules:
    @pytest.mark.parametrize(
        ("text", "written"),
        [
            ("streak or exhausted", "streak or exhausted"),
            (" Streak  OR\texhausted ", "streak or exhausted"),
            ("certificate:0.90", "certificate:0.9"),
            (
                "streak and certificate:.9:0.99 or exhausted",
                "streak and certificate:0.9:0.99 or exhausted",
            ),
        ],
    )
    def test_are_written_one_way(self, text, written):
        assert str(parse_rule(text)) == written
        assert parse_rule(written) == parse_rule(text)

    @pytest.mark.parametrize(
        "text",
        [
            "", "luck", "streak or", "streak exhausted", "streak:100", "certificate",
            "certificate:1", "certificate:nan", "certificate:90", "certificate:0.9:0",
            "certificate:0.9:0.9:0.9", "certificate:x", "(streak)",
        ],
    )  # fmt: skip
    def test_others_are_refused_with_those_that_are_known(self, text):
        with pytest.raises(ValueError, match=r"The rules are streak, certificate:0\.9, exhausted"):
            parse_rule(text)

    @pytest.mark.parametrize(
        ("text", "negatives", "certified", "met_by"),
        [
            ("streak or exhausted", 2, 1, ""),
            ("streak or exhausted", 3, 0, "streak"),
            ("streak or exhausted", 9, 0, "exhausted"),
            ("exhausted or streak", 9, 0, "exhausted"),
            ("exhausted", 3, 1, ""),
            ("certificate:0.9 or exhausted", 3, 0.8, ""),
            ("certificate:0.9 or exhausted", 0, 0.9, "certificate:0.9:0.95"),
            ("certificate:0.9 or exhausted", 9, 0.9, "exhausted"),
            ("streak and certificate:0.9:0.99", 3, 0.8, ""),
            ("streak and certificate:0.9:0.99", 2, 0.9, ""),
            ("streak and certificate:0.9:0.99", 3, 0.9, "streak and certificate:0.9:0.99"),
            ("streak and certificate:0.9 or certificate:0.5", 2, 0.9, "certificate:0.5:0.95"),
        ],
    )
    def test_are_met_together_or_by_one_of_several(self, text, negatives, certified, met_by):
        found = state(text, negatives=negatives, certified=certified)
        assert (found.met_by, found.met) == (met_by, met_by != "")

    def test_say_what_is_missing(self):
        found = state("streak and certificate:0.9 or exhausted", negatives=2, certified=0.899)
        assert found.unmet == (
            "The stop rule “streak and certificate:0.9 or exhausted” isn't met: "
            "2 of 3 negatives in a row and 89 % of 90 % recall certified, "
            "or 2 of 9 images labeled."
        )
        # Not what is there.
        found = state("streak and certificate:0.9", negatives=3, certified=None)
        assert found.unmet.endswith("isn't met: nothing found, so no recall is certified.")
        found = state("streak", negatives=3, minimum=500)
        assert found.unmet.endswith("isn't met: 3 of 3 negatives in a row, 3 of 500 labels.")

    def test_the_audits_aim_at_the_highest_recall(self):
        rule = parse_rule("certificate:0.5 and streak or certificate:0.8:0.99")
        assert str(rule.certificate) == "certificate:0.8:0.99"
        assert parse_rule("streak").certificate is None
