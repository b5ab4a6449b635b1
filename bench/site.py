"""A served application to measure: a state folder of its own, drawn scenes, the demo's model."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

from demo.corpus import write_corpus
from tests.processes import Served, wait_for

PASSWORD = "tawny-owl-at-dusk-7"
ADMIN = "ada"
IMAGES_BESIDE = 100
"""Images of the corpus that are not in a list, so that a list is a choice as in real work."""

_CREATE_USERS = """
import json
from annotator.services import user_create
from retrieval.access import Role
names = json.loads({names!r})
tokens = {{
    name: user_create(username=name, role=Role(role), password={password!r})[1].key
    for name, role in names.items()
}}
print(json.dumps(tokens))
"""


class BenchSite:
    """Starts the application, fills it, and stops it at the end of a `with` block.

    Queries made here have lists of `depth` candidates. Raises AssertionError when it doesn't start
    and subprocess.CalledProcessError when one of its commands fails.
    """

    def __init__(self, folder: Path, *, depth: int, annotators: int) -> None:
        self.depth = depth
        self.annotators = [f"ann{number}" for number in range(1, annotators + 1)]
        self.tokens: dict[str, str] = {}
        self._folder = folder

    def __enter__(self) -> BenchSite:
        self.served = Served(
            self._folder / "var", CANDIDATE_DEPTH=str(self.depth), LOG_LEVEL="WARNING"
        )
        try:
            self.served.wait_healthy(180)
            self._fill()
        except BaseException:
            self.served.stop()
            raise
        return self

    def __exit__(self, *_error: object) -> None:
        self.served.stop()

    @property
    def url(self) -> str:
        return self.served.url

    def _fill(self) -> None:
        roles = {ADMIN: "admin"} | dict.fromkeys(self.annotators, "annotator")
        script = _CREATE_USERS.format(names=json.dumps(roles), password=PASSWORD)
        made = self.served.manage("shell", "-v", "0", "-c", script)
        self.tokens = json.loads(made.stdout.splitlines()[-1])
        corpus = write_corpus(self._folder / "corpus", count=self.depth + IMAGES_BESIDE)
        self.served.manage("import_images", str(corpus / "train.json"))
        self.served.manage("embed", "--wait")

    def api(self, user: str, method: str, path: str, body: Any = None) -> Any:
        """The parsed answer of the REST API; raises HTTPError for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Token {self.tokens[user]}",
        }
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.loads(answer.read() or "null")

    def open_query(self, text: str) -> int:
        """An open query with its candidate list; returns its id."""
        fields = {"text": text, "category": "Species ID", "split": "test"}
        query = self.api(ADMIN, "POST", "/api/queries/", fields)
        path = f"/api/queries/{query['id']}/"
        self.api(ADMIN, "PATCH", path, {"state": "open"})

        def ready() -> bool:
            listed = self.api(ADMIN, "GET", f"{path}candidates/?limit=1")["list"]
            return bool(listed["state"] == "ready")

        wait_for(ready, seconds=120, what="the candidate list")
        return int(query["id"])

    def list_images(self, query: int) -> list[int]:
        """The ids of the list's images by rank."""
        images: list[int] = []
        path = f"/api/queries/{query}/candidates/"
        while True:
            page = self.api(ADMIN, "GET", f"{path}?start_rank={len(images) + 1}&limit=500")
            images += [one["image"] for one in page["results"]]
            if not page["next"]:
                return images
