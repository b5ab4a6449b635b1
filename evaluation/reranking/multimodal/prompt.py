"""The question to a multimodal model, and the score in its chat completion.

Source: Vendrow et al. 2024, section 4, "Reranking with Multimodal Models".
"""

from __future__ import annotations

import hashlib
import math
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from core.errors import Refused

TEMPLATE: Final = 'Does this image show {query}? Answer with "Yes" or "No" and nothing else.'
PLACEHOLDER: Final = "{query}"
LONGEST_PROMPT: Final = 4000

# What tokenizers write for a blank or a line's end at the beginning of a token, and what may be
# around the word.
_MARKS: Final = "\u2581\u0120\u010a"
_AROUND: Final = "\"'“”‘’*`.,!:"
_SHOWN: Final = 200


class NoAnswer(Exception):
    """Neither yes nor no is among the likeliest first tokens; the text names these."""


@dataclass(frozen=True, slots=True)
class Score:
    """The score from the log-probabilities of an answer's first token."""

    yes: float | None
    """Log-probability of yes in all its spellings together; None if the server doesn't give it."""
    no: float | None
    score: float
    """From 0 to 1: the probability of yes against no."""


def checked_template(text: str) -> str:
    """A prompt with a place for the query, without blanks and line ends around it.

    ValueError, with a sentence for people: no place, too long, or control characters.
    """
    template = text.replace("\r\n", "\n").strip()
    if PLACEHOLDER not in template:
        raise ValueError(f"The prompt needs {PLACEHOLDER} where the query’s text goes.")
    if len(template) > LONGEST_PROMPT:
        raise ValueError(
            f"The prompt has {len(template):,} characters; at most {LONGEST_PROMPT:,} fit."
        )
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in template if letter != "\n"):
        raise ValueError("The prompt holds control characters.")
    return template


def prompt_for(query: str, template: str = TEMPLATE) -> str:
    """The prompt for a query's text; by default the paper's.

    The text is inserted as written, with capitals and a full stop; only blanks around it are
    removed. The paper's section 4 shows "{some query}" and says no more; the authors' published
    code keeps the blanks too, so that "red fox showing signs of sarcoptic mange " has a blank
    before its question mark there.
    """
    return template.replace(PLACEHOLDER, query.strip())


def prompt_sha256(prompt: str) -> str:
    """What identifies an answer's prompt: the SHA-256 of its UTF-8, in hexadecimal."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def score_from_logprobs(top_logprobs: Sequence[tuple[str, float]]) -> Score:
    """The score s = e^yes / (e^yes + e^no) of (token, log-probability) pairs, in any order: the
    likeliest choices for the answer's first token.

    Spellings of one answer (" Yes", "yes", "YES.", with a tokenizer's marks) count together, by
    the logarithm of their summed probabilities. If one of the two answers isn't among the pairs,
    its log-probability is at most the smallest given one, which is used: s is then a lower bound
    where yes is given, an upper bound where no is. NoAnswer: neither is there.
    """
    words = [(bare_word(token), value) for token, value in top_logprobs if math.isfinite(value)]
    yes = _log_sum_exp(value for word, value in words if word == "yes")
    no = _log_sum_exp(value for word, value in words if word == "no")
    if yes is None and no is None:
        raise NoAnswer(f"The model answers neither yes nor no; {likeliest_words(top_logprobs)}")
    bound = min(value for _, value in words)
    difference = (bound if no is None else no) - (bound if yes is None else yes)
    return Score(yes=yes, no=no, score=_logistic(-difference))


def likeliest_words(top_logprobs: Sequence[tuple[str, float]]) -> str:
    """The end of a sentence that names the three likeliest tokens."""
    likeliest = sorted(top_logprobs, key=lambda pair: -pair[1])[:3]
    words = ", ".join(repr(token[:20]) for token, _ in likeliest) or "not given"
    return f"its likeliest first words are {words}."


def bare_word(token: str) -> str:
    """A token in small letters, without blanks and marks around it."""
    bare = token.strip().strip(_MARKS).strip().strip(_AROUND)
    return bare.casefold()


def _log_sum_exp(values: Iterable[float]) -> float | None:
    logs = list(values)
    if not logs:
        return None
    largest = max(logs)
    return largest + math.log(math.fsum(math.exp(value - largest) for value in logs))


def _logistic(value: float) -> float:
    if value >= 0:
        return 1 / (1 + math.exp(-value))
    power = math.exp(value)
    return power / (1 + power)


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens that a server counted, over `requests` answers."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class EndpointRefused(Refused):
    """The server can't be used; other images would fail too."""


class ImageFailed(Exception):
    """This one image gets no score; asking again would give the same."""

    def __init__(self, text: str, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.usage = usage or Usage()


class Unreadable(Exception):
    """The response is not a chat completion; another try may give one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One image's score and the tokens used."""

    score: Score
    usage: Usage
    usage_known: bool
    """False where the server counts no tokens."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer in a chat completion."""

    text: str
    top: list[tuple[str, float]] | None
    """(token, log-probability): the likeliest choices for its first token that isn't blank. None if
    the server gives no log-probabilities, empty if those of its answer alone."""
    usage: Usage
    usage_known: bool


def read_answer(data: Any) -> Answer:
    """The answer in a chat completion. ImageFailed: it has none. Unreadable: it isn't a chat
    completion.
    """
    usage, usage_known = _usage(data)
    choice = _first(_get(data, "choices"))
    if not isinstance(choice, dict):
        raise Unreadable(f"The response is not a chat completion: {str(data)[:_SHOWN]}")
    tokens = _get(choice.get("logprobs"), "content")
    message = choice.get("message")
    text = str(_get(message, "content") or "")
    top = _top(tokens) if isinstance(tokens, list) and tokens else None
    if top is None and not text:
        reason = _get(message, "refusal") or f"it ended with {choice.get('finish_reason')!r}"
        raise ImageFailed(f"The model gave no answer: {str(reason)[:_SHOWN]}", usage)
    return Answer(text, top, usage, usage_known)


def read_reply(data: Any) -> Reply:
    """The score in a chat completion.

    EndpointRefused: its answer has no log-probabilities. ImageFailed: it has no answer, or an
    answer that is neither yes nor no. Unreadable: it isn't a chat completion.
    """
    answer = read_answer(data)
    if answer.top is None:
        raise EndpointRefused(
            f"The server answers {answer.text[:40]!r} without log-probabilities, which the score "
            "needs. Choose a model or a server that gives them (logprobs, top_logprobs)."
        )
    if not answer.top:
        raise EndpointRefused(
            "The server gives the log-probability of its answer but not those of the other likely "
            "answers (top_logprobs), which the score needs. Choose another model or server."
        )
    try:
        return Reply(score_from_logprobs(answer.top), answer.usage, answer.usage_known)
    except NoAnswer as error:
        raise ImageFailed(str(error), answer.usage) from error


def _top(tokens: list[Any]) -> list[tuple[str, float]]:
    """The likeliest choices for the first token that isn't blank; empty if they aren't given."""
    first = next((item for item in tokens if str(_get(item, "token") or "").strip()), tokens[0])
    choices = _get(first, "top_logprobs")
    pairs = []
    for choice in choices if isinstance(choices, list) else ():
        token, value = _get(choice, "token"), _get(choice, "logprob")
        if not isinstance(token, str) or not isinstance(value, int | float) or value > 0.01:
            raise Unreadable(f"Not a log-probability: {str(choice)[:_SHOWN]}")
        pairs.append((token, float(value)))
    return pairs


def _usage(data: Any) -> tuple[Usage, bool]:
    counted = _get(data, "usage")
    counts = [_get(counted, name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(count, int) and 0 <= count < 2**31 for count in counts):
        return Usage(requests=1), False
    return Usage(1, *counts), True


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
