"""The question, its score and its price, on exact numbers."""

import hashlib
import math

import pytest

from evaluation.reranking.multimodal.answers import Prices, dollars
from evaluation.reranking.multimodal.prompt import (
    NoAnswer,
    Usage,
    checked_template,
    prompt_for,
    prompt_sha256,
    score_from_logprobs,
)

pytestmark = pytest.mark.pure

LOG = math.log


def test_the_prompt_is_the_papers():
    assert prompt_for("a mongoose standing upright alert") == (
        "Does this image show a mongoose standing upright alert? "
        'Answer with "Yes" or "No" and nothing else.'
    )
    for text in ("red fox showing mange ", "  two storks. ", 'a "la gruta"', "a {query} in braces"):
        assert prompt_for(text).startswith(f"Does this image show {text.strip()}? Answer")
    assert prompt_sha256("ä") == hashlib.sha256("ä".encode()).hexdigest()


def test_another_prompt_needs_a_place_for_the_query():
    template = checked_template(" USER: Is this {query}?\r\nASSISTANT:\n")
    assert template == "USER: Is this {query}?\nASSISTANT:"
    assert prompt_for(" a stork ", template) == "USER: Is this a stork?\nASSISTANT:"
    for text, refusal in (
        ("Is this a stork?", r"needs \{query\} where the query’s text goes"),
        ("{query}" * 1000, "7,000 characters; at most 4,000"),
        ("Is this {query}?\x00", "control characters"),
    ):
        with pytest.raises(ValueError, match=refusal):
            checked_template(text)


def test_the_score_is_yes_against_no():
    score = score_from_logprobs([("Yes", LOG(0.6)), ("No", LOG(0.2)), ("The", LOG(0.1))])
    assert (score.yes, score.no) == (LOG(0.6), LOG(0.2))
    assert score.score == pytest.approx(0.75, abs=1e-15)


def test_spellings_of_an_answer_count_together():
    tokens = ["Yes", " yes", "YES", "Yes.", "\u2581Yes", "\u0120Yes", '"Yes', "\u010ayes", "\nYes"]
    shares = [0.1, 0.05, 0.05, 0.1, 0.1, 0.05, 0.05, 0.05, 0.05]
    others = [("No", 0.15), (" no.", 0.05), ("Not", 0.1), ("Yesterday", 0.05), ("Nope", 0.05)]
    pairs = [*zip(tokens, shares, strict=True), *others]
    score = score_from_logprobs([(token, LOG(share)) for token, share in pairs])
    assert score.yes == pytest.approx(LOG(0.6), abs=1e-12)
    assert score.no == pytest.approx(LOG(0.2), abs=1e-12)
    assert score.score == pytest.approx(0.75, abs=1e-12)


def test_an_answer_that_is_not_reported_counts_as_the_smallest_that_is():
    pairs = [("Yes", LOG(0.8)), ("The", LOG(0.1)), ("It", LOG(0.05))]
    score = score_from_logprobs(pairs)
    assert score.no is None
    assert score.score == pytest.approx(0.8 / 0.85, abs=1e-12)
    score = score_from_logprobs([(token.replace("Yes", "No"), value) for token, value in pairs])
    assert score.yes is None
    assert score.score == pytest.approx(0.05 / 0.85, abs=1e-12)
    # An impossible spelling counts for nothing.
    score = score_from_logprobs([("Yes", LOG(0.5)), ("No", -math.inf), ("The", LOG(0.25))])
    assert score.no is None
    assert score.score == pytest.approx(0.5 / 0.75, abs=1e-12)


def test_extreme_log_probabilities_stay_within_0_and_1():
    assert score_from_logprobs([("Yes", 0.0), ("No", -9999.0)]).score == 1.0
    assert score_from_logprobs([("Yes", -9999.0), ("No", 0.0)]).score == 0.0
    assert score_from_logprobs([("Yes", -9999.0), ("yes", -9999.0), ("No", -9999.0)]).score == (
        pytest.approx(2 / 3)
    )


def test_neither_yes_nor_no_is_no_score():
    for pairs in ([], [("Perhaps", -0.1), ("The", -3.0)], [("Yes", -math.inf)]):
        with pytest.raises(NoAnswer, match="neither yes nor no"):
            score_from_logprobs(pairs)


def test_tokens_cost_their_price():
    usage = Usage(1, 800, 1) + Usage(1, 1200, 3)
    assert usage == Usage(2, 2000, 4)
    assert Prices(2.5, 10.0).cost(usage) == pytest.approx(0.00504)
    assert Prices(0, 0).cost(usage) == 0
    assert Prices(2.5, None).cost(usage) is None
    amounts = {0: "$0.00", 0.5: "$0.50", 0.0241: "$0.0241", 0.01005: "$0.01", 1234.567: "$1,234.57"}
    assert {amount: dollars(amount) for amount in amounts} == amounts
