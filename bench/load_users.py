"""Annotators in their browsers, as Locust runs them: `python -m bench.load_users PLAN FOLDER`.

It runs in its own process, since gevent replaces parts of the standard library. Each annotator does
what the page's scripts do (static/js/studio, static/js/saving): logs in, opens the page with its
files, fetches the details of a hundred candidates and the files of the next images ahead, asks
every ten seconds for changes, and judges at a person's pace. Judgments wait in an outbox, which
sends them in batches, one request at a time, with a rest after each, and repeats a request until it
is answered.

Writes into FOLDER `requests.tsv` (moment, kind, seconds, failed), `ledger.tsv` (whether a judgment
was made, stored, repeated or refused, and its client id) and, as soon as everybody labels, an empty
file `all-there`. Moments are seconds since 1970.
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
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import brotli
import gevent
from gevent.event import Event
from gevent.lock import Semaphore
from gevent.pool import Group, Pool

PACE_SPREAD: Final = 0.6
"""The standard deviation of the logarithm of the seconds for an image."""
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
MIN_PAUSE_RATIO: Final = 50
DRAWS_AHEAD: Final = 5
RELEVANCES: Final = ("not_relevant", "not_relevant", "not_relevant", "relevant", "unsure")
#: The optional entries of a plan: how many judgments end it (0 for none), the share of images whose
#: files are fetched, how many people arrive in a second, and, for another program instead of ours,
#: its saves: `headers` of each person, `path` with a placeholder for one of `items`, and the
#: `body`. Required are the `url`, the `password`, the mean seconds of an image (`pace`), the
#: `seconds` that all label, and `people`: each with a `name`, the `queries` that they label one
#: after the other, and whether they label by pages of thumbnails (`grid`) and judge the draws of
#: the first query's audit (`audits`).
PLAN: Final[dict[str, Any]] = {"judgments": 0, "files": 1.0, "a_second": 2.0, "saves": None}


class Crowd:
    """The plan, the files and the counts of all people."""

    def __init__(self, plan: dict[str, Any], folder: Path) -> None:
        self.plan = SimpleNamespace(**PLAN | plan)
        self.people = deque(self.plan.people)
        self.requests = (folder / "requests.tsv").open("w")
        self.ledger = (folder / "ledger.tsv").open("w")
        self.stored = self.waiting = self.opened = 0
        self.ending = False

    def note(self, what: str, record: dict[str, Any]) -> None:
        """Record what happened to a judgment."""
        self.ledger.write(f"{what}\t{record['client_id']}\n")
        self.waiting += 1 if what == "made" else -1
        self.stored += what in ("stored", "repeated")

    def requested(
        self, name: str, response_time: float, exception: Any, start_time: float, **_: Any
    ) -> None:
        """Record a request; Locust calls this."""
        failed = int(exception is not None)
        self.requests.write(f"{start_time:.3f}\t{name}\t{response_time / 1000:.4f}\t{failed}\n")

    def think(self, drawn: random.Random, images: int = 1) -> None:
        """Wait as long as a person looks; forever once the time is over."""
        middle = math.log(self.plan.pace) - PACE_SPREAD**2 / 2
        gevent.sleep(sum(drawn.lognormvariate(middle, PACE_SPREAD) for _ in range(images)))
        while self.ending:
            gevent.sleep(60)


class Annotator(FastHttpUser):
    """One person in one browser."""

    network_timeout = connection_timeout = 20.0
    concurrency = 6
    crowd: Crowd

    def on_start(self) -> None:
        """Log in."""
        self.person = self.crowd.people.popleft()
        self.name, self.grid = self.person["name"], self.person.get("grid", False)
        # Of the queries too: crowds of the same people must not send the same ids.
        self.drawn = random.Random(f"{self.name} {self.person['queries']}")
        self.outbox: deque[dict[str, Any]] = deque()
        self.woken, self.hurried, self.settled = Event(), Event(), Event()
        self.cached: set[str] = set()
        self.began = False
        self.background = Group()
        self.background.spawn(self._send)
        page = ""
        while 'name="user-id"' not in page:
            page = self._get("/login/", "Log in", "text")
            self._files(page)
            [token] = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
            form = {"username": self.name, "password": self.crowd.plan.password}
            form["csrfmiddlewaretoken"] = token
            page = read(self.client.post("/login/", data=form, name="Log in"), "text") or ""
        self._files(page)

    def on_stop(self) -> None:
        """Close the browser."""
        self.background.kill()

    @task
    def work(self) -> None:
        """Label one query after the other, then wait for the end."""
        if self.person.get("audits"):
            self._audit(self.person["queries"][0])
        for query in self.person["queries"]:
            self._label(query)
        while True:
            gevent.sleep(60)

    def _label(self, query: int) -> None:
        self._files(self._get(f"/queries/{query}/label/", "Page: labeling", "text"))
        outline = self._get(f"/api/queries/{query}/outline/", "API: outline", "json")
        letters = enumerate(outline["relevance"], 1)
        withdrawn = outline["withdrawn"]
        ranks = [rank for rank, letter in letters if letter == "-" and rank not in withdrawn]
        step = GRID_SIZE if self.grid else 1
        there, room = Semaphore(0), Semaphore(3 * GRID_SIZE if self.grid else FAR)
        polling = self.background.spawn(self._poll, query, outline["cursor"])
        self.background.spawn(self._fetch_ahead, query, ranks, there, room)
        self._opened()
        for start in range(0, len(ranks), step):
            page = ranks[start : start + step]
            for _ in page:
                there.acquire()
            self.crowd.think(self.drawn, len(page))
            self._judge(query, [outline["images"][rank - 1] for rank in page], "list")
            for _ in page:
                room.release()
        polling.kill()

    def _audit(self, query: int) -> None:
        address = f"/api/queries/{query}/audit/"
        self._files(self._get(f"/queries/{query}/audit/", "Page: audit", "text"))
        self._get(address, "API: audit", "json")
        self._opened()
        done: set[int] = set()
        while True:
            # The page reads the audit again with each answer.
            self.settled.clear()
            body = {"count": DRAWS_AHEAD}
            draws = self._post(f"{address}draws/", body, "API: audit, drawn")
            if draws is None:
                gevent.sleep(RETRIED_EVERY)
                continue
            following = [
                draw for draw in draws["results"] if draw["to_judge"] and draw["image"] not in done
            ]
            if draws["then"]["met"] or not (following or self.outbox):
                return
            while following and not self.settled.is_set():
                draw = following.pop(0)
                self._get(draw["url"], "Image", "content")
                self.crowd.think(self.drawn)
                done.add(draw["image"])
                self._judge(query, [draw["image"]], "audit")
            if not following:
                # There the page has the outbox send at once.
                self.hurried.set()
            self.settled.wait()

    def _opened(self) -> None:
        """Count the first page as opened."""
        self.crowd.opened += not self.began
        self.began = True

    def _judge(self, query: int, images: list[int], source: str) -> None:
        for image in images:
            record = {
                "client_id": str(uuid.UUID(int=self.drawn.getrandbits(128), version=4)),
                "image": image,
                "relevance": self.drawn.choice(RELEVANCES),
                "source": source,
                "seconds": 1.0,
                "expected": None,
            }
            self.crowd.note("made", record)
            self.outbox.append({"at": time.time(), "query": query, "record": record})
        self.woken.set()

    def _send(self) -> None:
        """As `Sender` in static/js/saving/sender.js."""
        failures = 0
        while True:
            self.woken.wait()
            self.woken.clear()
            while self.outbox:
                query, began = self.outbox[0]["query"], time.time()
                batch = [entry for entry in self.outbox if entry["query"] == query][:LARGEST_BATCH]
                body = [entry["record"] | {"age": began - entry["at"]} for entry in batch]
                answer = self._post(f"/api/queries/{query}/judgments/", body, "API: save")
                if answer is None:
                    gevent.sleep(pause(FIRST_PAUSE * 2**failures))
                    failures += 1
                    continue
                failures, now = 0, time.time()
                for entry, result in zip(batch, answer["results"], strict=True):
                    self.outbox.remove(entry)
                    self.crowd.note(result["status"], entry["record"])
                    name, waited = "Judgment, from the key to the answer", now - entry["at"]
                    self.crowd.requested(name, 1000 * waited, None, entry["at"])
                self.settled.set()
                if len(batch) < LARGEST_BATCH:
                    self.hurried.wait(pause(MIN_PAUSE_RATIO * (now - began)))
                self.hurried.clear()

    def _poll(self, query: int, cursor: int) -> None:
        took = 0.0
        while True:
            gevent.sleep(min(max(CHANGES_EVERY, CHANGES_REST * took), CHANGES_EVERY_AT_MOST))
            address, began = f"/api/queries/{query}/changes/?cursor={cursor}", time.time()
            answer = read(self.client.get(address, name="API: changes"), "json")
            took = time.time() - began
            cursor = answer["cursor"] if answer else cursor

    def _fetch_ahead(self, query: int, ranks: list[int], there: Semaphore, room: Semaphore) -> None:
        """Fetch the files of the next images: the nearest, and in the grid all, a few at a time;
        the others one by one, with a rest after each.
        """
        pool, details = Pool(AT_A_TIME), dict[int, dict[str, Any]]()
        for rank in ranks:
            room.acquire()
            if rank not in details:
                start = (rank - 1) // PAGE * PAGE + 1
                address = f"/api/queries/{query}/candidates/?start_rank={start}&limit={PAGE}"
                answer = self._get(address, "API: candidates", "json")
                details |= {candidate["rank"]: candidate for candidate in answer["results"]}
            if self.grid or there.counter + len(pool) < AHEAD:
                pool.spawn(self._image, details[rank], there)
            else:
                began = time.time()
                self._image(details[rank], there)
                gevent.sleep(FAR_REST * (time.time() - began))

    def _image(self, details: dict[str, Any], there: Semaphore) -> None:
        if self.drawn.random() < self.crowd.plan.files:
            of, name = ("thumbnail_url", "Thumbnail") if self.grid else ("url", "Image")
            self._get(details[of], name, "content")
        there.release()

    def _files(self, page: str) -> None:
        """Fetch the files of /static/ that a page names and their imports, unless cached."""
        names = re.findall(r'"(/static/[^"]+)"', page)
        for name in names:
            if name not in self.cached:
                self.cached.add(name)
                file = self._get(name, "Static file", "text")
                imports = re.findall(r'^import [^;]*?"(\.[^"]+)"', file, re.M)
                names += [
                    posixpath.normpath(f"{posixpath.dirname(name)}/{import_path}")
                    for import_path in imports
                ]

    def _get(self, path: str, name: str, kind: str) -> Any:
        """The content of the answer; repeats the request until there is one."""
        while (content := read(self.client.get(path, name=name), kind)) is None:
            gevent.sleep(RETRIED_EVERY)
        return content

    def _post(self, path: str, body: Any, name: str) -> Any:
        tokens = [
            cookie.value or "" for cookie in self.client.cookiejar if cookie.name == "csrftoken"
        ]
        headers = {"X-CSRFToken": "".join(tokens)}
        return read(self.client.post(path, json=body, headers=headers, name=name), "json")


class Saver(FastHttpUser):
    """A person who only saves a label for one item after the other."""

    network_timeout = connection_timeout = 60.0
    crowd: Crowd

    @task
    def work(self) -> None:
        """Save until the end."""
        saves, number = self.crowd.plan.saves, int(self.crowd.people.popleft()["name"])
        drawn, headers = random.Random(number), saves["headers"][number]
        self.crowd.opened += 1
        while True:
            for item in saves["items"]:
                self.crowd.think(drawn)
                path = saves["path"].format(item)
                self.client.post(path, json=saves["body"], headers=headers, name="Save")


def pause(seconds: float) -> float:
    """A random pause of about `seconds`, as in the page's outbox."""
    return min(LONGEST_PAUSE, seconds) * random.uniform(0.5, 1)


def read(answer: Any, kind: str) -> Any:
    """An answer's "json", "text" or "content"; None if there is no answer or it broke off."""
    try:
        if answer.status_code != 200:
            return None
        return answer.json() if kind == "json" else getattr(answer, kind) or ""
    except (ValueError, brotli.error):
        return None


def main(plan: dict[str, Any], folder: Path) -> dict[str, float]:
    """Run the crowd; returns when all began and stopped labeling, and seconds of processor time.
    Raises RuntimeError if a user breaks off before all label.
    """
    # Each browser has a few connections.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    crowd = Crowd(plan, folder)
    kind = Saver if crowd.plan.saves else Annotator
    kind.crowd, kind.host = crowd, crowd.plan.url
    environment = Environment(user_classes=[kind])
    environment.events.request.add_listener(crowd.requested)
    runner = environment.create_local_runner()
    runner.start(len(crowd.people), spawn_rate=crowd.plan.a_second)
    while crowd.opened < len(crowd.plan.people):
        gevent.sleep(0.1)
        if runner.exceptions:
            raise RuntimeError(next(iter(runner.exceptions.values()))["traceback"])
    (folder / "all-there").touch()
    began = time.time()
    enough = crowd.plan.judgments or math.inf
    while time.time() < began + crowd.plan.seconds and crowd.stored < enough:
        gevent.sleep(0.2)
        crowd.ledger.flush()
    ended = time.time()
    crowd.ending = True
    while crowd.waiting and time.time() < ended + 120:
        gevent.sleep(0.1)
    runner.quit()
    crowd.requests.close()
    crowd.ledger.close()
    for error in runner.exceptions.values():
        print(error["traceback"], file=sys.stderr)
    return {"began": began, "ended": ended, "seconds": time.process_time()}


if __name__ == "__main__":
    print(json.dumps(main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))))
