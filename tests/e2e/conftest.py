"""A served application with a small drawn corpus, and a real Chromium in front of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from annotator.embedded_postgres import embedded_postgres
from annotator.postgres_guardian import locked
from demo.corpus import write_corpus
from tests.processes import ROOT, Served, wait_for
from tests.settings import SESSION_DIR

PASSWORD = "tawny-owl-at-dusk-7"
IMAGES = 260
DEPTH = 150
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
SCRIPTS = "https://scripts.test/"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1366, "height": 850}
ROLES = {
    "ann": "annotator",
    "otto": "annotator",
    "rita": "reviewer",
    "ada": "admin",
    "rosa": "researcher",
    "rolf": "researcher",
}
CREATE_USERS = """
import json
from annotator.services import user_create
made = {{n: user_create(username=n, role=r, password={word!r})[0] for n, r in {roles}.items()}}
print(json.dumps({{name: user.auth_token.key for name, user in made.items()}}))
"""

expect.set_options(timeout=15_000)


class Site:
    """The application as its users have it: over HTTP, and by its commands."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.url = served.url
        self.tokens: dict[str, str] = {}
        self.roles: dict[str, str] = {}
        self.sessions: dict[str, Any] = {}

    def create_users(self, roles: dict[str, str]) -> None:
        """People by name, with the password PASSWORD and a token."""
        ran = self.served.manage("shell", "-c", CREATE_USERS.format(roles=roles, word=PASSWORD))
        self.tokens |= json.loads(ran.stdout.splitlines()[-1])
        self.roles |= roles

    def session(self, browser: Browser, user: str) -> Any:
        """The cookies of a browser in which the user has logged in, once for all tests."""
        if user not in self.sessions:
            with browser.new_context() as context:
                page = context.new_page()
                page.goto(f"{self.url}/login/")
                page.get_by_label("User name").fill(user)
                page.get_by_label("Password").fill(PASSWORD)
                page.get_by_role("button", name="Log in").click()
                page.wait_for_url(lambda address: "/login/" not in address)
                self.sessions[user] = context.cookies()
        return self.sessions[user]

    def api(self, user: str, method: str, path: str, body: Any = None) -> Any:
        """The parsed answer of the REST API; raises HTTPError for a refusal."""
        headers = {"Content-Type": "application/json"}
        if user:
            headers["Authorization"] = f"Token {self.tokens[user]}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or "null")

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
            lambda: self.candidates("ada", query["id"])["list"]["state"] == "ready",
            seconds=60,
            what="the candidate list",
        )
        return int(query["id"])

    def candidates(self, user: str, query: int, start: int = 1, limit: int = 500) -> Any:
        path = f"/api/queries/{query}/candidates/?start_rank={start}&limit={limit}"
        return self.api(user, "GET", path)

    def settle_flags(self) -> None:
        """Restore what is withdrawn and clear what is flagged, whichever test did it."""
        for state, decision in (("withdrawn", "restore"), ("open", "clear-flags")):
            for one in self.api("rita", "GET", f"/api/flags/?state={state}&limit=200")["results"]:
                self.api("rita", "POST", f"/api/images/{one['image']}/{decision}/", {})

    def completed(self) -> list[int]:
        """The numbers of the completed queries: a release made now holds these, and a run on it
        ranks images for each."""
        found = self.api("ada", "GET", "/api/queries/?state=complete&limit=200")["results"]
        return [one["query_id"] for one in found]

    def progress(self, user: str, query: int) -> Any:
        return self.api(user, "GET", f"/api/queries/{query}/")["progress"]


def make_state(folder: Path) -> None:
    """A stopped site's state folder `var`, with people, a corpus and its embeddings, and the
    people's tokens.
    """
    served = Served(folder / "var")
    try:
        site = Site(served.wait_healthy())
        corpus = write_corpus(folder / "corpus", count=IMAGES)
        site.create_users(ROLES)
        served.manage("import_images", str(corpus / "train.json"))
        served.manage("embed", "--wait")
    finally:
        served.stop()
    embedded_postgres(served.var_dir).leave(wait=True)
    (folder / "tokens.json").write_text(json.dumps(site.tokens))


def start_site(var_dir: Path, **environment: str) -> Site:
    """A site over a copy of the state that one process of the session makes for all."""
    made = SESSION_DIR / "site"
    with locked(SESSION_DIR / "site.lock"):
        if not (made / "tokens.json").exists():
            make_state(made)
    # PostgreSQL's files may be another user's, which `shutil` does not keep.
    subprocess.run(["cp", "-a", made / "var", var_dir], check=True)
    site = Site(Served(var_dir, **environment))
    site.tokens, site.roles = json.loads((made / "tokens.json").read_text()), dict(ROLES)
    return site


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One served application for all browser tests; each test makes queries of its own."""
    site = start_site(tmp_path_factory.mktemp("site") / "var", CANDIDATE_DEPTH=str(DEPTH))
    try:
        site.served.wait_healthy()
        yield site
    finally:
        site.served.stop()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture
def log_in(browser: Browser, site: Site) -> Iterator[Callable[..., Page]]:
    """`log_in("ann", path)` gives a page of a new browser context in which that user is logged in;
    it is blank without a path.

    A script error, or something that the content security policy stopped, fails the test. Everybody
    begins with the keys and the view that nobody has changed.
    """
    for name, role in site.roles.items():
        if role != "researcher":
            site.api(name, "PUT", "/api/preferences/labeling/", {"keys": {}, "view": {}})
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def start(user: str, path: str = "", **options: Any) -> Page:
        context = browser.new_context(**{"viewport": DESKTOP, **options})
        contexts.append(context)
        context.add_cookies(site.session(browser, user))
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on(
            "console",
            lambda message: (
                problems.append(message.text) if "Content Security" in message.text else None
            ),
        )
        if path:
            page.goto(site.url + path)
        return page

    yield start
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def script_page(browser: Browser) -> Iterator[Page]:
    """A page that can import the scripts of /static/, without a site behind it."""
    with browser.new_context() as context:
        context.route("**/*", _answer_without_site)
        page = context.new_page()
        page.goto(SCRIPTS)
        yield page


def _answer_without_site(route: Route) -> None:
    path = urlsplit(route.request.url).path
    if path.startswith("/static/"):
        route.fulfill(path=ROOT / path.lstrip("/"))
    else:
        route.fulfill(content_type="text/html", body='<meta name="user-id" content="1">')


@pytest.fixture
def picture_folder(tmp_path: Path) -> Path:
    """Where a test may put what it downloads."""
    return tmp_path
