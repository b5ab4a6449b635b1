"""The pages of errors: each says what happened under a heading, in the site's frame."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.test import Client, override_settings
from django.urls import path

from annotator import urls


def broken(request: HttpRequest) -> HttpResponse:
    raise ZeroDivisionError


def malformed(request: HttpRequest) -> HttpResponse:
    raise SuspiciousOperation


urlpatterns = [*urls.urlpatterns, path("broken/", broken), path("malformed/", malformed)]
handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500


def check(answer: Any, status: int, heading: str) -> str:
    text: str = answer.content.decode()
    assert answer.status_code == status
    assert text.count("<h1>") == 1
    assert f"<h1>{heading}</h1>" in text
    assert '<header class="site-header">' in text
    assert f"<title>{heading} · Inquire Annotator</title>" in text
    return text


@override_settings(ROOT_URLCONF=__name__)
@pytest.mark.parametrize(
    ("address", "status", "heading"),
    [
        ("/nowhere/", 404, "Not found"),
        ("/broken/", 500, "Something broke"),
        ("/malformed/", 400, "The request can’t be read"),
    ],
)
@pytest.mark.parametrize("logged_in", [False, True])
def test_every_error_has_a_heading_in_the_frame(
    address: str, status: int, heading: str, logged_in: bool, annotator: Any
) -> None:
    client = Client(raise_request_exception=False)
    if logged_in:
        client.force_login(annotator)
    check(client.get(address), status, heading)


def test_a_role_that_is_missing(annotator: Any) -> None:
    client = Client()
    client.force_login(annotator)
    text = check(client.get("/queries/new/"), 403, "Not for your role")
    assert 'aria-label="Main"' in text


@pytest.mark.parametrize("logged_in", [False, True])
def test_a_form_that_has_expired(logged_in: bool, annotator: Any) -> None:
    client = Client(enforce_csrf_checks=True)
    if logged_in:
        client.force_login(annotator)
    address = "/logout/" if logged_in else "/login/"
    check(client.post(address, {"username": "x"}), 403, "The form has expired")
