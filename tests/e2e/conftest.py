"""A served application with a small drawn corpus, and a real Chromium in front of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from annotator.postgres.embedded import embedded_postgres
from annotator.postgres.guardian import locked
from demo.corpus import write_corpus
from tests.processes import ROOT, Served
from tests.settings import SESSION_DIR
from tests.site import Site

IMAGES = 260
DEPTH = 150
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))),
    None,
)
SCRIPTS = "https://scripts.test/"
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1366, "height": 850}
NARROW = {"width": 360, "height": 740}
ROLES = {
    "ann": "annotator",
    "otto": "annotator",
    "rita": "reviewer",
    "ada": "admin",
    "rosa": "researcher",
    "rolf": "researcher",
    # Whose keys, colors and time zones are for the tests of these alone.
    **dict.fromkeys(("keyer", "adder", "nora", "zoe", "kim"), "annotator"),
}
expect.set_options(timeout=15_000)


MAKE_STATE = """
from django.core.management import call_command
from annotator.processes.serving import UNUSED_STATIC_FILES
from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.embedding.services import embedding_job_create
call_command("migrate", verbosity=0)
call_command("collectstatic", verbosity=0, ignore_patterns=UNUSED_STATIC_FILES)
call_command("import_images", {images!r}, quiet=True)
job = embedding_job_create(model_name="")
while job.state in Job.UNFINISHED:
    job_slice_run(job_id=job.pk)
    job.refresh_from_db()
assert job.state == Job.State.DONE, job.error
"""


def make_state(folder: Path) -> None:
    """The state folder `var` of a site, with people, a corpus and its embeddings, and the people's
    tokens; made by one process, since each start of the application takes seconds.
    """
    images = write_corpus(folder / "corpus", count=IMAGES) / "train.json"
    made = Served(folder / "var", "shell", "-c", MAKE_STATE.format(images=str(images)))
    assert made.process.wait(300) == 0, made.output.read_text()
    site = Site(made)
    site.create_users(ROLES)
    embedded_postgres(made.var_dir).leave(wait=True)
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
        site.served.end()


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
                # Two processes and many frames fewer.
                "--in-process-gpu",
                "--enable-features=NetworkServiceInProcess2",
                "--force-prefers-reduced-motion",
            ],
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def idle_contexts() -> dict[str, list[BrowserContext]]:
    """Browser contexts by their options, for the next tests: they keep what they have fetched."""
    return defaultdict(list)


@pytest.fixture
def log_in(
    browser: Browser, site: Site, idle_contexts: dict[str, list[BrowserContext]]
) -> Iterator[Callable[..., Page]]:
    """`log_in("ann", path)` gives a page of a browser context of its own in which that user is
    logged in; it is blank without a path.

    A script error, or something that the content security policy stopped, fails the test. Everybody
    begins with the keys and the view that nobody has changed.
    """
    contexts: list[tuple[str, BrowserContext]] = []
    problems: list[str] = []
    known: set[str] = set()

    def start(user: str, path: str = "", **options: Any) -> Page:
        options = {"viewport": DESKTOP, **options}
        key = repr((user, options))
        context = idle_contexts[key].pop() if idle_contexts[key] else browser.new_context(**options)
        contexts.append((key, context))
        context.add_cookies(site.session(browser, user))
        if user not in known and site.roles[user] != "researcher":
            site.api(user, "PUT", "/api/preferences/labeling/", {"keys": {}, "view": {}})
        known.add(user)
        page = context.new_page()
        stored = {"origin": site.url, "storageTypes": "indexeddb,local_storage"}
        context.new_cdp_session(page).send("Storage.clearDataForOrigin", stored)
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
    for key, context in contexts:
        for page in context.pages:
            page.close()
        context.unroute_all()
        context.set_offline(False)
        context.clear_cookies()
        idle_contexts[key].append(context)
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
