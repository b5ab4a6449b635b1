"""A served application with drawn images and annotators."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bench import harness
from demo.corpus import write_corpus
from tests.processes import PgBouncer, Served, pool_url
from tests.site import Site

ADMIN: Final = "ada"
IMAGES_BESIDE: Final = 100
"""Images of the corpus that are not in a list, so that a list is a choice as in real work."""


class CrowdSite(Site):
    """A served application with an admin and annotators, whose lists have `depth` candidates."""

    def __init__(self, served: Served, depth: int, annotators: int) -> None:
        super().__init__(served, {})
        self.depth = depth
        self.annotators = [f"ann{number}" for number in range(annotators)]
        self.create_users({ADMIN: "admin"} | dict.fromkeys(self.annotators, "annotator"))


@contextmanager
def site(
    folder: Path,
    *,
    depth: int,
    annotators: int,
    pool: int = 0,
    environment: Mapping[str, str] | None = None,
) -> Iterator[CrowdSite]:
    """An application of its own, filled with drawn scenes under the demo's model; `pool` is the
    number of a PgBouncer's connections, 0 for none.
    """
    variables = {"CANDIDATE_DEPTH": str(depth), "LOG_LEVEL": "WARNING", **(environment or {})}
    if pool:
        variables["DATABASE_POOL_URL"] = pool_url()
    served = Served(folder / "var", **variables)
    with ExitStack() as running:
        running.callback(served.stop)
        if pool:
            running.callback(PgBouncer(folder, served, pool).kill)
        served.wait_healthy(600)
        found = CrowdSite(served, depth, annotators)
        corpus = write_corpus(folder / "corpus", count=depth + IMAGES_BESIDE)
        served.manage("import_images", str(corpus / "train.json"))
        served.manage("embed", "--wait")
        yield found


def bare_requests(where: CrowdSite, path: str) -> list[float]:
    """Seconds of two hundred requests of an annotator, one after the other."""

    def get() -> None:
        headers = where.headers(where.annotators[0])
        request = urllib.request.Request(where.url + path, headers=headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()

    return [harness.seconds(get) for _ in range(200)]
