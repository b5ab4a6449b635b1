"""Every address there is, asked by nobody in particular: the login page or 401, never data."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

OPEN = {
    "healthz",
    "login/",
    "logout/",
    "admin/login/",
    "admin/logout/",
    "api/token/",
    "api/schema/",  # the description of the API, which holds no data
}


def addresses(
    patterns: list[URLPattern | URLResolver], before: str = "", number: object = 1
) -> Iterator[str]:
    """Each route with something plausible in place of its parameters."""
    for pattern in patterns:
        route = before + re.sub(r"^\^|\$$|\\Z$", "", str(pattern.pattern))
        if isinstance(pattern, URLResolver):
            yield from addresses(pattern.url_patterns, route, number)
        else:
            route = re.sub(r"<id:\w+>|<path:object_id>", str(number), route)
            route = re.sub(r"<(?:\w+:)?\w+>|\(\?P<\w+>(?:\[[^]]*\]|[^)])*\)", "abcdef12", route)
            yield route.replace("\\.", ".").replace("/?", "/").replace("\\", "")


ADDRESSES = sorted({*addresses(get_resolver().url_patterns)} - OPEN)


def test_the_walk_finds_the_application() -> None:
    assert {"", "queries/1/label/", "api/queries/1/judgments/", "search/"} <= set(ADDRESSES)
    assert any(address.startswith("images/") for address in ADDRESSES)


@pytest.mark.parametrize("method", ["get", "post", "patch", "delete"])
@pytest.mark.parametrize("address", ADDRESSES)
def test_anonymous_visitors_are_sent_away(db: None, address: str, method: str) -> None:
    answer = getattr(Client(), method)(f"/{address}")
    if address.startswith("api/"):
        assert answer.status_code == 401
        assert answer["Content-Type"] == "application/problem+json"
    elif answer.status_code == 302:
        assert re.match(r"/(admin/)?login/\?next=", answer["Location"])
    else:
        assert answer.status_code in {401, 404, 405}
