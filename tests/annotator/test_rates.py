"""API_RATE: a limit of each API token, over all processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any

import pytest
import yaml
from django.db import connection
from rest_framework.test import APIClient

from annotator.models import ApiToken, TokenRequests
from tests.conftest import api_of, client_of, token_of
from tests.processes import ROOT, database_url

pytestmark = pytest.mark.django_db
ASK = """
from django.test import Client
for _ in range(20):
    print(Client(headers={{"Authorization": "Token {token}"}}).get("/api/queries/").status_code)
"""


@pytest.fixture
def three_an_hour(settings: Any) -> None:
    """A rate whose period doesn't end within a test, unless the hour does just now."""
    if time.time() % 3600 > 3570:
        time.sleep(30)
    settings.API_RATE = (3, 3600)


def statuses(api: APIClient, number: int) -> list[int]:
    return [api.get("/api/queries/").status_code for _ in range(number)]


@pytest.mark.usefixtures("three_an_hour")
def test_a_token_above_the_rate_waits_for_the_next_period(annotator: Any) -> None:
    api, other = api_of(annotator), api_of(annotator)
    assert statuses(api, 4) == [200, 200, 200, 429]
    refused = api.get("/api/queries/")
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert 0 < int(refused.headers["Retry-After"]) <= 3600
    assert refused.json()["title"] == "Too Many Requests"
    assert refused.json()["detail"] == (
        "This token was sent with more than 3 requests in 3600 seconds."
    )
    # Another token of the same person counts for itself.
    assert statuses(other, 1) == [200]
    TokenRequests.objects.filter(requests=5).update(period=0)
    assert statuses(api, 4) == [200, 200, 200, 429]


@pytest.mark.usefixtures("three_an_hour")
def test_browsers_and_the_unknown_are_not_counted(annotator: Any, anonymous_api: APIClient) -> None:
    browser = client_of(annotator)
    assert [browser.get("/api/queries/").status_code for _ in range(5)] == [200] * 5
    anonymous_api.credentials(HTTP_AUTHORIZATION="Token unknown")
    assert statuses(anonymous_api, 5) == [401] * 5
    assert not TokenRequests.objects.exists()


def test_without_a_rate_nothing_is_counted(annotator_api: APIClient) -> None:
    assert statuses(annotator_api, 5) == [200] * 5
    assert not TokenRequests.objects.exists()


def test_counts_end_with_their_token(annotator: Any, three_an_hour: None) -> None:
    assert statuses(api_of(annotator), 1) == [200]
    ApiToken.objects.all().delete()
    assert not TokenRequests.objects.exists()


def test_the_table_is_unlogged() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT relpersistence FROM pg_class WHERE oid = 'annotator_tokenrequests'::regclass"
        )
        assert cursor.fetchone() == ("u",)


@pytest.mark.django_db(transaction=True)
def test_processes_count_together(annotator: Any, tmp_path: Any) -> None:
    token = token_of(annotator)
    environment = os.environ | {
        "DATABASE_URL": database_url(connection.settings_dict),
        "VAR_DIR": str(tmp_path),
        "API_RATE": "25/day",
        "HTTPS_ONLY": "false",
        "ALLOWED_HOSTS": "testserver",
        "DJANGO_SETTINGS_MODULE": "annotator.settings",
    }
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", ASK.format(token=token)]
    asking = [
        subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [line for one in asking for line in one.communicate(timeout=60)[0].split()]
    assert (answers.count("200"), answers.count("429")) == (25, 15)


def test_the_description_names_the_limit(annotator_api: APIClient) -> None:
    paths = yaml.safe_load(annotator_api.get("/api/schema/").content)["paths"]
    assert "429" in paths["/api/queries/"]["get"]["responses"]
