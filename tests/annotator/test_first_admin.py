"""The first admin, made by the link that `serve` prints."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from django.core.signing import TimestampSigner
from django.test import Client

from annotator.models import User
from annotator.people.first_admin import first_admin_create, first_admin_token
from tests.threads import at_once

PASSWORD = "a-brown-owl-at-dawn-8"
ADA = {"username": "ada", "password": PASSWORD, "again": PASSWORD}


@pytest.mark.django_db
def test_the_link_makes_one_admin_and_then_ends() -> None:
    token, other = first_admin_token(), first_admin_token()
    browser = Client()
    path = f"/first-admin/{token}/"
    assert "First admin" in browser.get(path).content.decode()
    for wrong, says in (
        ({"again": "another"}, "The two passwords differ."),
        ({"password": "a", "again": "a"}, "too short"),
        ({"username": "two words"}, "Enter a valid username."),
    ):
        assert says in browser.post(path, {**ADA, **wrong}).content.decode()
        assert not User.objects.exists()
    assert browser.post(path, ADA)["Location"] == "/"
    assert browser.get("/people/").status_code == 200
    assert User.objects.get().role == "admin"
    for used in (token, other):
        answer = Client().post(f"/first-admin/{used}/", {**ADA, "username": "eve"})
        assert answer.status_code == 404
    assert first_admin_token() is None
    assert User.objects.count() == 1


@pytest.mark.django_db
def test_no_link_but_a_young_one_of_ours_works(settings: Any) -> None:
    token = first_admin_token()
    for forged in ("first", f"{token}x", TimestampSigner().sign("first")):
        assert Client().post(f"/first-admin/{forged}/", ADA).status_code == 404
    settings.PASSWORD_RESET_TIMEOUT = 0
    assert Client().get(f"/first-admin/{token}/").status_code == 404
    assert not User.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_is_made() -> None:
    token = str(first_admin_token())
    at_once(
        *[
            partial(first_admin_create, token=token, username=name, password=PASSWORD)
            for name in ("ada", "eve")
        ]
    )
    assert User.objects.count() == 1
