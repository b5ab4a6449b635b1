"""One person at the labeling page in a real Chromium: waiting times and requests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

from bench.labeling_crowd import CrowdSite
from tests.people import PASSWORD
from tests.processes import CHROMIUM, wait_for

GRID_SIZE: Final = 40
RELEVANT_EVERY: Final = 20
"""So that no 100 negatives stand in a row and no question about stopping comes up."""

# From the key's own timestamp to the end of the first frame in which what follows is in place and
# decoded: the callback runs before that frame is painted, the message after it.
_ARM: Final = """(view) => {
  const tiles = () =>
    [...document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])')];
  const shown = () => view === "single"
    ? document.querySelector("[data-canvas] img") : tiles()[0]?.dataset.rank;
  const before = shown();
  const images = () => view === "single"
    ? [shown()] : tiles().map((tile) => tile.querySelector("img"));
  const isNext = () => shown() !== before &&
    images().every((image) => image?.complete && image.naturalWidth > 0);
  window.waited = new Promise((resolve, reject) => {
    window.addEventListener("keydown", (event) => {
      const check = () => {
        if (!isNext()) {
          requestAnimationFrame(check);
          return;
        }
        const { port1, port2 } = new MessageChannel();
        port1.onmessage = () => resolve(performance.now() - event.timeStamp);
        port2.postMessage(null);
      };
      requestAnimationFrame(check);
    }, { capture: true, once: true });
    setTimeout(() => reject(new Error("Nothing followed the key.")), 30_000);
  });
}"""
# The page takes a key for an image that it knows to be on screen.
_READY: Final = {
    "single": "() => document.querySelector('[data-single]').dataset.painted",
    "grid": """() => {
      const tiles = document.querySelectorAll('[data-tiles] [data-rank]:not([data-rank=""])');
      return tiles.length > 0 && [...tiles].every((tile) => "seen" in tile.dataset);
    }""",
}
_SHOWN: Final = {"single": "[data-canvas] img", "grid": "[data-tiles] [data-seen]"}


@dataclass(slots=True)
class Session:
    """One person's work on one list."""

    images: int = 0
    waits: list[float] = field(default_factory=list)
    """Seconds from each key to what follows it on screen."""
    elapsed: float = 0.0
    """Seconds from the first key until the last judgment was in the database."""
    requests: int = 0
    bytes: int = 0
    """As sent, headers included, from the opening of the page on, without what was cached."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. Raises FileNotFoundError where Chromium isn't installed."""
    if CHROMIUM is None:
        raise FileNotFoundError("Chromium is not installed.")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


def label(
    where: CrowdSite, browser: Browser, query: int, view: str, *, images: int, pause: float
) -> Session:
    """Label a list as the first annotator, one by one ("single") or by pages of GRID_SIZE with a
    relevant image on each ("grid"). `pause` is the least time for a step in seconds. The last image
    or page stays, since nothing follows it on screen.
    """
    user, session = where.annotators[0], Session()
    preferences = {"view": {"view": view, "grid_size": GRID_SIZE}}
    where.api(user, "PUT", "/api/preferences/labeling/", preferences)
    context = browser.new_context(viewport={"width": 1366, "height": 850})
    try:
        page = context.new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{where.url}/login/")
        page.get_by_label("User name").fill(user)
        page.get_by_label("Password").fill(PASSWORD)
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="Queries").wait_for()
        _count(page, session)
        page.goto(f"{where.url}/queries/{query}/label/")
        page.locator(_SHOWN[view]).first.wait_for()
        page.wait_for_load_state("networkidle")
        began = due = time.perf_counter()
        step = GRID_SIZE if view == "grid" else 1
        while session.images + 2 * step <= images:
            page.wait_for_function(_READY[view])
            if view == "grid":
                page.keyboard.press("Space")
            time.sleep(max(0.0, due + pause - time.perf_counter()))
            due = max(due + pause, time.perf_counter())
            session.images += step
            relevant = session.images % RELEVANT_EVERY == 0
            page.evaluate(_ARM, view)
            page.keyboard.press("Enter" if view == "grid" else "r" if relevant else "n")
            session.waits.append(float(page.evaluate("() => window.waited")) / 1000)
        path = f"/api/queries/{query}/"
        wait_for(
            lambda: where.api(user, "GET", path)["progress"]["judged"] >= session.images,
            seconds=60,
            what=f"{session.images} judgments in the database",
        )
        session.elapsed = time.perf_counter() - began
    finally:
        context.close()
    return session


def _count(page: Page, session: Session) -> None:
    """Add up what the page asks for from now on."""
    devtools = page.context.new_cdp_session(page)
    cached: set[str] = set()

    def received(event: dict[str, Any]) -> None:
        if event["response"].get("fromDiskCache"):
            cached.add(event["requestId"])

    def finished(event: dict[str, Any]) -> None:
        if event["requestId"] not in cached:
            session.requests += 1
            session.bytes += int(event["encodedDataLength"])

    devtools.on("Network.requestServedFromCache", lambda event: cached.add(event["requestId"]))
    devtools.on("Network.responseReceived", received)
    devtools.on("Network.loadingFinished", finished)
    devtools.send("Network.enable")
