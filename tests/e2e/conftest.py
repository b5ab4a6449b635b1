"""A served application with a small drawn corpus, and a real Chromium in front of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.processes import CHROMIUM
from tests.site import Site
from tests.worlds import renew, start_lasting_site

PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1366, "height": 850}
NARROW = {"width": 360, "height": 740}
expect.set_options(timeout=15_000)


@pytest.fixture(scope="session")
def lasting_site() -> Iterator[Site]:
    """The site of all browser tests of this process."""
    site = start_lasting_site()
    try:
        yield site
    finally:
        site.served.end()


@pytest.fixture(scope="module")
def site(lasting_site: Site) -> Site:
    """A site as it is in the beginning: no test sees what those of another file have made."""
    renew(lasting_site)
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
