"""What a reader is asked, and the probability in its answer."""

import math

import pytest

from evaluation.reranking.multimodal.prompt import ImageFailed, Unreadable
from extras.reading.prompt import (
    Example,
    chosen_examples,
    prompt_for,
    prompt_sha256,
    read_grade,
)

pytestmark = pytest.mark.pure


def completion(text, *top):
    """A chat completion; without `top` the server gives no log-probabilities."""
    choices = [{"token": token, "logprob": math.log(p)} for token, p in top]
    tokens = [{"token": text, "logprob": -0.1, "top_logprobs": choices}]
    logprobs = {"content": tokens} if top else None
    return {"choices": [{"message": {"content": text}, "logprobs": logprobs}]}


def test_the_prompt_holds_text_and_guidelines_as_they_are_written():
    prompt = prompt_for(" a {guidelines} toad ", "Only {query}s.", "{query}|{guidelines}|{other}")
    assert prompt == "a {guidelines} toad|Only {query}s.|{other}"
    usual = prompt_for("a toad", "\n")
    assert "The query is: a toad\n" in usual
    assert "There are none." in usual
    assert "{" not in usual


def test_the_probability_is_the_mean_grade_of_the_likeliest_first_tokens():
    # (0 × 0.1 + 1 × 0.1 + 2 × 0.2 + 3 × 0.4) / 0.8 / 3
    top = [("3", 0.4), (" 2", 0.2), ("1.", 0.1), ("0", 0.1), ("The", 0.2)]
    assert read_grade(completion("3", *top)).score.score == pytest.approx(1.7 / 0.8 / 3)
    # Those that are not given count nothing.
    assert read_grade(completion("2", ("2", 0.9), ("4", 0.1))).score.score == pytest.approx(2 / 3)
    assert read_grade(completion("3", ("3", 0.5))).score.score == 1


@pytest.mark.parametrize(("text", "score"), [("2", 2 / 3), ("Grade: 0.", 0), ("**3**", 1)])
def test_without_log_probabilities_the_grade_in_the_text_counts(text, score):
    assert read_grade(completion(text)).score.score == pytest.approx(score)


@pytest.mark.parametrize("answer", [
    completion("I see a toad"), completion("10"), completion("4"), completion(""),
    completion("Perhaps", ("Perhaps", 0.7), ("The", 0.2)),
])  # fmt: skip
def test_what_is_no_grade_fails_this_image(answer):
    with pytest.raises(ImageFailed):
        read_grade(answer)
    with pytest.raises(Unreadable):
        read_grade({"choices": "none"})


def test_two_examples_of_either_kind_are_sent():
    pinned = [Example(number, number < 4, "") for number in range(1, 9)]
    assert [one.image_id for one in chosen_examples(pinned)] == [1, 2, 4, 5]
    assert pinned[0].line == "An image that is relevant:"
    assert Example(1, False, "a frog").line == "An image that is not relevant: a frog"


def test_the_checksum_covers_all_that_is_said_and_shown():
    said = {
        "query": "a toad", "guidelines": "", "examples": [Example(1, True, "")],
        "template": "{query}", "max_side": 64,
    }  # fmt: skip
    others = [
        {"query": "a frog"}, {"guidelines": "x"}, {"examples": []}, {"template": "{query}?"},
        {"examples": [Example(1, False, "")]}, {"examples": [Example(1, True, "n")]},
        {"examples": [Example(2, True, "")]}, {"max_side": 65},
    ]  # fmt: skip
    assert len({prompt_sha256(**said | other) for other in [{}, *others]}) == 1 + len(others)
