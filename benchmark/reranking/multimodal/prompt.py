"""The question that is put to a multimodal model, and the score that its answer makes.

Source: Vendrow et al. 2024, section 4, "Reranking with Multimodal Models".
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

TEMPLATE: Final = 'Does this image show {query}? Answer with "Yes" or "No" and nothing else.'

# What tokenizers write for a blank or a line's end at the begin of a token, and what may stand
# around the word.
_MARKS: Final = "\u2581\u0120\u010a"
_AROUND: Final = "\"'“”‘’*`.,!:"


class NoAnswer(Exception):
    """Neither yes nor no is among the likeliest first tokens; the text says which are."""


@dataclass(frozen=True, slots=True)
class Score:
    """What the log-probabilities of an answer's first token say."""

    yes: float | None
    """Log-probability of yes in all its spellings together; None if not told."""
    no: float | None
    score: float
    """From 0 to 1: how likely yes is against no."""


def prompt_for(query: str) -> str:
    """The paper's prompt for a query's text.

    The text goes in as it was written, capitals and a full stop included; only blanks around it
    are left out. The paper's section 4 shows "{some query}" and says no more; the authors'
    published code leaves blanks in too, so that "red fox showing signs of sarcoptic mange " has one
    before its question mark there.
    """
    return TEMPLATE.replace("{query}", query.strip())


def prompt_sha256(prompt: str) -> str:
    """By which an answer's prompt is known: SHA-256 of its UTF-8, in hexadecimal."""
    return hashlib.sha256(prompt.encode()).hexdigest()


def score_from_logprobs(top_logprobs: Sequence[tuple[str, float]]) -> Score:
    """The score s = e^yes / (e^yes + e^no) of (token, log-probability) pairs, in any order: the
    likeliest choices for the answer's first token.

    Spellings of one answer (" Yes", "yes", "YES.", with a tokenizer's marks) count together, by
    the logarithm of their summed probabilities. If one answer isn't among the pairs, its
    log-probability is at most the smallest that is told, and counts as that: s is then a lower
    bound where yes is told, an upper bound where no is. NoAnswer: if neither is there.
    """
    told = [(_word(token), value) for token, value in top_logprobs if math.isfinite(value)]
    yes = _log_sum_exp(value for word, value in told if word == "yes")
    no = _log_sum_exp(value for word, value in told if word == "no")
    if yes is None and no is None:
        likeliest = sorted(top_logprobs, key=lambda pair: -pair[1])[:3]
        raise NoAnswer(
            "The model answers neither yes nor no; its likeliest first words are "
            f"{', '.join(repr(token[:20]) for token, _ in likeliest) or 'not told'}."
        )
    bound = min(value for _, value in told)
    difference = (bound if no is None else no) - (bound if yes is None else yes)
    return Score(yes=yes, no=no, score=_logistic(-difference))


def _word(token: str) -> str:
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
