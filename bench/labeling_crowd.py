"""A served application with drawn images, and annotators who all judge at once over its API."""

from __future__ import annotations

import http.client
import json
import random
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final

from bench import harness
from demo.corpus import write_corpus
from tests.processes import Served, pgbouncer, pool_url
from tests.site import Site

ADMIN: Final = "ada"
IMAGES_BESIDE: Final = 100
"""Images of the corpus that are not in a list, so that a list is a choice as in real work."""
RELEVANCES: Final = ("not_relevant", "not_relevant", "not_relevant", "relevant", "unsure")
TRIES: Final = 20


class CrowdSite(Site):
    """A served application with an admin and annotators, whose lists have `depth` candidates."""

    def __init__(self, served: Served, depth: int, annotators: int) -> None:
        super().__init__(served)
        self.depth = depth
        self.annotators = [f"ann{number}" for number in range(annotators)]
        self.create_users({ADMIN: "admin"} | dict.fromkeys(self.annotators, "annotator"))


@contextmanager
def site(
    folder: Path, *, depth: int, annotators: int, pool: int = 0, **environment: str
) -> Iterator[CrowdSite]:
    """An application of its own, filled with drawn scenes under the demo's model; `pool` is the
    number of a PgBouncer's connections, 0 for none.
    """
    if pool:
        environment["DATABASE_POOL_URL"] = pool_url()
    environment |= {"CANDIDATE_DEPTH": str(depth), "LOG_LEVEL": "WARNING"}
    served = Served(folder / "var", **environment)
    try:
        with pgbouncer(folder, served, pool) if pool else nullcontext():
            served.wait_healthy(180)
            found = CrowdSite(served, depth, annotators)
            corpus = write_corpus(folder / "corpus", count=depth + IMAGES_BESIDE)
            served.manage("import_images", str(corpus / "train.json"))
            served.manage("embed", "--wait")
            yield found
    finally:
        served.stop()


def bare_requests(where: CrowdSite, path: str) -> list[float]:
    """Seconds of two hundred requests of an annotator, one after the other."""

    def get() -> None:
        headers = where.headers(where.annotators[0])
        request = urllib.request.Request(where.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    return [harness.seconds(get) for _ in range(200)]


@dataclass(slots=True)
class Round:
    """The outcome of a crowd's work."""

    elapsed: float = 0.0
    acts: Counter[tuple[str, int, str, float]] = field(default_factory=Counter)
    """Acknowledged judgments: annotator, image, relevance, and a duration that marks the act."""
    waits: list[float] = field(default_factory=list)
    """Seconds from the moment of each act to its acknowledgment, repeats included."""
    repeats: int = 0
    """Requests that broke off and were sent again with the same client id."""
    refused: list[str] = field(default_factory=list)


class Crowd:
    """Simulated annotators of one query, each at a place in the list of their own. Nobody comes to
    an image a second time: who has seen the whole list stops.
    """

    def __init__(self, where: CrowdSite, query: int) -> None:
        self.site = where
        self.query = query
        images: list[int] = []
        while len(images) < where.depth:
            path = f"/api/queries/{query}/candidates/?start_rank={len(images) + 1}&limit=500"
            images += [one["image"] for one in where.api(ADMIN, "GET", path)["results"]]
        step = len(images) / len(where.annotators)
        starts = [int(number * step) for number in range(len(where.annotators))]
        self._todo = {
            name: iter(list(enumerate(images[start:] + images[:start], 1)))
            for name, start in zip(where.annotators, starts, strict=True)
        }

    def work(self, *, seconds: float, interval: float, batch: int = 1) -> Round:
        """Everybody judges for a time, `batch` images in a request each `interval` seconds."""
        done = Round()
        began = time.perf_counter() + 0.5
        threads = [
            threading.Thread(target=self._judge, args=(name, done, began, seconds, interval, batch))
            for name in self.site.annotators
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        done.elapsed = time.perf_counter() - began
        return done

    def lost_and_doubled(self, done: Round) -> tuple[int, int]:
        """How many acknowledged judgments the history in the database lacks, and how many it has
        that weren't acknowledged or are there twice.
        """
        said = done.acts
        stored: Counter[tuple[str, int, str, float]] = Counter()
        for image in {act[1] for act in said}:
            path = f"/api/queries/{self.query}/history/?image={image}"
            for event in self.site.api(ADMIN, "GET", path)["results"]:
                if event["annotator"] in self.site.annotators:
                    mark = round(event["seconds"], 3)
                    stored[event["annotator"], image, event["relevance"], mark] += 1
        return (said - stored).total(), (stored - said).total()

    def _judge(
        self, name: str, done: Round, began: float, seconds: float, interval: float, batch: int
    ) -> None:
        drawn = random.Random(f"{name} {interval} {batch}")
        connection = http.client.HTTPConnection(
            urllib.parse.urlsplit(self.site.url).netloc, timeout=60
        )
        # Nobody starts in step with the others.
        due = began + drawn.uniform(0, interval)
        while due < began + seconds and (following := list(islice(self._todo[name], batch))):
            time.sleep(max(0.0, due - time.perf_counter()))
            items = [
                {
                    "image": image,
                    "relevance": drawn.choice(RELEVANCES),
                    "client_id": str(uuid.UUID(int=drawn.getrandbits(128), version=4)),
                    "seconds": number / 1000,
                    "source": "list",
                    "expected": None,
                }
                for number, image in following
            ]
            answers = self._sent(connection, name, json.dumps(items).encode(), done)
            # Late starts count: an act that waited for the one before was made when it was due.
            done.waits.append(time.perf_counter() - due)
            for (number, image), item, answer in zip(following, items, answers, strict=True):
                if answer["status"] == "refused":
                    done.refused.append(answer["detail"])
                else:
                    done.acts[name, image, str(item["relevance"]), number / 1000] += 1
            due = due + interval if interval else time.perf_counter()
        connection.close()

    def _sent(
        self, connection: http.client.HTTPConnection, name: str, body: bytes, done: Round
    ) -> list[dict[str, str]]:
        """The answers of a request, sent again where the connection or the server failed."""
        path = f"/api/queries/{self.query}/judgments/"
        for _ in range(TRIES):
            try:
                connection.request("POST", path, body, self.site.headers(name))
                with connection.getresponse() as answer:
                    found: list[dict[str, str]] = json.loads(answer.read())["results"]
                    return found
            except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
                connection.close()
                done.repeats += 1
                time.sleep(0.05)
        detail = f"No answer after {TRIES} tries."
        return [{"status": "refused", "detail": detail} for _ in json.loads(body)]
