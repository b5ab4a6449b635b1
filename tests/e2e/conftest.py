"""A served application with a small drawn corpus, and a real Chromium in front of it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from annotator.postgres.embedded import DATABASE, embedded_postgres
from annotator.postgres.guardian import DATABASE_USER, Layout, locked, program_folder
from demo.corpus import write_corpus
from tests.databases import copy_data, copy_database, database_url, kept_data, start_server
from tests.processes import Served
from tests.settings import PROCESS, ROOT, SESSION_DIR
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
    **dict.fromkeys(("keyer", "adder", "nora", "zoe", "kim"), "annotator"),
}
WORLD = "world"
WORLDS = count(1)
#: What stays in a site's state folder: files that are there for the processes, or are the same
#: whatever a test does.
LASTING = {"broker", "log", "run", "secret_key", "static", "thumbnails", "vega"}
expect.set_options(timeout=15_000)


MAKE_WORLD = """
import json
from django.core.management import call_command
from annotator.web import static
from core.jobs.models import Job
from core.jobs.services import job_slice_run
from retrieval.embedding.services import embedding_job_create
from tests.people import make_people

static.collect()
call_command("import_images", {images!r}, quiet=True)
embedding_job_create(model_name="")
while job := Job.objects.filter(state__in=Job.UNFINISHED).first():
    job_slice_run(job_id=job.pk)
assert set(Job.objects.values_list("state", flat=True)) == {{"done"}}
with open({people!r}, "w") as file:
    json.dump(make_people({roles}), file)
"""


def world() -> Path:
    """What each site begins with, made by one process of the session for all: the database WORLD
    and, in this folder, the state folder `var` with a corpus and its embeddings, and `people.json`.
    """
    start_server()
    folder = SESSION_DIR / "world"
    ready = folder / "people.json"
    with locked(SESSION_DIR / "run" / "world.lock"):
        if not ready.exists():
            copy_database(WORLD)
            images = write_corpus(folder / "corpus", count=IMAGES) / "train.json"
            script = MAKE_WORLD.format(images=str(images), roles=ROLES, people=str(ready))
            made = Served(
                folder / "var", "shell", "-v0", "-c", script, DATABASE_URL=database_url(WORLD)
            )
            assert made.process.wait() == 0, made.output.read_text()
    return folder


def people(made: Path) -> dict[str, dict[str, str]]:
    """The role, token and session of each person of the world."""
    return dict(json.loads((made / "people.json").read_text()))


def start_site(var_dir: Path, **environment: str) -> Site:
    """A site with a PostgreSQL server of its own, over a copy of the world."""
    made = world()
    shutil.copytree(made / "var", var_dir, symlinks=True)
    data = Layout(var_dir).data
    copy_data(kept_data(), data)
    # What this one has acknowledged survives it.
    (data / "postgresql.auto.conf").unlink()
    server = embedded_postgres(var_dir)
    server.ensure()
    program = str(program_folder() / "pg_dump")
    where = ("-h", str(Layout(SESSION_DIR).socket_dir), "-U", DATABASE_USER)
    dumped = subprocess.run([program, *where, WORLD], capture_output=True, check=True).stdout
    subprocess.run(
        [
            *(str(program_folder() / "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-U", DATABASE_USER),
            *("-h", str(Layout(var_dir).socket_dir), DATABASE),
        ],
        input=dumped,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    server.leave(wait=True)
    return Site(Served(var_dir, **environment), people(made))


@pytest.fixture(scope="session")
def lasting_site() -> Iterator[Site]:
    """The site of all browser tests of this process, on the session's database server."""
    made = world()
    name = f"site_{PROCESS}"
    copy_database(name, WORLD)
    var_dir = SESSION_DIR / name / "var"
    shutil.copytree(made / "var", var_dir)
    served = Served(var_dir, DATABASE_URL=database_url(name), CANDIDATE_DEPTH=str(DEPTH))
    try:
        yield Site(served, people(made))
    finally:
        served.end()


@pytest.fixture(scope="module")
def site(lasting_site: Site) -> Site:
    """A site as it is in the beginning: no test sees what those of another file have made."""
    served = lasting_site.served
    if served.process.poll() is not None:
        served.start()
    served.wait_healthy()
    with served.database() as cursor:
        cursor.execute(
            "SELECT worker FROM annotator_workerheartbeat WHERE seen_at > now() - '1m'::interval"
        )
        workers = cursor.fetchall()
    for message in (served.var_dir / "broker").glob("*.msg"):
        message.unlink(missing_ok=True)
    copy_database(f"site_{PROCESS}", WORLD)
    with served.database() as cursor:
        cursor.executemany(
            "INSERT INTO annotator_workerheartbeat (worker, seen_at) VALUES (%s, now())", workers
        )
        # The processes may remember what had an id in the world before.
        cursor.execute(
            "SELECT setval(format('%%I.%%I', schemaname, sequencename)::regclass,"
            " coalesce(last_value, 0) + %s) FROM pg_sequences WHERE schemaname = 'public'",
            [100_000 * next(WORLDS)],
        )
    for path in served.var_dir.iterdir():
        if path.name not in LASTING:
            shutil.rmtree(path)
    made = world()
    for path in (made / "var").iterdir():
        if path.name not in LASTING:
            shutil.copytree(path, served.var_dir / path.name)
    served.wait_healthy()
    lasting_site.people = people(made)
    return lasting_site


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
        context.add_cookies(site.cookies(user))
        if user not in known and site.people[user]["role"] != "researcher":
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
