"""Primary keys in addresses and forms; whatever else stands there is no error of the server."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from core.ids import id_of, ids_of

NONE = ["", "x", "-1", "²", "٣", str(2**63), "9" * 5000]


def test_a_key_is_plain_digits_of_a_length_that_fits() -> None:
    assert [id_of(text) for text in NONE] == [None] * len(NONE)
    assert ids_of(["7", *NONE, str(2**63 - 1)]) == [7, 2**63 - 1]


@pytest.mark.django_db
def test_pages_do_not_find_what_is_no_key(clients: dict[str, Client]) -> None:
    client = clients["admin"]
    client.raise_request_exception = False
    for text in filter(None, NONE):
        assert client.get(reverse("search"), {"species": text}).status_code == 404
        assert client.post(reverse("query-open-many"), {"query": text}).status_code == 404
        asked = {"text": "a toad", "species": text}
        assert client.post(reverse("query-from-search"), asked).status_code == 404
        assert client.post(reverse("query-new"), asked).status_code == 200  # its form says so
