"""API_RATE: a limit of each API token, over all processes."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from rest_framework.test import APIClient

from annotator.models import ApiToken, TokenRequests
from tests.conftest import api_of, client_of, token_of
from tests.threads import at_once

pytestmark = pytest.mark.django_db
#: Of so long a period no test sees the end: it began in 1970.
PERIOD = 10**10


@pytest.fixture
def three_an_age(settings: Any) -> None:
    """A rate whose period doesn't end within a test."""
    settings.API_RATE = (3, PERIOD)


def statuses(api: APIClient, number: int) -> list[int]:
    return [api.get("/api/queries/").status_code for _ in range(number)]


@pytest.mark.usefixtures("three_an_age")
def test_a_token_above_the_rate_waits_for_the_next_period(annotator: Any) -> None:
    api, other = api_of(annotator), api_of(annotator)
    assert statuses(api, 4) == [200, 200, 200, 429]
    refused = api.get("/api/queries/")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert 0 < int(refused.headers["Retry-After"]) <= PERIOD
    assert refused.json()["title"] == "Too Many Requests"
    assert refused.json()["detail"] == (
        "This token was sent with more than 3 requests in 10000000000 seconds."
    )
    # Another token of the same person counts for itself.
    assert statuses(other, 1) == [200]
    TokenRequests.objects.filter(requests=5).update(period=-1)
    assert statuses(api, 4) == [200, 200, 200, 429]


@pytest.mark.usefixtures("three_an_age")
def test_browsers_and_the_unknown_are_not_counted(annotator: Any, anonymous_api: APIClient) -> None:
    browser = client_of(annotator)
    assert [browser.get("/api/queries/").status_code for _ in range(5)] == [200] * 5
    anonymous_api.credentials(HTTP_AUTHORIZATION="Token unknown")
    assert statuses(anonymous_api, 5) == [401] * 5
    assert not TokenRequests.objects.exists()


def test_without_a_rate_nothing_is_counted(annotator_api: APIClient) -> None:
    assert statuses(annotator_api, 5) == [200] * 5
    assert not TokenRequests.objects.exists()


def test_counts_end_with_their_token(annotator: Any, three_an_age: None) -> None:
    assert statuses(api_of(annotator), 1) == [200]
    ApiToken.objects.all().delete()
    assert not TokenRequests.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_requests_at_the_same_moment_are_each_counted(annotator: Any, settings: Any) -> None:
    settings.API_RATE = (25, PERIOD)
    token = {"Authorization": f"Token {token_of(annotator)}"}
    apis = [APIClient(headers=token) for _ in range(4)]
    answers = at_once(*(lambda api=api: statuses(api, 10) for api in apis))
    found = [status for one in answers for status in one]
    assert (found.count(200), found.count(429)) == (25, 15)


def test_the_description_names_the_limit(annotator_api: APIClient) -> None:
    paths = yaml.safe_load(annotator_api.get("/api/schema/").content)["paths"]
    assert "429" in paths["/api/queries/"]["get"]["responses"]
