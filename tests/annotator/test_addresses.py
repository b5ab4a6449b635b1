"""Every address there is: whom it is closed to, what its answer lets caches keep, and what it says
to numbers that no row has and to nonsense in its parameters. No answer needs somebody outside.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from core.jobs.models import Job
from evaluation.runs.models import Run
from labeling.audits.models import DrawKey, ReleaseKey
from labeling.candidates.models import CandidateList
from labeling.judging.access import queries_visible_to, sees_query, why_not
from labeling.judging.models import JudgmentEvent
from labeling.queries.models import Query, QueryExample
from retrieval.corpus.models import Image, Species
from retrieval.flags.models import ImageFlag
from retrieval.flags.selectors import images_in_corpus
from tests.annotator.addresses import OPEN, addresses
from tests.annotator.world import World
from tests.conftest import api_of, client_of
from tests.labeling.conftest import FIRST_ID

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("sockets_of_requests")]

#: More than the columns of 4 and of 8 bytes hold, and than a float can tell apart.
LARGE = [2**31, 2**63, 10**30]
PRIVATE = "private, no-store"
TYPE = "application/problem+json"
#: Addresses outside benchmark that a researcher reaches with GET, by their first part, and what is
#: answered. A job is theirs to see if they began it, and the file of any image of the corpus is.
READS = {"": 302, "help/": 200, "api/jobs/": 200, "jobs/": 404}
#: What belongs to releases, runs and the leaderboard has tests of its own, and so has everybody's
#: account.
OF_RESEARCHERS = (
    *("account/", "admin/", "releases/", "leaderboard/", "runs/"),
    *("api/releases/", "api/runs/", "api/submissions/", "api/correlate/"),
)
#: What Django's admin lets nobody do.
UNCHANGEABLE = re.compile(r"admin/\w+/\w+/(.*/delete|add)/|admin/autocomplete/|runs/\d+/delete/")


@pytest.fixture
def clients(world: World) -> dict[str, list[Any]]:
    """Of each role a browser's client and one that sends the token."""
    found = {role: [client_of(user), api_of(user)] for role, user in world.people.items()}
    return {"anonymous": [Client(), Client()], **found}


def is_image_file(address: str) -> bool:
    return address.startswith("images/") and address.endswith(".jpg")


def closed_to_anonymous(address: str, method: str, answer: Any) -> bool:
    if address.startswith(("api/", "metrics")):
        return bool(answer.status_code == 401 and answer["Content-Type"] == TYPE)
    if is_image_file(address):
        return bool(answer.status_code == (401 if method == "get" else 405))
    leads = answer.status_code == 302 and re.match(r"/(admin/)?login/\?next=", answer["Location"])
    return bool(leads)


def closed_to_researchers(address: str, method: str, answer: Any) -> bool:
    if address.startswith(OF_RESEARCHERS):
        return True
    if method == "get" and is_image_file(address):
        return bool(answer.status_code == 200)
    read = READS.get(address) or READS.get(address.split("/")[0] + "/")
    if method == "get" and read:
        return bool(answer.status_code == read)
    api = address.startswith("api/") and not address.startswith("api/jobs/")
    return answer.status_code in ({403} if api else {403, 404, 405})


def there_for_admins(address: str, method: str, answer: Any) -> bool:
    """Or what others are refused would be refused to everybody. Some lead to another page, and some
    are for other methods.
    """
    if answer.status_code == 403:
        return bool(UNCHANGEABLE.fullmatch(address))
    return answer.status_code in {200, 302, 405}


RIGHT = {
    "anonymous": closed_to_anonymous,
    "researcher": closed_to_researchers,
    "admin": there_for_admins,
}


def test_what_each_role_reads_and_what_caches_may_keep(
    world: World, clients: dict[str, list[Any]], settings: Any
) -> None:
    """Images alone may be kept, by the browser that was given them. The keys of draws are nowhere,
    not in the files of a release either: as bytes, hexadecimal digits or base 64. Hidden places are
    for reviewers and admins, and so are custom fields that no admin has shown or released.
    """
    settings.HIDDEN_PLACES = ["CR"]
    Species.objects.update(conservation_status="CR")
    place = {"latitude": 12.345678, "longitude": -76.543219}
    Image.objects.update(species=world.species, **place)
    placed = set()
    # By the values of custom fields: those who read them anywhere.
    readers: dict[bytes, set[str]] = {
        value: set() for value in (b"biotope-shown", b"biotope-released", b"biotope-hidden")
    }
    query, run = world.queries["open"].pk, world.run.pk
    parameters = {
        f"api/queries/{query}/history/": {"image": FIRST_ID},
        f"api/queries/{query}/similar/": {"image": FIRST_ID},
        "api/search/": {"text": "a toad"},
        "api/data-sets/found/": {"dataset": world.image.dataset, "finding": "license"},
        "api/data-sets/releases/": {"dataset": world.image.dataset},
        "api/images/tiles/": {"id": FIRST_ID},
        "api/data-sets/removal/": {"dataset": world.image.dataset},
        "runs/compare/": {"a": run, "b": world.private_run.pk, "release": world.release.pk},
    }
    keys = [
        bytes(key) for kind in (DrawKey, ReleaseKey) for (key,) in kind.objects.values_list("key")
    ]
    assert len(keys) == len(world.queries) + 1
    written = [
        form.lower()
        for key in keys
        for form in (key, key.hex().encode(), base64.b64encode(key)[:40])
    ]

    def told(text: bytes) -> bool:
        return any(one in text.lower() for one in written)

    kept, wrong, seen = set(), [], 0
    for role, (browser, program) in clients.items():
        for address in sorted({*world.addresses}):
            client = program if address.startswith("api/") else browser
            answer = client.get(f"/{address}", parameters.get(address))
            text = b"".join(answer)
            assert not told(text), (role, address)
            if b"12.345678" in text or b"76.543219" in text:
                placed.add((role, address))
            for value, who in readers.items():
                if value in text:
                    who.add(role)
            status = answer.status_code
            if not address.startswith("admin/jsi18n"):
                header = answer.headers["Cache-Control"]
                assert "private" in header or status == 503, (role, address, header)
                if "no-store" not in header:
                    kept.add((address, header))
            if address in OPEN:
                continue
            if role in RIGHT and not RIGHT[role](address, "get", answer):
                wrong.append(f"{role}: {address}: {status}")
            seen += role == "admin" and status == 200
    assert wrong == []
    assert seen > 100
    assert {role for role, _ in placed} == {"reviewer", "admin"}, placed
    decide = {"reviewer", "admin"}
    assert readers == {
        b"biotope-shown": {"annotator", *decide},
        b"biotope-released": {"researcher", *decide},
        b"biotope-hidden": decide,
    }
    image = {
        address[1:].partition("?")[0] for address in (world.image.url, world.image.thumbnail_url)
    }
    assert kept == {(route, "private, max-age=31536000, immutable") for route in image}
    files = [path for path in Path(settings.VAR_DIR).rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if told(path.read_bytes())] == []

    assert "no-store" in Client().get("/login/").headers["Cache-Control"]
    for client, prefix in zip(clients["researcher"], ("", "/api"), strict=True):
        for name in ("archive", "files/inquire_queries_val.csv"):
            answer = client.get(f"{prefix}/releases/{world.release.pk}/{name}")
            assert answer.status_code == 200
            assert answer.headers["Cache-Control"] == PRIVATE


def test_who_takes_no_part_in_labeling_changes_nothing(
    world: World, clients: dict[str, list[Any]]
) -> None:
    def state() -> list[object]:
        return [
            sorted(Query.objects.values_list("pk", "text", "state")),
            sorted(ImageFlag.objects.values_list("pk", "raised_by", "state")),
            sorted(Job.objects.values_list("pk", "state")),
            *(kind.objects.count() for kind in (JudgmentEvent, CandidateList, QueryExample, Run)),
            images_in_corpus().count(),
        ]

    before, asked, wrong = state(), 0, []
    for address in sorted({*world.addresses} - OPEN):
        api = address.startswith("api/")
        for role in ("anonymous", "researcher"):
            if role == "researcher" and address.startswith(OF_RESEARCHERS):
                continue
            for method in ("post", "put", "patch", "delete") if api else ("post", "delete"):
                answer = getattr(clients[role][api], method)(f"/{address}")
                asked += 1
                if not RIGHT[role](address, method, answer):
                    wrong.append(f"{role}: {method} {address}: {answer.status_code}")
    assert wrong == []
    assert state() == before
    assert asked > 500


def test_no_query_is_there_for_a_researcher_to_judge(world: World) -> None:
    query, addresses = world.queries["open"], ("corpus/", "api/images/matches/", "api/queries/")
    for address in (*addresses, f"queries/{query.pk}/", f"api/queries/{query.pk}/"):
        assert client_of(world.people["annotator"]).get(f"/{address}").status_code == 200
        assert client_of(world.people["researcher"]).get(f"/{address}").status_code in (403, 404)
    researcher = world.people["researcher"]
    assert not queries_visible_to(researcher).exists()
    assert not sees_query(researcher, query)
    assert why_not(researcher, query).startswith("Researchers don't judge")


def test_numbers_that_no_row_has_are_found_nowhere(clients: dict[str, list[Any]]) -> None:
    walked, wrong = 0, []
    for number in LARGE:
        for route in addresses(number):
            if str(number) not in route:
                continue
            client = clients["admin"][route.startswith("api/")]
            for method in ("get", "post", "delete") if number == LARGE[1] else ("get",):
                status = getattr(client, method)(f"/{route}").status_code
                walked += 1
                refused = {404, 405}
                if method == "post":  # or the empty body is refused
                    refused |= {400}
                if route.startswith("admin/"):  # which says so on a page that it leads to
                    refused |= {302, 403}
                if status not in refused:
                    wrong.append((method, route, status))
    assert wrong == []
    assert walked > 500


#: Parameters of pages, each with a value that means nothing.
NONSENSE = [
    ("", "sort", "sideways"),
    ("corpus/", "view", "half"),
    ("corpus/", "date", "9" * 30),
    ("flags/", "state", "lost"),
    ("corpus/", "species", "x"),
    ("corpus/", "species", "9" * 30),
    ("corpus/", "like", "x"),
    ("corpus/", "like", "9" * 18),
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
    ("releases/{release}/leaderboard/", "column", "Luck@50"),
    ("releases/{release}/leaderboard/", "method", "luck"),
    ("releases/{release}/leaderboard/", "size", "gigantic"),
    ("releases/{release}/leaderboard/", "weights", "heavy"),
    ("releases/{release}/analysis/", "task", "juggling"),
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


def test_a_nul_character_is_refused(world: World, clients: dict[str, list[Any]]) -> None:
    browser, program = clients["admin"]
    query, release = world.queries["open"].pk, world.release.pk
    for path in ("/", f"/queries/{query}/", "/admin/retrieval/image/", "/api/queries/"):
        client = program if path.startswith("/api/") else browser
        for parameters in ("search=a%00b", "a%00b=1"):
            assert client.get(f"{path}?{parameters}").status_code == 400, path
    for path in ("/queries/new/", "/login/", f"/queries/{query}/edit/"):
        assert browser.post(path, {"text": "a\0b"}).status_code == 400, path
    for path in (
        f"/releases/{release}/files/a%00b",
        f"/api/releases/{release}/files/a%00b",
        f"/releases/{release}/leaderboard.a%00b",
        f"/images/{world.image.pk}/a%00b.jpg",
        "/admin/axes/accessattempt/a%00b/change/",
    ):
        client = program if path.startswith("/api/") else browser
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


def test_a_page_or_filter_that_no_list_has_is_refused_by_name(
    clients: dict[str, list[Any]],
) -> None:
    _, admin_api = clients["admin"]
    pages = [
        *(("limit", value) for value in ("0", "501", "ten", "")),
        *(("offset", value) for value in ("-1", "9" * 30, "x")),
    ]
    for path in ("queries/", "species/", "jobs/", "releases/", "runs/", "flags/"):
        for name, value in pages:
            answer = admin_api.get(f"/api/{path}", {name: value})
            assert answer.status_code == 400, (path, name, value)
            named = [error["field"] for error in answer.json()["errors"]]
            assert named == [name], (path, name, value)
        assert admin_api.get(f"/api/{path}", {"offset": 2**63 - 1}).json()["results"] == [], path
    for path, field in (
        ("runs/?release=x", "release"),
        (f"runs/?release={2**63}", "release"),
        ("runs/?task=", "task"),
        ("flags/?state=", "state"),
        ("queries/?state=odd", "state"),
        (f"species/groups/?species={2**63}", "species"),
        (f"search/?text=x&limit={10**30}", "limit"),
    ):
        answer = admin_api.get(f"/api/{path}")
        assert answer.status_code == 400, path
        assert [error["field"] for error in answer.json()["errors"]] == [field], path
