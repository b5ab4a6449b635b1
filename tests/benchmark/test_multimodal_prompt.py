"""The question, its score, its pace and its price, on exact numbers."""

import hashlib
import itertools
import math

import pytest

from benchmark.reranking.multimodal.pace import LONGEST_ASKED, LONGEST_PAUSE, Pace
from benchmark.reranking.multimodal.prices import Prices, Usage, dollars
from benchmark.reranking.multimodal.prompt import (
    NoAnswer,
    prompt_for,
    prompt_sha256,
    score_from_logprobs,
)
from labeling.queries.files import read_queries

LOG = math.log


def test_the_prompt_is_the_papers():
    assert prompt_for("a mongoose standing upright alert") == (
        "Does this image show a mongoose standing upright alert? "
        'Answer with "Yes" or "No" and nothing else.'
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("A meadowlark vocalizing", "A meadowlark vocalizing"),
        ("red fox showing signs of sarcoptic mange ", "red fox showing signs of sarcoptic mange"),
        ("  two storks on a nest. ", "two storks on a nest."),
        ('frog with the "la gruta" color morph', 'frog with the "la gruta" color morph'),
        ("a {query} in braces", "a {query} in braces"),
    ],
)
def test_a_querys_text_keeps_all_but_blanks_around_it(text, shown):
    assert prompt_for(text).startswith(f"Does this image show {shown}? Answer")


def test_a_prompt_is_known_by_its_hash():
    assert prompt_sha256("ä") == hashlib.sha256("ä".encode()).hexdigest()


def test_each_real_query_makes_one_question(shared_dir):
    texts = []
    for split in ("val", "test"):
        path = shared_dir / "inquire" / f"inquire_queries_{split}.csv"
        with path.open("rb") as file:
            rows, errors = read_queries(file, name=path.name)
        assert not errors
        texts += [row.query_text for row in rows]
    prompts = {prompt_for(text) for text in texts}
    assert len(prompts) == len(texts) == 250
    assert all(prompt.count("? Answer") == 1 and " ?" not in prompt for prompt in prompts)


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


def test_an_answer_that_is_not_told_counts_as_the_smallest_that_is():
    pairs = [("Yes", LOG(0.8)), ("The", LOG(0.1)), ("It", LOG(0.05))]
    score = score_from_logprobs(pairs)
    assert score.no is None
    assert score.score == pytest.approx(0.8 / 0.85, abs=1e-12)
    score = score_from_logprobs([(token.replace("Yes", "No"), value) for token, value in pairs])
    assert score.yes is None
    assert score.score == pytest.approx(0.05 / 0.85, abs=1e-12)


def test_an_impossible_spelling_counts_for_nothing():
    score = score_from_logprobs([("Yes", LOG(0.5)), ("No", -math.inf), ("The", LOG(0.25))])
    assert score.no is None
    assert score.score == pytest.approx(0.5 / 0.75, abs=1e-12)


def test_extreme_log_probabilities_stay_within_0_and_1():
    assert score_from_logprobs([("Yes", 0.0), ("No", -9999.0)]).score == 1.0
    assert score_from_logprobs([("Yes", -9999.0), ("No", 0.0)]).score == 0.0
    assert score_from_logprobs([("Yes", -9999.0), ("yes", -9999.0), ("No", -9999.0)]).score == (
        pytest.approx(2 / 3)
    )


@pytest.mark.parametrize("pairs", [[], [("Perhaps", -0.1), ("The", -3.0)], [("Yes", -math.inf)]])
def test_neither_yes_nor_no_is_no_score(pairs):
    with pytest.raises(NoAnswer, match="neither yes nor no"):
        score_from_logprobs(pairs)


def starts(pace: Pace, seconds: float) -> list[float]:
    """When requests begin on a clock that goes by itself, each as soon as it may."""
    now, begun = 1000.0, []
    while now < 1000.0 + seconds:
        wait = pace.wait(now)
        if wait:
            now += wait
            continue
        pace.begin(now)
        begun.append(now)
    return begun


def test_no_minute_has_more_requests_than_the_limit():
    begun = starts(Pace(per_minute=30), 300)
    assert len(begun) == 150
    assert min(b - a for a, b in itertools.pairwise(begun)) == pytest.approx(2.0)


def test_an_idle_time_saves_up_no_burst():
    pace = Pace(per_minute=60)
    pace.begin(1000.0)
    pace.begin(2000.0)
    assert pace.wait(2000.0) == 1.0


def test_without_a_limit_nothing_waits():
    pace = Pace()
    pace.begin(1000.0)
    assert pace.wait(1000.0) == 0.0


def test_the_server_says_how_long_to_wait():
    pace = Pace()
    pace.trouble(1000.0, begun=999.0, retry_after=7.0)
    assert pace.wait(1000.0) == 7.0
    # Sent before the pause: it says nothing new, but that another wait is asked for.
    pace.trouble(1001.0, begun=999.5, retry_after=9.0)
    assert (pace.wait(1001.0), pace.troubles) == (9.0, 1)
    pace.trouble(1001.0, begun=999.5, retry_after=1e9)
    assert pace.wait(1001.0) == LONGEST_ASKED


def test_pauses_double_up_to_the_longest_and_end_with_an_answer():
    pace, now, waits = Pace(), 1000.0, []
    for _ in range(9):
        pace.trouble(now, begun=now)
        waits.append(pace.wait(now))
        # A request of the same time makes the pause no longer.
        pace.trouble(now, begun=now - 0.5)
        now += pace.wait(now)
    assert waits == [1, 2, 4, 8, 16, 32, LONGEST_PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    pace.answered()
    pace.trouble(now, begun=now)
    assert pace.wait(now) == 1.0


def test_tokens_cost_their_price():
    usage = Usage(1, 800, 1) + Usage(1, 1200, 3)
    assert usage == Usage(2, 2000, 4)
    assert Prices(2.5, 10.0).cost(usage) == pytest.approx(0.00504)
    assert Prices(0, 0).cost(usage) == 0
    assert Prices(2.5, None).cost(usage) is None


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "$0.00"),
        (0.5, "$0.50"),
        (0.0241, "$0.0241"),
        (0.01005, "$0.01"),
        (1234.567, "$1,234.57"),
    ],
)
def test_amounts_are_written_for_people(amount, shown):
    assert dollars(amount) == shown
