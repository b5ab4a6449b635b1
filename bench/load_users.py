"""Annotators in their browsers, as Locust runs them: `python -m bench.load_users PLAN FOLDER`.

A process of its own, since gevent replaces parts of the standard library. Each does what the page's
scripts do (static/js/studio, static/js/saving): logs in, opens the page with its files, has the
details of a hundred candidates and the files of the next images fetched ahead, asks each ten
seconds what has changed, and judges at a person's pace into an outbox that sends what waits in
batches, one request at a time, with a rest after each, and again until it is answered.

Writes into FOLDER `requests.csv` (moment, kind, seconds, failed), `ledger.csv` (what became of a
judgment: made, stored, repeated or refused; its client id, moment, query, image, annotator) and, as
soon as everybody labels, an empty file `all-there`. Moments are seconds since 1970.
"""

from __future__ import annotations

# Before all others: it replaces what they import.
from locust import FastHttpUser, task
from locust.env import Environment

# isort: split
import json
import math
import posixpath
import random
import re
import resource
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

import brotli
import gevent
from gevent.event import Event
from gevent.lock import Semaphore
from gevent.pool import Group, Pool

PACE_SPREAD: Final = 0.6
"""Of the logarithm of the seconds for an image."""
GRID_SIZE: Final = 40
# As in static/js/studio and static/js/saving.
AT_A_TIME: Final = 4
AHEAD: Final = 12
FAR: Final = 60
FAR_REST: Final = 5
PAGE: Final = 100
CHANGES_EVERY: Final = 10.0
CHANGES_EVERY_AT_MOST: Final = 30.0
CHANGES_REST: Final = 20
RETRIED_EVERY: Final = 5.0
LARGEST_BATCH: Final = 100
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 10.0
REST: Final = 50
DRAWS_AHEAD: Final = 5
RELEVANCES: Final = ("not_relevant", "not_relevant", "not_relevant", "relevant", "unsure")


@dataclass(slots=True)
class Person:
    """An annotator, and what they do."""

    name: str
    queries: list[int]
    """Labeled one after the other, to the end."""
    grid: bool = False
    """Whether they label by pages of thumbnails, else image by image."""
    audits: bool = False
    """Whether they judge what an audit draws of the first query, before they label it."""


@dataclass(slots=True)
class Plan:
    """What a crowd does."""

    url: str
    password: str
    people: list[dict[str, Any]]
    pace: float
    """Mean seconds for an image."""
    seconds: float
    """How long all label, from when the last one has opened the page on."""
    judgments: int = 0
    """Ends as soon as so many are stored; 0 for never."""
    saves: dict[str, Any] = field(default_factory=dict)
    """Of another program, in place of ours: `headers` of each person, `path` with a place for one
    of `items`, and the `body`.
    """
    files: float = 1.0
    """Share of the images and thumbnails whose files are fetched."""
    a_second: float = 2.0
    """How many people come in a second."""


@dataclass(slots=True)
class Crowd:
    """What all have in common."""

    plan: Plan
    people: deque[Person]
    requests: IO[str]
    ledger: IO[str]
    stored: int = 0
    waiting: int = 0
    opened: int = 0
    ending: bool = False

    def note(self, what: str, record: dict[str, Any]) -> None:
        """Write down what became of a judgment."""
        fields = (record[name] for name in ("client_id", "at", "query", "image", "annotator"))
        self.ledger.write(f"{what},{','.join(map(str, fields))}\n")
        self.waiting += 1 if what == "made" else -1
        self.stored += what in ("stored", "repeated")

    def requested(self, name: str, response_time: float, exception: Any, **more: Any) -> None:
        """Locust's listener: write down a request."""
        failed = int(exception is not None)
        self.requests.write(
            f"{more['start_time']:.3f},{name},{response_time / 1000:.4f},{failed}\n"
        )


@dataclass(slots=True)
class Place:
    """One person's page of one query."""

    api: str
    cursor: int
    details: dict[int, dict[str, Any]] = field(default_factory=dict)
    """By rank, as the API gives them."""
    pages: set[int] = field(default_factory=set)


class Annotator(FastHttpUser):
    """One person in one browser."""

    network_timeout = connection_timeout = 20.0
    concurrency = 6
    crowd: Crowd

    def on_start(self) -> None:
        """Log in."""
        self.person = self.crowd.people.popleft()
        # Of the queries too: crowds of the same people must not send the same ids.
        self.drawn = random.Random(f"{self.person.name} {self.person.queries}")
        self.outbox: deque[dict[str, Any]] = deque()
        self.woken, self.hurried, self.settled = Event(), Event(), Event()
        self.cached: set[str] = set()
        self.background = Group()
        self.background.spawn(self._send)
        while True:
            page = self._get("/login/", "Log in", text)
            self._files(page)
            [token] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
            form = {"username": self.person.name, "password": self.crowd.plan.password}
            form["csrfmiddlewaretoken"] = token
            page = text(self.client.post("/login/", data=form, name="Log in"))
            if page and 'name="user-id"' in page:
                self._files(page)
                return
            gevent.sleep(RETRIED_EVERY)

    def on_stop(self) -> None:
        """Close the browser."""
        self.background.kill()

    @task
    def work(self) -> None:
        """Label one query after the other, then wait for the end."""
        for number, query in enumerate(self.person.queries):
            if self.person.audits and number == 0:
                self._audit(query)
            self._label(query)
        while True:
            gevent.sleep(60)

    def _label(self, query: int) -> None:
        self._files(self._get(f"/queries/{query}/label/", "Page: labeling", text))
        place = Place(f"/api/queries/{query}/", 0)
        outline = self._get(f"{place.api}outline/", "API: outline", parsed)
        place.cursor = outline["cursor"]
        ranks = [
            rank
            for rank, letter in enumerate(outline["relevance"], 1)
            if letter == "-" and rank not in outline["withdrawn"]
        ]
        step = GRID_SIZE if self.person.grid else 1
        there = Semaphore(0)
        room = Semaphore(3 * GRID_SIZE if self.person.grid else FAR)
        polling = self.background.spawn(self._poll, place)
        self.background.spawn(self._fetch_ahead, place, ranks, there, room)
        self._opened(query)
        for start in range(0, len(ranks), step):
            page = ranks[start : start + step]
            for _ in page:
                there.acquire()
            self._think(len(page))
            self._judge(query, [outline["images"][rank - 1] for rank in page], "list")
            for _ in page:
                room.release()
        polling.kill()

    def _audit(self, query: int) -> None:
        self._files(self._get(f"/queries/{query}/audit/", "Page: audit", text))
        address = f"/api/queries/{query}/audit/"
        self._get(address, "API: audit", parsed)
        self._opened(query)
        done: set[int] = set()
        body = {"count": DRAWS_AHEAD}
        while True:
            # The page reads the audit again with each answer.
            self.settled.clear()
            found = parsed(self._post(f"{address}draws/", body, "API: audit, drawn"))
            if found is None:
                gevent.sleep(RETRIED_EVERY)
                continue
            drawn = [one for one in found["results"] if one["to_judge"]]
            following = [one for one in drawn if one["image"] not in done]
            if found["then"]["met"] or not (following or self.outbox):
                return
            while following and not self.settled.is_set():
                one = following.pop(0)
                self._get(one["url"], "Image", arrived)
                self._think(1)
                done.add(one["image"])
                self._judge(query, [one["image"]], "audit")
            if not following:
                # There the page has the outbox send at once.
                self.hurried.set()
            self.settled.wait()

    def _opened(self, query: int) -> None:
        """Count the first page as opened."""
        if query == self.person.queries[0] and not hasattr(self, "began"):
            self.began = time.time()
            self.crowd.opened += 1

    def _think(self, images: int) -> None:
        """As long as a person looks; for ever once the day is over."""
        think(self.crowd.plan.pace, self.drawn, images)
        while self.crowd.ending:
            gevent.sleep(60)

    def _judge(self, query: int, images: list[int], source: str) -> None:
        for image in images:
            record = {
                "client_id": str(uuid.UUID(int=self.drawn.getrandbits(128), version=4)),
                "at": time.time(),
                "query": query,
                "image": image,
                "annotator": self.person.name,
                "relevance": self.drawn.choice(RELEVANCES),
                "source": source,
            }
            self.crowd.note("made", record)
            self.outbox.append(record)
        self.woken.set()

    def _send(self) -> None:
        """As `Sender` in static/js/saving/sender.js."""
        failures = 0
        while True:
            self.woken.wait()
            self.woken.clear()
            while self.outbox:
                query = self.outbox[0]["query"]
                same = [one for one in self.outbox if one["query"] == query]
                batch = same[:LARGEST_BATCH]
                body = [
                    {
                        "image": one["image"],
                        "relevance": one["relevance"],
                        "client_id": one["client_id"],
                        "seconds": 1.0,
                        "source": one["source"],
                        "expected": None,
                        "age": time.time() - one["at"],
                    }
                    for one in batch
                ]
                address = f"/api/queries/{query}/judgments/"
                began = time.time()
                answer = parsed(self._post(address, body, "API: save"))
                if answer is None:
                    failures += 1
                    gevent.sleep(pause(FIRST_PAUSE * 2 ** (failures - 1)))
                    continue
                failures = 0
                now = time.time()
                for record, result in zip(batch, answer["results"], strict=True):
                    self.outbox.remove(record)
                    self.crowd.note(result["status"], record)
                    self.environment.events.request.fire(
                        name="Judgment, from the key to the answer",
                        response_time=(now - record["at"]) * 1000,
                        exception=None,
                        start_time=record["at"],
                        request_type="",
                        response_length=0,
                    )
                self.settled.set()
                if len(batch) < LARGEST_BATCH:
                    self.hurried.wait(pause(REST * (now - began)))
                self.hurried.clear()

    def _poll(self, place: Place) -> None:
        took = 0.0
        while True:
            rest = max(CHANGES_EVERY, CHANGES_REST * took)
            gevent.sleep(min(rest, CHANGES_EVERY_AT_MOST))
            address = f"{place.api}changes/?cursor={place.cursor}"
            began = time.time()
            answer = parsed(self.client.get(address, name="API: changes"))
            took = time.time() - began
            if answer is not None:
                place.cursor = answer["cursor"]

    def _fetch_ahead(
        self, place: Place, ranks: list[int], there: Semaphore, room: Semaphore
    ) -> None:
        """Fetch the files of images to come: the nearest, and in the grid all, a few at a time, the
        others one by one, with a rest after each.
        """
        field_name = "thumbnail_url" if self.person.grid else "url"
        pool = Pool(AT_A_TIME)
        for rank in ranks:
            room.acquire()
            start = (rank - 1) // PAGE * PAGE + 1
            if start not in place.pages:
                address = f"{place.api}candidates/?start_rank={start}&limit={PAGE}"
                found = self._get(address, "API: candidates", parsed)["results"]
                place.details |= {one["rank"]: one for one in found}
                place.pages.add(start)
            if self.person.grid or there.counter + len(pool) < AHEAD:
                pool.spawn(self._file, place, rank, field_name, there)
            else:
                began = time.time()
                self._file(place, rank, field_name, there)
                gevent.sleep(FAR_REST * (time.time() - began))

    def _file(
        self, place: Place, rank: int, field_name: str, there: Semaphore | None = None
    ) -> None:
        if self.drawn.random() < self.crowd.plan.files:
            name = "Image" if field_name == "url" else "Thumbnail"
            self._get(place.details[rank][field_name], name, arrived)
        if there is not None:
            there.release()

    def _files(self, page: str) -> None:
        """What a page names of /static/ and what that imports, as far as it isn't in the cache."""
        names = re.findall(r'"(/static/[^"]+)"', page)
        for name in names:
            if name not in self.cached:
                self.cached.add(name)
                file = self._get(name, "Static file", text)
                found = re.findall(r'^import [^;]*?"(\.[^"]+)"', file, re.M)
                names += [posixpath.normpath(f"{posixpath.dirname(name)}/{one}") for one in found]

    def _get(self, path: str, name: str, read: Callable[[Any], Any]) -> Any:
        """What is read from the answer, which is asked for until there is one."""
        while True:
            answer = self.client.get(path, name=name)
            found = read(answer)
            if found is not None:
                return found
            gevent.sleep(RETRIED_EVERY)

    def _post(self, path: str, body: Any, name: str) -> Any:
        cookies = {one.name: one.value for one in self.client.cookiejar}
        headers = {"X-CSRFToken": cookies.get("csrftoken", "")}
        return self.client.post(path, json=body, headers=headers, name=name)


def pause(seconds: float) -> float:
    """About so long, as the page's outbox waits."""
    return min(LONGEST_PAUSE, seconds) * random.uniform(0.5, 1)


def arrived(answer: Any) -> bool | None:
    """Whether it is one; None for none."""
    return answer.status_code == 200 or None


def text(answer: Any) -> str | None:
    """An answer's text; None for none, or for one that broke off."""
    try:
        return (answer.text or "") if answer.status_code == 200 else None
    except brotli.error:
        return None


def parsed(answer: Any) -> Any:
    """An answer's JSON; None for none, or for one that broke off."""
    try:
        return answer.json() if answer.status_code == 200 else None
    except ValueError:
        return None


class Saver(FastHttpUser):
    """One person who does nothing but save a label for one item after the other."""

    network_timeout = connection_timeout = 60.0
    crowd: Crowd

    @task
    def work(self) -> None:
        """Save until the end."""
        saves = self.crowd.plan.saves
        person = self.crowd.people.popleft()
        drawn = random.Random(person.name)
        self.crowd.opened += 1
        while True:
            for item in saves["items"]:
                think(self.crowd.plan.pace, drawn)
                self.client.post(
                    saves["path"].format(item),
                    json=saves["body"],
                    headers=saves["headers"][int(person.name)],
                    name="Save",
                )


def think(pace: float, drawn: random.Random, images: int = 1) -> None:
    """Wait as long as a person looks at images, each `pace` seconds in the mean."""
    middle = math.log(pace) - PACE_SPREAD**2 / 2
    gevent.sleep(sum(drawn.lognormvariate(middle, PACE_SPREAD) for _ in range(images)))


def main(plan: Plan, folder: Path) -> dict[str, float]:
    """Run the crowd; returns from when until when all were labeling."""
    # Each browser has a few connections.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with (
        (folder / "requests.csv").open("w") as requests,
        (folder / "ledger.csv").open("w") as ledger,
    ):
        people = deque(Person(**one) for one in plan.people)
        crowd = Crowd(plan, people, requests, ledger)
        kind = Saver if plan.saves else Annotator
        kind.crowd, kind.host = crowd, plan.url
        environment = Environment(user_classes=[kind])
        environment.events.request.add_listener(crowd.requested)
        runner = environment.create_local_runner()
        runner.start(len(plan.people), spawn_rate=plan.a_second)
        while crowd.opened < len(plan.people):
            gevent.sleep(0.1)
            if runner.exceptions:
                raise RuntimeError(next(iter(runner.exceptions.values()))["traceback"])
        (folder / "all-there").touch()
        began = time.time()
        while time.time() < began + plan.seconds and not 0 < plan.judgments <= crowd.stored:
            gevent.sleep(0.2)
            ledger.flush()
        ended = time.time()
        crowd.ending = True
        while crowd.waiting and time.time() < ended + 120:
            gevent.sleep(0.1)
        runner.quit()
        errors = [one["traceback"] for one in runner.exceptions.values()]
    if errors:
        print(errors[0], file=sys.stderr)
    return {"began": began, "ended": ended, "errors": len(errors), "seconds": time.process_time()}


if __name__ == "__main__":
    given = Plan(**json.loads(Path(sys.argv[1]).read_text()))
    print(json.dumps(main(given, Path(sys.argv[2]))))
