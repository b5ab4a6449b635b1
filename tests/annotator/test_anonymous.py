"""Every address there is, of something that is there: closed to who has not logged in."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.test import Client

from tests.annotator.addresses import OPEN
from tests.annotator.world import World, make_world
from tests.conftest import client_of
from tests.labeling.conftest import FIRST_ID

METHODS = ("get", "post", "patch", "delete")


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Path) -> World:
    return make_world(settings, tmp_path)


def test_every_address_is_closed_to_anonymous_visitors(world: World) -> None:
    wrong = []
    for address in sorted({*world.addresses} - OPEN):
        for method in METHODS:
            answer = getattr(Client(), method)(f"/{address}")
            status = answer.status_code
            if address.startswith(("api/", "metrics")):
                closed = status == 401 and answer["Content-Type"] == "application/problem+json"
            elif address.startswith("images/"):
                closed = status == (401 if method == "get" else 405)
            else:
                login = r"/(admin/)?login/\?next="
                closed = status == 302 and bool(re.match(login, answer["Location"]))
            if not closed:
                wrong.append(f"{method} {address}: {status}")
    assert wrong == []


def test_every_address_is_of_something_that_is_there(world: World) -> None:
    """Or what anonymous visitors are refused would be refused to everybody."""
    client = client_of(world.people["admin"])
    query, run = world.queries["open"].pk, world.run.pk
    parameters = {
        f"api/queries/{query}/history/": {"image": FIRST_ID},
        f"api/queries/{query}/similar/": {"image": FIRST_ID},
        "api/search/": {"text": "a toad"},
        f"import/{UUID(world.upload)}/image/": {"path": "one.jpg"},
        "runs/compare/": {"a": run, "b": world.private_run.pk, "release": world.release.pk},
    }
    unchangeable = re.compile(
        r"admin/\w+/\w+/(.*/delete|add)/|admin/autocomplete/|runs/\d+/delete/"
    )
    wrong, seen = [], 0
    for address in sorted({*world.addresses} - OPEN):
        status = client.get(f"/{address}", parameters.get(address)).status_code
        seen += status == 200
        # Some lead to another page, and some are for other methods.
        closed = status == 403 and unchangeable.fullmatch(address)
        if not (status in {200, 302, 405} or closed):
            wrong.append(f"{address}: {status}")
    assert wrong == []
    assert seen > 100
