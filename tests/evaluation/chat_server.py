"""A real server that speaks the OpenAI protocol for chat completions, for tests.

    with ChatServer() as server:
        server.url, server.requests, server.script = …

Its answers follow from the image's bytes and the prompt alone (`yes_no`). It can be told to
misbehave, for every request or for the next ones.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import threading
import time
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PROMPT_TOKENS = 800
COMPLETION_TOKENS = 1


def yes_no(prompt: str, jpeg: bytes) -> tuple[float, float]:
    """The log-probabilities of yes and no that the server answers with; they sum to 0.9."""
    digest = hashlib.sha256(prompt.encode() + jpeg).digest()
    share = (int.from_bytes(digest[:4], "big") + 0.5) / 2**32
    return math.log(0.9 * share), math.log(0.9 * (1 - share))


def expected_score(prompt: str, jpeg: bytes) -> float:
    """s = e^yes / (e^yes + e^no) of the server's answer."""
    yes, no = (math.exp(value) for value in yes_no(prompt, jpeg))
    return yes / (yes + no)


def grades(prompt: str, jpeg: bytes) -> list[float]:
    """The log-probabilities of the grades 0 to 3 that the server answers with; they sum to 0.9."""
    digest = hashlib.sha256(prompt.encode() + jpeg).digest()
    weights = [one + 1 for one in digest[:4]]
    return [math.log(0.9 * one / sum(weights)) for one in weights]


def expected_probability(prompt: str, jpeg: bytes) -> float:
    """The mean grade of the server's answer, divided by 3."""
    shares = [math.exp(value) / 0.9 for value in grades(prompt, jpeg)]
    return sum(grade * share for grade, share in enumerate(shares)) / 3


@dataclass
class Asked:
    """One request as it came."""

    path: str
    key: str
    body: dict[str, Any]
    at: float

    @property
    def prompt(self) -> str:
        return "".join(
            part["text"] for part in self.body["messages"][0]["content"] if part["type"] == "text"
        )

    @property
    def images(self) -> list[bytes]:
        """As they were sent, examples first."""
        found = []
        for part in self.body["messages"][0]["content"]:
            if part["type"] == "image_url":
                kind, _, data = part["image_url"]["url"].partition(",")
                assert kind == "data:image/jpeg;base64"
                found.append(base64.b64decode(data, validate=True))
        return found

    @property
    def jpeg(self) -> bytes:
        """The image in question."""
        return self.images[-1]


@dataclass
class ChatServer:
    """Answers /v1/chat/completions on a port of its own."""

    #: What the next requests get instead of an answer, first to last: "500", "429", "garbage",
    #: "no_logprobs", "no_top", "filtered", "maybe", "slow", "refuse", "401", "redirect".
    script: deque[str] = field(default_factory=deque)
    #: What every request gets, once the script is at its end.
    always: str = ""
    #: Images that are always refused, by their bytes.
    refused: set[bytes] = field(default_factory=set)
    retry_after: str = ""
    #: Seconds that an answer takes.
    delay: float = 0.0
    counts_tokens: bool = True
    #: Whether it gives grades of 0 to 3 instead of yes and no.
    grades: bool = False

    def __post_init__(self) -> None:
        self.requests: list[Asked] = []
        self.at_once = self.most_at_once = 0
        self.lock, self.closing = threading.Lock(), threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ChatServer:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def completion(self, sent: Asked, mood: str) -> Any:
        """The body of a response."""
        yes, no = yes_no(sent.prompt, sent.jpeg)
        top = [("Yes", yes), (" no", no), ("The", -20.0)]
        if self.grades:
            likely = grades(sent.prompt, sent.jpeg)
            top = [(str(grade), value) for grade, value in enumerate(likely)] + [("The", -3.0)]
        if mood == "maybe":
            top = [("Perhaps", -0.1), ("The", -3.0)]
        text, best = max(top, key=lambda pair: pair[1])
        choices = [{"token": token, "logprob": value, "bytes": None} for token, value in top]
        content: Any = [{"token": text, "logprob": best, "bytes": None, "top_logprobs": choices}]
        if mood == "no_top":
            content[0]["top_logprobs"] = []
        logprobs = None if mood in ("no_logprobs", "filtered") else {"content": content}
        message = {"role": "assistant", "content": "" if mood == "filtered" else text.strip()}
        tokens = PROMPT_TOKENS * len(sent.images)
        usage = {"prompt_tokens": tokens, "completion_tokens": COMPLETION_TOKENS}
        return {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": sent.body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "content_filter" if mood == "filtered" else "stop",
                    "message": message,
                    "logprobs": logprobs,
                }
            ],
            **({"usage": usage} if self.counts_tokens else {}),
        }


def _handler(server: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            sent = Asked(self.path, self.headers.get("Authorization", ""), body, time.time())
            with server.lock:
                server.requests.append(sent)
                server.at_once += 1
                server.most_at_once = max(server.most_at_once, server.at_once)
                mood = server.script.popleft() if server.script else server.always
            try:
                if mood == "slow":
                    server.closing.wait()
                time.sleep(server.delay)
                self._answer(sent, mood)
            except BrokenPipeError:
                self.close_connection = True
            finally:
                with server.lock:
                    server.at_once -= 1

        def _answer(self, sent: Asked, mood: str) -> None:
            error = {"error": {"message": f"told to: {mood} {sent.key}", "code": None}}
            if sent.path != "/v1/chat/completions":
                self._send(404, error)
            elif sent.jpeg in server.refused or mood == "refuse":
                self._send(400, {"error": {"message": "I can't open this picture", "code": None}})
            elif mood.isdigit():
                self._send(int(mood), error)
            elif mood == "redirect":
                self._send(307, error)
            elif mood == "garbage":
                self._send(200, {"choices": "none"})
            else:
                self._send(200, server.completion(sent, mood))

        def _send(self, status: int, data: Any) -> None:
            text = data if isinstance(data, str) else json.dumps(data)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(text.encode())))
            if status == 307:
                self.send_header("Location", "/elsewhere")
            if status in (429, 500, 503) and server.retry_after:
                self.send_header("Retry-After", server.retry_after)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the tests look at `requests`."""

    return Handler
