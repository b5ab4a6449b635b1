"""A server that speaks the OpenAI protocol for chat completions with images."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.conf import settings

from evaluation.reranking.multimodal.prompt import (
    EndpointRefused,
    ImageFailed,
    Reply,
    Unreadable,
    read_reply,
)

# The package takes half a second to import; web processes do without it.
if TYPE_CHECKING:
    import openai

#: The answer is one word; the second token is for models that begin with a line break.
MAX_TOKENS: Final = 2
#: The most that the protocol allows.
TOP_LOGPROBS: Final = 20
#: Retries by the client, when the server limits requests or fails: after the time that the server
#: requests, else after 0.5 to 8 seconds, doubled each time.
MAX_RETRIES: Final = 4
_SHOWN: Final = 300
_LONGEST_ADDRESS: Final = 300


class Client:
    """Asks one model at one address. Threads may share it; leaving the block closes it."""

    def __init__(
        self,
        *,
        base_url: str,
        model: str,
        timeout: float,
        on_retry: Callable[[], None] = lambda: None,
    ) -> None:
        """`timeout` in seconds for a try; `on_retry` is called when a request is sent again.

        The key is the setting MULTIMODAL_API_KEY: it goes to this server in each request, and
        nowhere else. EndpointRefused: it can't be a key.
        """
        import openai

        self._model = model
        if not (_key().isascii() and _key().isprintable()):
            raise EndpointRefused("MULTIMODAL_API_KEY holds characters that no key has.")

        def sent(request: Any) -> None:
            if request.headers.get("x-stainless-retry-count", "0") != "0":
                on_retry()

        self._openai = openai.OpenAI(
            base_url=base_url,
            api_key=_key() or "none",
            timeout=timeout,
            max_retries=MAX_RETRIES,
            # An allowed address must not lead to another one.
            http_client=openai.DefaultHttpxClient(
                follow_redirects=False, timeout=timeout, event_hooks={"request": [sent]}
            ),
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self._openai.close()

    def ask(
        self,
        *,
        prompt: str,
        jpeg: bytes,
        examples: Sequence[tuple[str, bytes]] = (),
        read: Callable[[Any], Reply] = read_reply,
    ) -> Reply:
        """Ask about one image, with the client's retries. `examples` are sent before it, a line of
        text and a JPEG each; `read` takes the chat completion and raises as `read_reply`.

        EndpointRefused: the server can't be reached, keeps limiting requests, or refuses them.
        ImageFailed: this image gets no score.
        """
        import openai

        try:
            response = self._openai.chat.completions.with_raw_response.create(
                model=self._model,
                messages=[{"role": "user", "content": _content(prompt, jpeg, examples)}],
                max_tokens=MAX_TOKENS,
                temperature=0,
                logprobs=True,
                top_logprobs=TOP_LOGPROBS,
            )
            return read(json.loads(response.content))
        except openai.APITimeoutError as error:
            raise ImageFailed("The server didn't answer in time.") from error
        except openai.APIConnectionError as error:
            cause = error.__cause__ or error
            raise EndpointRefused(
                f"The server can't be reached: {cause}. Resume the run when the server is up; "
                "nothing is sent twice."
            ) from error
        except openai.APIStatusError as error:
            raise _status(error) from error
        except (Unreadable, ValueError) as error:
            raise ImageFailed(f"The server's response can't be read: {error}") from error


def _content(prompt: str, jpeg: bytes, examples: Sequence[tuple[str, bytes]]) -> Any:
    parts = [part for line, image in examples for part in (_text(line), _image(image))]
    return [*parts, _image(jpeg), _text(prompt)]


def _text(text: str) -> Any:
    return {"type": "text", "text": text}


def _image(jpeg: bytes) -> Any:
    url = "data:image/jpeg;base64," + base64.b64encode(jpeg).decode("ascii")
    return {"type": "image_url", "image_url": {"url": url}}


def _status(error: openai.APIStatusError) -> Exception:
    status, text = error.status_code, _message(error)
    if error.code == "insufficient_quota":
        return EndpointRefused(f"The account's quota is used up: {text}")
    if status >= 500 or status in (408, 409):
        return ImageFailed(f"The server failed with status {status}: {text}")
    if status in (400, 413, 415, 422) and "logprobs" not in text:
        return ImageFailed(f"The server refuses this image with status {status}: {text}")
    return EndpointRefused(f"The server refuses with status {status}: {text}")


def _message(error: openai.APIStatusError) -> str:
    message = error.body.get("message") if isinstance(error.body, dict) else None
    text = str(message or error.message)
    # Some servers repeat the key that they refuse.
    return (text.replace(_key(), "…") if _key() else text)[:_SHOWN]


def _key() -> str:
    return str(settings.MULTIMODAL_API_KEY)


class BadAddress(ValueError):
    """Not the base address of a server; the text says why."""


def base_address(text: str) -> str:
    """The base address as it is stored, without a slash at its end: the part before
    /chat/completions.

    BadAddress: not http or https, no host, or with a password, a query or a fragment, which would
    be stored and shown.
    """
    address = text.strip().rstrip("/")
    try:
        parts = urlsplit(address)
        host, _port = parts.hostname, parts.port
    except ValueError as error:
        raise BadAddress(f"{address!r} is not an address: {error}.") from None
    if parts.scheme not in ("http", "https") or not host:
        raise BadAddress(f"{address!r} is not an address such as http://127.0.0.1:8001/v1.")
    if parts.username is not None or parts.query or parts.fragment:
        raise BadAddress(
            "The address holds a user name, a query or a fragment; a key goes into the environment "
            "variable MULTIMODAL_API_KEY."
        )
    if len(address) > _LONGEST_ADDRESS:
        raise BadAddress(f"The address has more than {_LONGEST_ADDRESS} characters.")
    return address
