"""Annotators who all judge at once: how fast each judgment is acknowledged, and whether each one
is stored exactly once.
"""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.parse
import uuid
from collections import Counter
from dataclasses import dataclass, field

from bench.site import ADMIN, BenchSite

RELEVANCES = ("not_relevant", "not_relevant", "not_relevant", "relevant", "unsure")
TRIES = 20


@dataclass(frozen=True, slots=True)
class Act:
    """One judgment that was acknowledged; `seconds` is its mark, different for each act."""

    annotator: str
    image: int
    relevance: str
    seconds: float


@dataclass(slots=True)
class Round:
    """What a crowd did: the acknowledged acts, how long each waited, and what went wrong."""

    elapsed: float = 0.0
    acts: list[Act] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    """Seconds from the moment of the act to its acknowledgement, repeats included."""
    repeats: int = 0
    """Requests that broke off and were sent again with the same client id."""
    refused: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Kept:
    """How the database compares with what was acknowledged."""

    lost: int
    doubled: int


class Crowd:
    """Simulated annotators of one query, each with a token and a place in the list of their own."""

    def __init__(self, site: BenchSite, query: int) -> None:
        self.site = site
        self.query = query
        self.images = site.list_images(query)
        step = len(self.images) / max(1, len(site.annotators))
        self._people = [
            _Person(self, name, int(number * step)) for number, name in enumerate(site.annotators)
        ]

    def work(self, *, seconds: float, interval: float) -> Round:
        """Everybody judges for a time: one image each `interval` seconds, or without a pause (0).

        Nobody comes round to an image a second time: who has seen the whole list stops.
        """
        done = Round()
        lock = threading.Lock()
        began = time.perf_counter() + 0.5
        threads = [
            threading.Thread(target=person.work, args=(done, lock, began, seconds, interval))
            for person in self._people
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.elapsed = time.perf_counter() - began
        return done

    def compare(self, rounds: list[Round]) -> Kept:
        """Hold the judgments' history in the database against all that was acknowledged."""
        said = Counter(act for done in rounds for act in done.acts)
        names = set(self.site.annotators)
        stored: Counter[Act] = Counter()
        for image in {act.image for act in said}:
            path = f"/api/queries/{self.query}/history/?image={image}"
            for event in self.site.api(ADMIN, "GET", path)["results"]:
                if event["annotator"] in names:
                    mark = round(event["seconds"], 3)
                    stored[Act(event["annotator"], image, event["relevance"], mark)] += 1
        lost, doubled = said - stored, stored - said
        return Kept(lost.total(), doubled.total())


class _Person:
    def __init__(self, crowd: Crowd, name: str, start: int) -> None:
        self.name = name
        self._address = urllib.parse.urlsplit(crowd.site.url).netloc
        self._path = f"/api/queries/{crowd.query}/judgments/"
        self._headers = {
            "Authorization": f"Token {crowd.site.tokens[name]}",
            "Content-Type": "application/json",
        }
        self._images = crowd.images[start:] + crowd.images[:start]
        self._next = 0
        self._random = random.Random(name)
        self._connection: http.client.HTTPConnection | None = None

    def work(
        self, done: Round, lock: threading.Lock, began: float, seconds: float, interval: float
    ) -> None:
        own = Round()
        # Nobody starts in step with the others.
        due = began + self._random.uniform(0, interval)
        while due < began + seconds and self._next < len(self._images):
            time.sleep(max(0.0, due - time.perf_counter()))
            self._act(own, due)
            due = due + interval if interval else time.perf_counter()
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        with lock:
            done.acts += own.acts
            done.waits += own.waits
            done.repeats += own.repeats
            done.refused += own.refused

    def _act(self, own: Round, due: float) -> None:
        image = self._images[self._next]
        self._next += 1
        act = Act(self.name, image, self._random.choice(RELEVANCES), self._next / 1000)
        item = {
            "image": image,
            "relevance": act.relevance,
            "client_id": str(uuid.UUID(int=self._random.getrandbits(128), version=4)),
            "seconds": act.seconds,
            "source": "list",
            "expected": None,
        }
        body = json.dumps([item]).encode()
        for _try in range(TRIES):
            answer = self._post(body)
            if answer is None:
                own.repeats += 1
                time.sleep(0.05)
                continue
            # Late starts count: an act that waited for the one before was made when it was due.
            own.waits.append(time.perf_counter() - due)
            if answer["status"] == "refused":
                own.refused.append(answer["detail"])
            else:
                own.acts.append(act)
            return
        own.refused.append(f"No answer after {TRIES} tries.")

    def _post(self, body: bytes) -> dict[str, str] | None:
        """The answer for one judgment, or None when the connection broke or the server failed."""
        try:
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self._address, timeout=60)
            self._connection.request("POST", self._path, body, self._headers)
            with self._connection.getresponse() as answer:
                text = answer.read()
                if answer.status != 200:
                    raise http.client.HTTPException(f"{answer.status}: {text[:500]!r}")
                found: dict[str, str] = json.loads(text)["results"][0]
                return found
        except (OSError, http.client.HTTPException, ValueError):
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            return None
