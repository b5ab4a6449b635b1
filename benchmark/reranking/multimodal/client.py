"""A server that speaks the OpenAI protocol for chat completions with images.

One request, once: pauses and further tries are the caller's, since they outlast a slice of a job.
"""

from __future__ import annotations

import base64
import email.utils
import json
import math
import time
from typing import Any, Final

import openai
from django.conf import settings

from benchmark.reranking.multimodal.replies import (
    EndpointRefused,
    Garbage,
    PictureFailed,
    Reply,
    read_reply,
)

#: The answer is one word; a second token is for models that begin with a line's end.
MAX_TOKENS: Final = 2
#: The most that the protocol allows.
TOP_LOGPROBS: Final = 20
_SHOWN: Final = 300


class Trouble(Exception):
    """The server is busy, broken or away: worth another try after a pause.

    `retry_after`: seconds, where it says so. `counts`: whether the image itself may be the reason,
    so that its tries are counted.
    """

    def __init__(self, text: str, *, retry_after: float | None = None, counts: bool) -> None:
        super().__init__(text)
        self.retry_after = retry_after
        self.counts = counts


class Client:
    """Asks one model at one address. Safe to share between threads."""

    def __init__(self, *, base_url: str, model: str, timeout: float) -> None:
        """`timeout` in seconds for a request.

        The key is the setting MULTIMODAL_API_KEY: it goes to this server in each request, and
        nowhere else. EndpointRefused: it can't be a key.
        """
        self._model = model
        if not (_key().isascii() and _key().isprintable()):
            raise EndpointRefused("MULTIMODAL_API_KEY holds characters that no key has.")
        self._openai = openai.OpenAI(
            base_url=base_url,
            api_key=_key() or "none",
            timeout=timeout,
            max_retries=0,
            # An allowed address must not lead to another one.
            http_client=openai.DefaultHttpxClient(follow_redirects=False, timeout=timeout),
        )

    def close(self) -> None:
        """Close its connections."""
        self._openai.close()

    def ask(self, *, prompt: str, jpeg: bytes) -> Reply:
        """Put the question about one picture.

        EndpointRefused, PictureFailed: see `replies`. Trouble: another try may help.
        """
        try:
            response = self._openai.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[{"role": "user", "content": _content(prompt, jpeg)}],
                max_tokens=MAX_TOKENS,
                temperature=0,
                logprobs=True,
                top_logprobs=TOP_LOGPROBS,
            )
            return read_reply(json.loads(response.content))
        except openai.APITimeoutError as error:
            raise Trouble("The server didn't answer in time.", counts=True) from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise Trouble(f"The server can't be reached: {cause}", counts=False) from error
        except openai.APIStatusError as error:
            raise _status(error) from error
        except (Garbage, ValueError) as error:
            raise Trouble(f"The server's response can't be read: {error}", counts=True) from error


def _content(prompt: str, jpeg: bytes) -> Any:
    picture = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
    return [
        {"type": "image_url", "image_url": {"url": picture}},
        {"type": "text", "text": prompt},
    ]


def _status(error: openai.APIStatusError) -> Exception:
    status, text = error.status_code, _message(error)
    retry_after = _retry_after(error.response.headers.get("retry-after"), time.time())
    if status == 429:
        if error.code == "insufficient_quota":
            return EndpointRefused(f"The account's quota is used up: {text}")
        return Trouble(f"The server limits requests: {text}", retry_after=retry_after, counts=False)
    if status >= 500 or status in (408, 409):
        return Trouble(
            f"The server failed with status {status}: {text}", retry_after=retry_after, counts=True
        )
    if status in (400, 413, 415, 422) and "logprobs" not in text:
        return PictureFailed(f"The server refuses this image with status {status}: {text}")
    return EndpointRefused(f"The server refuses with status {status}: {text}")


def _message(error: openai.APIStatusError) -> str:
    told = error.body.get("message") if isinstance(error.body, dict) else None
    text = str(told or error.message)
    # Some servers repeat the key that they refuse.
    return (text.replace(_key(), "…") if _key() else text)[:_SHOWN]


def _key() -> str:
    return str(settings.MULTIMODAL_API_KEY)


def _retry_after(value: str | None, now: float) -> float | None:
    """Seconds of a Retry-After header: a number, or a date (RFC 9110, section 10.2.3)."""
    if not value:
        return None
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        if date is None:
            return None
        seconds = email.utils.mktime_tz(date) - now
    return max(0.0, seconds) if math.isfinite(seconds) else None
