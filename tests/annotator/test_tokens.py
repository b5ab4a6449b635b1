"""API tokens: shown once, stored hashed, named, expiring, revocable."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from annotator.models import ApiToken, User
from annotator.people.services import password_set
from annotator.people.tokens import (
    MOST_NAMED,
    MOST_OF_LOG_INS,
    log_in_token_create,
    token_create,
)
from core.errors import Conflict, Forbidden, Invalid
from tests.conftest import client_of
from tests.people import PASSWORD

pytestmark = pytest.mark.django_db


def opens(token: str) -> int:
    """The status that the API answers with to a token."""
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Token {token}")
    return client.get("/api/queries/").status_code


def everything_stored() -> str:
    """All rows of all tables, as text."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        rows = []
        for table in tables:
            cursor.execute(f'SELECT one::text FROM "{table}" one')
            rows += [row for (row,) in cursor.fetchall()]
    return "\n".join(rows)


def test_a_token_is_shown_once_and_stored_nowhere(annotator: Any) -> None:
    browser = client_of(annotator)
    page = browser.post("/account/tokens/", {"name": "laptop", "days": "30"}).content.decode()
    token = re.search(r"data-copied>(\w+)<", page)[1]  # type: ignore[index]
    assert opens(token) == 200
    assert token not in browser.get("/account/").content.decode()
    stored = everything_stored()
    assert "laptop" in stored
    assert token not in stored
    one = ApiToken.objects.get()
    days = (one.expires_at - timezone.now()) / timedelta(days=1)
    assert (one.user, round(days)) == (annotator, 30)


def test_who_is_shown_a_token_is_asked_for_a_name_and_a_time(annotator: Any) -> None:
    browser = client_of(annotator)
    for sent, says in (
        ({"name": "", "days": "30"}, "This field is required."),
        ({"name": "laptop", "days": "7"}, "Select a valid choice."),
        ({"name": "x" * 61, "days": "30"}, "at most 60 characters"),
    ):
        assert says in browser.post("/account/tokens/", sent).content.decode()
    assert not ApiToken.objects.exists()
    # A page that is reloaded sends its form again.
    for _ in range(2):
        page = browser.post("/account/tokens/", {"name": "laptop", "days": "90"}).content.decode()
    assert "You have a token named “laptop” already." in page
    assert ApiToken.objects.count() == 1
    assert browser.get("/account/tokens/")["Location"] == "/account/"


def test_a_revoked_an_expired_and_a_deactivated_persons_token_are_refused(
    annotator: Any, other_annotator: Any
) -> None:
    revoked, first = token_create(user=annotator, name="a", days=30)
    expired, second = token_create(user=annotator, name="b", days=30)
    address = f"/account/tokens/{revoked.pk}/revoke/"
    assert client_of(other_annotator).post(address).status_code == 404
    assert opens(first) == 200
    assert client_of(annotator).post(address).status_code == 302
    assert opens(first) == 401
    assert opens(second) == 200
    ApiToken.objects.filter(pk=expired.pk).update(expires_at=timezone.now())
    assert opens(second) == 401
    # Nothing is left of it once its name is given again.
    _token, third = token_create(user=annotator, name="b", days=30)
    type(annotator).objects.filter(pk=annotator.pk).update(is_active=False)
    assert opens(third) == 401


def test_a_person_has_a_limited_number_of_tokens(annotator: Any) -> None:
    for number in range(MOST_NAMED):
        token_create(user=annotator, name=str(number), days=30)
    with pytest.raises(Invalid, match="named “3” already"):
        token_create(user=annotator, name="3", days=30)
    with pytest.raises(Conflict, match="At most 20 tokens"):
        token_create(user=annotator, name="one more", days=30)
    # Those of log-ins don't count, and the oldest of them gives way.
    made = [log_in_token_create(user=annotator)[1] for _ in range(MOST_OF_LOG_INS + 1)]
    assert [opens(token) for token in made[:3]] == [401, 200, 200]
    assert annotator.api_tokens.count() == MOST_NAMED + MOST_OF_LOG_INS


def test_a_password_that_ends_tokens_ends_those_being_made(annotator: Any) -> None:
    """As for a request that was let in before, and makes its token after."""
    let_in = User.objects.get(pk=annotator.pk)
    password_set(user=annotator, password="another good one 7")
    for make in (log_in_token_create, partial(token_create, name="late", days=30)):
        with pytest.raises(Forbidden):
            make(user=let_in)
    let_in = User.objects.get(pk=annotator.pk)
    User.objects.update(is_active=False)
    with pytest.raises(Forbidden):
        log_in_token_create(user=let_in)
    assert not ApiToken.objects.exists()


def test_each_exchange_makes_a_token_that_can_revoke_itself(
    anonymous_api: APIClient, researcher: Any
) -> None:
    answers = [
        anonymous_api.post("/api/token/", {"username": "rosa", "password": PASSWORD}).json()
        for _ in range(2)
    ]
    first, second = (answer["token"] for answer in answers)
    assert first != second
    assert answers[0]["expires_at"][:4] >= str(timezone.now().year)
    assert anonymous_api.delete("/api/token/").status_code == 401
    assert client_of(researcher).delete("/api/token/").status_code == 401
    anonymous_api.credentials(HTTP_AUTHORIZATION=f"Token {first}")
    assert anonymous_api.delete("/api/token/").status_code == 204
    assert anonymous_api.delete("/api/token/").status_code == 401
    # A script that still sends the old one can exchange its password for another.
    again = anonymous_api.post("/api/token/", {"username": "rosa", "password": PASSWORD})
    assert again.status_code == 200
    assert opens(second) == 403  # a researcher's, who takes no part in labeling


def test_a_request_asks_once_for_its_token(
    annotator: Any, annotator_api: APIClient, django_assert_num_queries: Any
) -> None:
    with django_assert_num_queries(2):  # token with person, preferences
        annotator_api.get("/api/preferences/labeling/")
    browser = client_of(annotator)
    with django_assert_num_queries(3):  # session, person, preferences
        browser.get("/api/preferences/labeling/")
