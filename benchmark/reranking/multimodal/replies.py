"""What a chat completion says, and what is wrong with one that says nothing usable.

Pure: reads the parsed JSON of a response, trusting none of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from benchmark.reranking.multimodal.prices import Usage
from benchmark.reranking.multimodal.prompt import NoAnswer, Score, score_from_logprobs

_SHOWN: Final = 200


class EndpointRefused(Exception):
    """The server can't be used as it is asked to; no other image would fare better."""


class PictureFailed(Exception):
    """This one image gets no score; asking again would give the same."""

    def __init__(self, text: str, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.usage = usage or Usage()


class Garbage(Exception):
    """The response is not a chat completion; another try may give one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One image's score, and what it took."""

    score: Score
    usage: Usage
    usage_told: bool
    """False where the server counts no tokens."""


def read_reply(data: Any) -> Reply:
    """The score in a chat completion.

    EndpointRefused: it has an answer without log-probabilities. PictureFailed: it has no answer, or
    one that is neither yes nor no. Garbage: it is no chat completion.
    """
    usage, told = _usage(data)
    choice = _first(_get(data, "choices"))
    if not isinstance(choice, dict):
        raise Garbage(f"The response is not a chat completion: {str(data)[:_SHOWN]}")
    tokens = _get(choice.get("logprobs"), "content")
    if not isinstance(tokens, list) or not tokens:
        message = choice.get("message")
        text = _get(message, "content")
        if not text:
            reason = _get(message, "refusal") or f"it ended with {choice.get('finish_reason')!r}"
            raise PictureFailed(f"The model gave no answer: {str(reason)[:_SHOWN]}", usage)
        raise EndpointRefused(
            f"The server answers {str(text)[:40]!r} without log-probabilities, and a score is made "
            "of these alone. Choose a model or a server that gives them (logprobs, top_logprobs)."
        )
    try:
        return Reply(score_from_logprobs(_top(tokens)), usage, told)
    except NoAnswer as error:
        raise PictureFailed(str(error), usage) from error


def _top(tokens: list[Any]) -> list[tuple[str, float]]:
    """The likeliest choices for the first token that isn't blank."""
    first = next((one for one in tokens if str(_get(one, "token") or "").strip()), tokens[0])
    choices = _get(first, "top_logprobs")
    if not isinstance(choices, list) or not choices:
        raise EndpointRefused(
            "The server gives the log-probability of its answer but not those of the other likely "
            "ones (top_logprobs), of which a score is made. Choose another model or server."
        )
    pairs = []
    for one in choices:
        token, value = _get(one, "token"), _get(one, "logprob")
        if not isinstance(token, str) or not isinstance(value, int | float) or value > 0.01:
            raise Garbage(f"A log-probability is not one: {str(one)[:_SHOWN]}")
        pairs.append((token, float(value)))
    return pairs


def _usage(data: Any) -> tuple[Usage, bool]:
    told = _get(data, "usage")
    counts = [_get(told, name) for name in ("prompt_tokens", "completion_tokens")]
    if not all(isinstance(one, int) and 0 <= one < 2**31 for one in counts):
        return Usage(requests=1), False
    return Usage(1, *counts), True


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else None
