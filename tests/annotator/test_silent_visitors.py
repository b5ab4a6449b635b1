"""Hundreds of visitors who are silent, or read nothing, while ten people label."""

from __future__ import annotations

import http.client
import json
import threading
import time
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import cycle

import pytest

from tests.annotator.visitors import KINDS, Visitors, reader
from tests.e2e.labeling import images_of
from tests.processes import wait_for
from tests.site import Site
from tests.worlds import start_site

pytestmark = [pytest.mark.e2e, pytest.mark.faults]

SECONDS = 60
VISITORS = 300
#: More than one process may have had open by `select`.
IDLE = 1200
PEOPLE = [f"person{number}" for number in range(10)]
#: Seconds from one judgment of a person to the next.
PACE = 0.5
LONGEST_SAVE = 1.0
#: An answer of which a server can't hand all to the network at once.
LARGE = 64 << 20
UPLOAD_BYTES, UPLOAD_A_SECOND = 50_000_000, 125_000


@dataclass
class Place:
    """A site with an open query, and what is large in it, by those who may read it."""

    site: Site
    query: int
    release: str
    """Its address in the API."""
    readers: dict[str, tuple[str, dict[str, str]]]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A release whose archive is large, and a log whose table is large."""
    site = start_site(tmp_path_factory.mktemp("silent") / "var", LOG_LEVEL="WARNING")
    try:
        site.served.wait_healthy()
        site.create_users(dict.fromkeys(PEOPLE, "annotator"))
        long = site.open_query("a hopper on a stone ".ljust(500, "!"))
        site.judge("ann", long, [(images_of(site, long, 1)[0], "relevant")])
        done = {"state": "complete", "note": "Enough."}
        site.api("ada", "PATCH", f"/api/queries/{long}/", done)
        with site.served.database() as cursor:
            cursor.execute(
                "INSERT INTO labeling_querytransition (query_id, from_state, to_state, reason, "
                "note, made_by_id, made_at) SELECT query_id, from_state, to_state, reason, note, "
                "made_by_id, made_at FROM labeling_querytransition, generate_series(1, 20000)"
            )
        release = f"/api/releases/{site.api('ada', 'POST', '/api/releases/', {'name': 'v1'})['id']}"
        wait_for(lambda: site.api("ada", "GET", f"{release}/")["archive"], what="an archive")
        for archive in (site.served.var_dir / "releases").rglob("*.zip"):
            with archive.open("ab") as file:
                file.truncate(LARGE)
        session = {"Cookie": f"sessionid={site.people['ada']['session']}"}
        yield Place(
            site,
            site.open_query("a fox in the snow"),
            release,
            {
                "range": (f"{release}/archive", site.headers("ada") | {"Range": "bytes=1000-"}),
                "log": ("/log.csv", session),
            },
        )
    finally:
        site.served.end()


@dataclass
class Labeler:
    """A person who judges image after image, and remembers what was acknowledged, and how late."""

    site: Site
    query: int
    name: str
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def work(self, ended: threading.Event) -> None:
        server = http.client.HTTPConnection("127.0.0.1", self.site.served.port, timeout=60)
        marks = zip(
            cycle(images_of(self.site, self.query, 100)),
            cycle(["relevant", "not_relevant", "unsure"]),
            strict=False,
        )
        for image, relevance in marks:
            if ended.wait(PACE):
                return
            act = {
                "image": image, "relevance": relevance, "client_id": str(uuid.uuid4()),
                "seconds": 2.5, "source": "list",
            }  # fmt: skip
            path = f"/api/queries/{self.query}/judgments/"
            began = time.monotonic()
            server.request("POST", path, json.dumps([act]), self.site.headers(self.name))
            answer = server.getresponse()
            text = answer.read()
            self.seconds.append(time.monotonic() - began)
            assert answer.status == 200, text
            self.acknowledged.append((image, relevance))


@contextmanager
def ten_people_label(place: Place) -> Iterator[None]:
    """Ten people label while the block runs: each save is stored, and none takes long; the server
    says that it is well.
    """
    site, ended = place.site, threading.Event()
    with site.served.database() as cursor:
        cursor.execute("SELECT coalesce(max(id), 0) FROM labeling_judgmentevent")
        last = cursor.fetchone()[0]
    people = [Labeler(site, place.query, name) for name in PEOPLE]
    with ThreadPoolExecutor(len(people)) as pool:
        working = [pool.submit(person.work, ended) for person in people]
        try:
            yield
            with urllib.request.urlopen(f"{site.url}/healthz", timeout=5) as answer:
                assert answer.status == 200
        finally:
            ended.set()
    for person, work in zip(people, working, strict=True):
        work.result()
        with site.served.database() as cursor:
            cursor.execute(
                "SELECT image_id, relevance FROM labeling_judgmentevent JOIN annotator_user u "
                "ON u.id = annotator_id WHERE labeling_judgmentevent.id > %s AND username = %s "
                "ORDER BY labeling_judgmentevent.id",
                [last, person.name],
            )
            assert cursor.fetchall() == person.acknowledged != []
    longest = max(max(person.seconds) for person in people)
    print(f"{sum(len(person.seconds) for person in people)} saves, longest {longest:.3f} s")
    assert longest < LONGEST_SAVE


def visitors(place: Place, name: str, number: int = VISITORS) -> Visitors:
    """Visitors of a kind by its name."""
    kind = KINDS[name] if name in KINDS else reader(*place.readers[name])
    return Visitors(place.site.served.port, kind, number)


@pytest.mark.parametrize("name", [*KINDS, "range", "log"])
def test_silent_visitors_stop_nobody(place: Place, name: str) -> None:
    number = IDLE if name == "idle" else VISITORS
    with ten_people_label(place), visitors(place, name, number):
        time.sleep(SECONDS)


def test_all_silent_visitors_together_stop_nobody(place: Place) -> None:
    with ten_people_label(place), ExitStack() as there:
        there.enter_context(visitors(place, "idle", IDLE))
        for name in (*KINDS, "range", "log"):
            there.enter_context(visitors(place, name))
        time.sleep(SECONDS)


def test_a_large_upload_over_a_slow_line_comes_in(place: Place) -> None:
    """All of it is read: of the form only the name is missing, which isn't sent."""
    head = b'--x\r\nContent-Disposition: form-data; name="file"; filename="run.txt"\r\n\r\n'
    form = head + b"1 Q0 1 1 0.5 run\n" * (UPLOAD_BYTES // 17) + b"\r\n--x--\r\n"

    def slowly() -> Iterator[bytes]:
        for at in range(0, len(form), UPLOAD_A_SECOND):
            yield form[at : at + UPLOAD_A_SECOND]
            time.sleep(1)

    server = http.client.HTTPConnection("127.0.0.1", place.site.served.port, timeout=60)
    sent = {
        "Content-Type": "multipart/form-data; boundary=x",
        "Content-Length": str(len(form)),
    }
    path = f"{place.release}/runs/"
    server.request("POST", path, slowly(), place.site.headers("ada") | sent)
    answer = server.getresponse()
    assert answer.status == 400
    assert [error["field"] for error in json.load(answer)["errors"]] == ["name"]
