"""Every address that the application has, from its own list of routes."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

from django.urls import URLPattern, URLResolver, get_resolver

#: Parameters that hold a name; all others hold a number.
NAMES = {"app_label", "extension", "name", "url", "version"}
#: What anybody may ask.
OPEN = {
    "healthz",
    "healthz/web",
    "login/",
    "logout/",
    "oidc/",
    "oidc/callback/",
    "admin/login/",
    "admin/logout/",
    "api/token/",
    "password/MQ/abcdef12/",  # which sets the password of whom an admin gave the link
    "first-admin/abcdef12/",  # which makes the first admin, by the link that `serve` prints
    "api/schema/",  # the description of the API, which holds no data
}
#: What differs from one answer to the next by itself.
PASSING = (
    rb'name="csrfmiddlewaretoken" value="\w+"',
    rb'name="csrf-token" content="\w+"',
    rb'nonce="[^"]+"',
    rb"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?",
    rb"\d{1,2} \w{3} \d{4}, \d\d:\d\d",
    rb">(now|[^<>]+ ago)<",
    rb"\d+ ms\b",
)
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>|\(\?P<(\w+)>(?:\[[^]]*\]|[^)])*\)")


def routes() -> list[str]:
    """The routes, with their parameters in braces: `api/queries/{pk}/`."""
    return sorted(set(_walk(get_resolver().url_patterns)))


def filled(route: str, value: Callable[[str], object]) -> str:
    """A route's address with `value(name)` in place of each parameter."""
    return re.sub(r"{(\w+)}", lambda match: str(value(match[1])), route)


def addresses(number: object = 1) -> list[str]:
    """The address of each route, with `number` or a name that nothing has as its parameters."""
    return sorted(
        {filled(route, lambda name: "abcdef12" if name in NAMES else number) for route in routes()}
    )


def whole_body_of(answer: Any) -> bytes:
    """What an answer says, or the files of an archive."""
    body: bytes = b"".join(answer.streaming_content) if answer.streaming else answer.content
    if answer.get("Content-Type") == "application/zip":
        archive = zipfile.ZipFile(io.BytesIO(body))
        body = b"".join(name.encode() + archive.read(name) for name in archive.namelist())
    return body


def lasting(body: bytes) -> bytes:
    """A body without what differs from one answer to the next by itself."""
    for passing in PASSING:
        body = re.sub(passing, b"", body)
    return body


def body_of(answer: Any) -> bytes:
    """What lasts of what an answer says."""
    return lasting(whole_body_of(answer))


def _walk(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[str]:
    for pattern in patterns:
        text = re.sub(r"^\^|\$$|\\Z$", "", str(pattern.pattern))
        text = PARAMETER.sub(lambda match: f"{{{match[1] or match[2]}}}", text)
        route = before + text.replace("\\.", ".").replace("/?", "/").replace("\\", "")
        if isinstance(pattern, URLResolver):
            yield from _walk(pattern.url_patterns, route)
        else:
            yield route
