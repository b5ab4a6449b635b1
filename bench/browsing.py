"""One person at the labelling page in a real Chromium: what they wait for, and what it costs."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from bench.site import PASSWORD, BenchSite
from tests.processes import wait_for

WINDOW: ViewportSize = {"width": 1366, "height": 850}
GRID_SIZE = 40
RELEVANT_EVERY = 20
"""So that no 100 negatives stand in a row and no question about stopping comes up."""

# From the key's own timestamp to the end of the first frame in which what follows is in place and
# decoded: the callback runs before that frame is painted, the message after it.
_PROBE = """(next) => {
  const isNext = { single: () => {
    const picture = document.querySelector("[data-canvas] img");
    return picture !== window.probe.before && picture?.complete && picture.naturalWidth > 0;
  }, grid: () => {
    const tiles = [...document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])')];
    const pictures = tiles.map((tile) => tile.querySelector("img"));
    return tiles[0]?.dataset.rank !== window.probe.before &&
      pictures.every((picture) => picture?.complete && picture.naturalWidth > 0);
  } }[next];
  window.probe = { waited: null };
  window.addEventListener("keydown", (event) => {
    if (!window.probe.armed) return;
    window.probe.armed = false;
    const look = () => {
      if (!isNext()) {
        requestAnimationFrame(look);
        return;
      }
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => window.probe.painted(performance.now() - event.timeStamp);
      port2.postMessage(null);
    };
    requestAnimationFrame(look);
  }, { capture: true });
}"""
_ARM = """(next) => {
  window.probe.before = next === "single"
    ? document.querySelector("[data-canvas] img")
    : document.querySelector("[data-tiles] [data-rank]").dataset.rank;
  const studio = document.getElementById("studio");
  const says = () => [
    `state ${studio.dataset.state}`,
    `painted ${document.querySelector("[data-single]").dataset.painted}`,
    document.querySelector("[data-hint]").textContent,
    document.querySelector("dialog[open]")?.textContent ?? "no dialog",
    document.querySelector("[data-saved]").textContent,
  ].join("; ");
  window.probe.waited = new Promise((resolve, reject) => {
    window.probe.painted = resolve;
    setTimeout(() => reject(new Error(`Nothing followed the key: ${says()}`)), 30_000);
  });
  window.probe.armed = true;
}"""
# The page takes a key for a picture that it knows to be on screen.
_PAINTED = "() => document.querySelector('[data-single]').dataset.painted"
_ALL_SEEN = """() => {
  const tiles = [...document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])')];
  return tiles.length > 0 && tiles.every((tile) => "seen" in tile.dataset);
}"""


@dataclass(slots=True)
class Traffic:
    """What went over the network: requests, and bytes as sent, headers included."""

    requests: int = 0
    bytes: int = 0


@dataclass(slots=True)
class Session:
    """One person's work on one list."""

    images: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds from each key to what follows it on screen."""
    elapsed: float = 0.0
    """Seconds from the first key until the last judgment was in the database."""
    traffic: Traffic = field(default_factory=Traffic)
    """From the opening of the labelling page on; what the browser had cached doesn't count."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. Raises FileNotFoundError where Chromium isn't installed."""
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        raise FileNotFoundError("Chromium is not installed.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        try:
            yield browser
        finally:
            browser.close()


def label_single(
    site: BenchSite, browser: Browser, user: str, query: int, *, images: int, pause: float
) -> Session:
    """Label one by one with keys; `pause` is the least time from one key to the next, in seconds.

    The last image of the list stays, since nothing follows it on screen.
    """

    def steps(page: Page, session: Session) -> None:
        due = time.perf_counter()
        for number in range(1, images):
            time.sleep(max(0.0, due - time.perf_counter()))
            due = max(due + pause, time.perf_counter())
            page.wait_for_function(_PAINTED)
            key = "r" if number % RELEVANT_EVERY == 0 else "n"
            session.waits.append(_press(page, "single", key))
            session.images += 1

    return _work(site, browser, user, query, "single", steps)


def label_grid(
    site: BenchSite, browser: Browser, user: str, query: int, *, images: int, pause: float
) -> Session:
    """Label by pages of GRID_SIZE, with one relevant image on each; `pause` is the least time for a
    page, in seconds. The last page stays, since nothing follows it on screen.
    """

    def steps(page: Page, session: Session) -> None:
        due = time.perf_counter() + pause
        while session.images + 2 * GRID_SIZE <= images:
            page.wait_for_function(_ALL_SEEN)
            page.keyboard.press("Space")
            time.sleep(max(0.0, due - time.perf_counter()))
            due = max(due, time.perf_counter()) + pause
            session.waits.append(_press(page, "grid", "Enter"))
            session.images += GRID_SIZE

    return _work(site, browser, user, query, "grid", steps)


def _press(page: Page, view: str, key: str) -> float:
    page.evaluate(_ARM, view)
    page.keyboard.press(key)
    return float(page.evaluate("() => window.probe.waited")) / 1000


def _work(
    site: BenchSite,
    browser: Browser,
    user: str,
    query: int,
    view: str,
    steps: Callable[[Page, Session], None],
) -> Session:
    session = Session()
    preferences = {"view": {"view": view, "grid_size": GRID_SIZE}}
    site.api(user, "PUT", "/api/preferences/labelling/", preferences)
    context = browser.new_context(viewport=WINDOW)
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        _log_in(page, site, user)
        _count(page, session.traffic)
        page.goto(f"{site.url}/queries/{query}/label/")
        shown = "[data-canvas] img" if view == "single" else "[data-tiles] [data-seen]"
        page.locator(shown).first.wait_for()
        page.wait_for_load_state("networkidle")
        page.evaluate(_PROBE, view)
        began = time.perf_counter()
        steps(page, session)
        wait_for(
            lambda: _judged(site, user, query) >= session.images,
            seconds=60,
            what=f"{session.images} judgments in the database",
        )
        session.elapsed = time.perf_counter() - began
    finally:
        context.close()
    return session


def _log_in(page: Page, site: BenchSite, user: str) -> None:
    page.goto(f"{site.url}/login/")
    page.get_by_label("User name").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("heading", name="Queries").wait_for()


def _judged(site: BenchSite, user: str, query: int) -> int:
    return int(site.api(user, "GET", f"/api/queries/{query}/")["progress"]["judged"])


def _count(page: Page, traffic: Traffic) -> None:
    """Add up what the page asks for from now on."""
    devtools = page.context.new_cdp_session(page)
    cached: set[str] = set()

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] not in cached:
            traffic.requests += 1
            traffic.bytes += int(event["encodedDataLength"])

    def received(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            cached.add(event["requestId"])

    devtools.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
    devtools.on("Network.responseReceived", received)
    devtools.on("Network.loadingFinished", finished)
    devtools.send("Network.enable")
