"""Every address there is, with numbers that no row has, with nonsense in its parameters, and with
what its answer lets caches keep."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from labeling.audits.models import DrawKey, ReleaseKey
from tests.annotator.addresses import addresses
from tests.annotator.world import World, make_world
from tests.conftest import api_of, client_of

pytestmark = pytest.mark.django_db

ROLES = ["anonymous", "researcher", "annotator", "reviewer", "admin"]
#: More than the columns of 4 and of 8 bytes hold, and than a float can tell apart.
LARGE = [2**31, 2**63, 10**30]
PRIVATE = "private, no-store"
TYPE = "application/problem+json"


@pytest.fixture
def world(db: None, settings: Any, tmp_path: Path) -> World:
    """One of everything."""
    return make_world(settings, tmp_path)


@pytest.fixture
def clients(world: World) -> dict[str, list[Any]]:
    """Of each role a browser's client and one that sends the token."""
    found: dict[str, list[Any]] = {"anonymous": [Client()]}
    for role, user in world.people.items():
        found[role] = [client_of(user), api_of(user)]
    return found


def test_numbers_that_no_row_has_are_found_nowhere(clients: dict[str, list[Any]]) -> None:
    walked = 0
    wrong = []
    for number in LARGE:
        for route in addresses(number):
            if str(number) not in route:
                continue
            # What another role may not ask, no number changes.
            usual = number == LARGE[1]
            for role in ROLES if usual else ["admin"]:
                client = clients[role][route.startswith("api/") and role != "anonymous"]
                changes = ("post", "delete") if usual and role == "admin" else ()
                for method in ("get", *changes):
                    answer = getattr(client, method)(f"/{route}")
                    walked += 1
                    refused = {404, 405} if role == "admin" else {401, 403, 404, 405}
                    if method == "post":  # or the empty body is refused
                        refused |= {400}
                    if route.startswith("admin/"):  # which says so on a page that it leads to
                        refused |= {302, 403}
                    asked_to_log_in = role == "anonymous" and answer.status_code == 302
                    if answer.status_code not in refused and not asked_to_log_in:
                        wrong.append((role, method, route, answer.status_code))
    assert wrong == []
    assert walked > 1000


def test_no_answer_is_kept_by_a_shared_cache_or_has_a_key_of_draws(
    world: World, clients: dict[str, list[Any]], settings: Any
) -> None:
    """Images alone may be kept, by the browser that was given them. Keys are nowhere, not in the
    files of a release either: as text, bytes, hexadecimal digits or base 64.
    """
    key = b"a-secret-of-32-bytes-for-draws-x"
    assert DrawKey.objects.update(key=key) == len(world.queries)
    assert ReleaseKey.objects.update(key=key) == 1
    written = [one.lower() for one in (key, key.hex().encode(), base64.b64encode(key)[:40])]

    def told(text: bytes) -> bool:
        return any(one in text.lower() for one in written)

    kept = set()
    for role in ROLES:
        for route in world.addresses:
            client = clients[role][route.startswith("api/") and role != "anonymous"]
            answer = client.get(f"/{route}")
            assert not told(b"".join(answer)), (role, route)
            if route.startswith("admin/jsi18n"):
                continue
            header = answer.headers["Cache-Control"]
            assert "private" in header or answer.status_code == 503, (role, route, header)
            if "no-store" not in header:
                kept.add((route, header))
    files = [path for path in Path(settings.VAR_DIR).rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if told(path.read_bytes())] == []
    image = {world.image.url[1:], world.image.thumbnail_url[1:]}
    assert kept == {(route, "private, max-age=31536000, immutable") for route in image}

    assert "no-store" in Client().get("/login/").headers["Cache-Control"]
    assert Client().get("/").headers["Cache-Control"] == PRIVATE
    for client, prefix in zip(clients["researcher"], ("", "/api"), strict=True):
        for name in ("archive", "files/inquire_queries_val.csv"):
            answer = client.get(f"{prefix}/releases/{world.release.pk}/{name}")
            assert answer.status_code == 200
            assert answer.headers["Cache-Control"] == PRIVATE


#: Parameters of pages, each with a value that means nothing.
NONSENSE = [
    ("", "sort", "sideways"),
    ("corpus/", "page", "x"),
    ("corpus/", "page", "9" * 30),
    ("flags/", "state", "lost"),
    ("search/", "species", "x"),
    ("search/", "species", "9" * 30),
    ("search/", "part", "half"),
    ("runs/", "of", "nobody"),
    ("releases/{release}/leaderboard/", "task", "juggling"),
    ("releases/{release}/leaderboard/", "split", "train"),
    ("releases/{release}/leaderboard/", "view", "upside-down"),
    ("releases/{release}/leaderboard/", "measure", "Luck@50"),
    ("releases/{release}/leaderboard/", "sort", "luck"),
    ("releases/{release}/leaderboard/", "order", "random"),
    ("releases/{release}/leaderboard/", "stages", "over"),
    ("releases/{release}/leaderboard/", "run", "x"),
    ("releases/{release}/leaderboard/", "beside", "9" * 30),
    ("releases/{release}/correlations/", "task", "juggling"),
    ("releases/{release}/correlations/", "split", "train"),
    ("releases/{release}/correlations/", "columns", "Luck@50"),
    ("releases/{release}/bias/", "split", "train"),
    ("releases/{release}/bias/", "measure", "Luck@50"),
    ("releases/{release}/bias/", "first", "7"),
    ("runs/{run}/", "split", "train"),
    ("runs/{run}/", "release", "9" * 30),
    ("runs/{run}/", "measure", "Luck@50"),
    ("runs/{run}/", "sort", "luck"),
    ("runs/{run}/", "order", "random"),
    ("runs/{run}/queries/3/", "page", "x"),
    ("runs/{run}/queries/3/", "other", "9" * 30),
    ("runs/compare/", "a", "x"),
    ("runs/compare/", "release", "9" * 30),
]


def test_nonsense_in_a_page_s_address_finds_nothing_and_nothing_is_as_usual(
    world: World, clients: dict[str, list[Any]]
) -> None:
    client, _ = clients["admin"]
    for route, name, value in NONSENSE:
        path = "/" + route.format(release=world.release.pk, run=world.run.pk)
        assert client.get(path, {name: value}).status_code == 404, (path, name, value)
        if route != "runs/compare/":
            assert client.get(path, {name: ""}).status_code == 200, (path, name)
    # Django's admin finds by texts: numbers beyond a column are no rows.
    for model in ("retrieval/image", "labeling/judgment", "core/jobitemerror"):
        for number in LARGE:
            assert client.get(f"/admin/{model}/", {"q": number}).status_code == 200


def test_a_nul_character_is_refused_everywhere(world: World, clients: dict[str, list[Any]]) -> None:
    asked = 0
    for route in world.addresses:
        client = clients["admin"][route.startswith("api/")]
        for path in (f"/{route}?search=a%00b", f"/{route}?a%00b=1"):
            assert client.get(path).status_code == 400, path
            asked += 1
        form = {} if route.startswith("api/") else {"text": "a\0b"}
        if form and route != "healthz":
            assert client.post(f"/{route}", form).status_code in {400, 405}, route
    assert asked > 100
    for path in (
        f"/releases/{world.release.pk}/files/a%00b",
        f"/api/releases/{world.release.pk}/files/a%00b",
        f"/releases/{world.release.pk}/leaderboard.a%00b",
        f"/images/{world.image.pk}/a%00b.jpg",
        "/admin/axes/accessattempt/a%00b/change/",
    ):
        client = clients["admin"][path.startswith("/api/")]
        assert client.get(path).status_code == 404, path


def test_a_parameter_that_the_api_does_not_know_is_refused_by_name(
    world: World, clients: dict[str, list[Any]]
) -> None:
    asked = 0
    for route in world.addresses:
        if not route.startswith("api/") or route == "api/schema/":
            continue
        _, client = clients["admin"]
        for method in ("get", "post", "patch", "delete"):
            answer = getattr(client, method)(f"/{route}?stat=open")
            if answer.status_code == 405:
                continue
            assert (answer.status_code, answer["Content-Type"]) == (400, TYPE), (method, route)
            assert answer.json()["errors"] == [
                {"field": "stat", "detail": "There is no such parameter."}
            ]
            asked += 1
    assert asked > 50


#: Pages that no list has.
PAGES = [
    ("limit", "0"),
    ("limit", "501"),
    ("limit", "ten"),
    ("limit", ""),
    ("offset", "-1"),
    ("offset", "9" * 30),
    ("offset", "x"),
]


def test_a_page_that_no_list_has_is_refused_by_name(admin_api: Any) -> None:
    for path in ("queries/", "species/", "jobs/", "releases/", "runs/", "flags/"):
        for name, value in PAGES:
            answer = admin_api.get(f"/api/{path}", {name: value})
            assert answer.status_code == 400, (path, name, value)
            named = [error["field"] for error in answer.json()["errors"]]
            assert named == [name], (path, name, value)
        assert admin_api.get(f"/api/{path}", {"offset": 2**63 - 1}).json()["results"] == [], path


def test_a_filter_of_the_api_refuses_nonsense_by_name(admin_api: Any) -> None:
    for path, field in (
        ("runs/?release=x", "release"),
        (f"runs/?release={2**63}", "release"),
        ("runs/?task=", "task"),
        ("runs/?kind=odd", "kind"),
        ("flags/?state=", "state"),
        ("queries/?state=odd", "state"),
        ("queries/?category=odd", "category"),
        (f"species/groups/?species={2**63}", "species"),
        (f"search/?text=x&limit={10**30}", "limit"),
    ):
        answer = admin_api.get(f"/api/{path}")
        assert answer.status_code == 400, path
        assert [error["field"] for error in answer.json()["errors"]] == [field], path
