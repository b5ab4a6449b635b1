"""A served application as its users have it."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterable
from typing import Any

from tests.processes import Served, wait_for


class Site:
    """The application as its users have it: over HTTP, and by its commands."""

    def __init__(self, served: Served, people: dict[str, dict[str, str]]) -> None:
        self.served = served
        self.url = served.url
        #: The role, token and session of each person by name.
        self.people = people

    def cookies(self, user: str) -> list[Any]:
        """The cookies of a browser in which the user has logged in."""
        named = {"sessionid": self.people[user]["session"], "csrftoken": "a" * 32}
        return [{"name": name, "value": value, "url": self.url} for name, value in named.items()]

    def create_users(self, roles: dict[str, str]) -> None:
        """More people by name."""
        script = "import json; from tests.people import make_people as make; "
        script += f"print(json.dumps(make({roles})))"
        ran = self.served.manage("shell", "-v0", "-c", script)
        self.people |= json.loads(ran.stdout.splitlines()[-1])

    def api(self, user: str, method: str, path: str, body: Any = None) -> Any:
        """The parsed answer of the REST API; raises HTTPError for a refusal."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self.headers(user), method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

    def headers(self, user: str) -> dict[str, str]:
        """What a person's requests to the API carry; nobody's for an empty name."""
        token = {"Authorization": f"Token {self.people[user]['token']}"} if user else {}
        return {"Content-Type": "application/json", **token}

    def open_query(self, text: str, **fields: Any) -> int:
        """An open query with its candidate list; returns its id."""
        query = self.api(
            "ada",
            "POST",
            "/api/queries/",
            {"text": text, "category": "Species ID", "split": "test", **fields},
        )
        self.api("ada", "PATCH", f"/api/queries/{query['id']}/", {"state": "open"})
        wait_for(
            lambda: self.candidates("ada", query["id"], limit=1)["list"]["state"] == "ready",
            seconds=120,
            what="the candidate list",
            pause=0.2,
        )
        return int(query["id"])

    def candidates(self, user: str, query: int, start: int = 1, limit: int = 500) -> Any:
        """A part of the query's list, as the user sees it."""
        path = f"/api/queries/{query}/candidates/?start_rank={start}&limit={limit}"
        return self.api(user, "GET", path)

    def judge(
        self,
        user: str,
        query: int,
        marks: Iterable[tuple[int, str | None]],
        source: str = "list",
    ) -> None:
        """Judge over the API, as on another device: images with relevances, None to take back."""
        judgments = [
            {
                "image": image,
                "relevance": relevance,
                "client_id": str(uuid.uuid4()),
                "seconds": 2.5,
                "source": source,
            }
            for image, relevance in marks
        ]
        answer = self.api(user, "POST", f"/api/queries/{query}/judgments/", judgments)
        assert {one["status"] for one in answer["results"]} == {"stored"}

    def open_to_others(self) -> list[str]:
        """What other accounts of the machine can read or list of the state folder, if they are let
        through the folder itself, as PostgreSQL's account is.
        """
        found, folders = [], [self.served.var_dir]
        while folders:
            for path in folders.pop().iterdir():
                mode = path.lstat().st_mode
                if mode & 0o066 and not path.is_symlink():
                    found.append(f"{path} {mode:o}")
                if path.is_dir() and mode & 0o011:
                    folders.append(path)
        return found

    def completed(self) -> list[int]:
        """The numbers of the completed queries: a release made now holds these, and a run on it
        ranks images for each."""
        found = self.api("ada", "GET", "/api/queries/?state=complete&limit=200")["results"]
        return [one["query_id"] for one in found]

    def progress(self, user: str, query: int) -> Any:
        """How far the query is labeled, as the user sees it."""
        return self.api(user, "GET", f"/api/queries/{query}/")["progress"]
